"""Modelled cache misses, against what can be counted by hand and a plain simulation of every access."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.describe.modelled_misses import CacheSizes, cache_sizes, modelled_misses
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.reports.model.contract import Machine

CACHES = CacheSizes(64, (32 << 10, 512 << 10, 8 << 20))


def nest(*levels: tuple[int, int], start: int = 1 << 20) -> FoldedStream:
    """Loops of (trips, bytes of a step), outermost first."""
    node: Node = Point(Affine(start, tuple(step for _, step in levels)))
    count = 1
    for trips, _ in reversed(levels):
        node, count = Loop(Affine(trips), (node,)), count * trips
    return FoldedStream((node,), count)


def simulated(streams: list[FoldedStream], size: int) -> list[int]:
    """Every access of references that take turns, by one cache, in the second of two runs."""
    turns = list(chain.from_iterable(zip(*[list(one.expand()) for one in streams], strict=True)))
    kept: OrderedDict[int, None] = OrderedDict()
    found = [0] * len(streams)
    for again in (0, 1):
        for place, address in enumerate(turns):
            line = (address + 7) // 64
            found[place % len(streams)] += again * (line not in kept)
            kept[line] = None
            kept.move_to_end(line)
            if len(kept) > size // 64:
                kept.popitem(last=False)
    return found


def by_age(streams: list[FoldedStream], sizes: tuple[int, ...]) -> list[list[int]]:
    """The misses of each reference by level in the second of two runs, by the definition: an access misses in a cache of n
    lines where n other lines or more were used since its line was used last. No cache is simulated."""
    turns = [address // 64 for address in chain.from_iterable(zip(*[list(one.expand()) for one in streams], strict=True))]
    twice = turns + turns
    found = [[0] * len(sizes) for _ in streams]
    for place in range(len(turns), len(twice)):
        before = next((at for at in range(place - 1, -1, -1) if twice[at] == twice[place]), None)
        between = len(set(twice[before + 1 : place])) if before is not None else 1 << 60
        for level, size in enumerate(sizes):
            found[place % len(streams)][level] += between >= size // 64
    return found


TRIPS = st.integers(1, 6)
STEPS = st.integers(-40, 40).map(lambda words: 8 * words)
ALIKE = st.tuples(TRIPS, TRIPS, st.integers(1, 8))
"""Turns of three loops, which all references share."""


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_every_reuse_is_counted_by_its_distance(data: st.DataObject) -> None:
    """Where all lines are looked at, the counts are those of the definition, whatever the loops are."""
    trips = data.draw(ALIKE)
    starts = data.draw(st.lists(st.integers(0, 200), min_size=1, max_size=4))
    streams = [nest(*((trip, data.draw(STEPS)) for trip in trips), start=(1 << 20) + 8 * start) for start in starts]
    lines = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3).map(sorted))
    sizes = tuple(64 * count for count in lines)
    found = modelled_misses([(one, 8) for one in streams], CacheSizes(64, sizes))
    assert found is not None
    exact = by_age(streams, sizes)
    touched = {address // 64 for one in streams for address in one.expand()}
    if len(touched) * 64 <= sizes[0]:
        exact = [[0] * len(sizes) for _ in streams]
    assert [[round(count) for count in own] for own in found] == exact


@pytest.mark.slow
@given(st.data())
@settings(max_examples=12, deadline=None)
def test_a_part_of_the_lines_stands_for_all(data: st.DataObject) -> None:
    """Where a part of the lines is looked at: the misses of all references together, against a cache of all lines."""
    fields = data.draw(st.integers(1, 4))
    step = 8 * data.draw(st.integers(1, 24))
    sweeps = data.draw(st.integers(1, 3))
    count = 150_000 // sweeps
    streams = [nest((sweeps, 0), (count, step), start=(1 << 20) + 8 * field) for field in range(fields)]
    size = 64 << data.draw(st.integers(8, 15))
    found = modelled_misses([(one, 8) for one in streams], CacheSizes(64, (size,)))
    assert found is not None
    exact = sum(simulated(streams, size))
    assert sum(own[0] for own in found) == pytest.approx(exact, rel=0.15, abs=3_000)


@pytest.mark.parametrize(
    ("stream", "misses"),
    [
        (nest((4_000, 8)), (0, 0, 0)),  # 32 000 bytes: stays in the first cache
        (nest((40_000, 8)), (5_000, 0, 0)),
        (nest((40_000, 80)), (40_000, 40_000, 0)),
        (nest((1_000_000, 80)), (1_000_000, 1_000_000, 1_000_000)),
        (nest((1_000_000, 0)), (0, 0, 0)),  # one address
        (nest((50, 0), (40_000, 8)), (250_000, 0, 0)),  # each sweep anew from the second cache
        (nest((1000, 8), (1000, 8000)), (1_000_000, 125_000, 0)),  # by columns: 1000 lines wide
    ],
)
def test_sweeps(stream: FoldedStream, misses: tuple[int, ...]) -> None:
    found = modelled_misses([(stream, 8)], CACHES)
    assert found is not None
    assert found[0] == pytest.approx(misses, rel=0.12, abs=10)


def test_one_of_the_references_to_a_line_misses() -> None:
    fields = [nest((100_000, 80), start=(1 << 20) + at) for at in (0, 8, 72)]
    found = modelled_misses([(one, 8) for one in fields], CACHES)
    assert found is not None
    expected = simulated(fields, CACHES.levels[0])
    for own, exact in zip(found, expected, strict=True):
        assert own[0] == pytest.approx(exact, rel=0.12, abs=3_000)
    assert sum(own[2] for own in found) == 0
    assert sum(own[0] for own in found) == pytest.approx(125_000, rel=0.1)


def test_accesses_without_order_are_taken_by_lot() -> None:
    bits = np.packbits(np.ones(131_072, np.uint8), bitorder="little").tobytes()
    whole: Stream = AddressSet(1 << 20, (1 << 20) + 131_071 * 8, 8, 1_000_000, bits)
    found = modelled_misses([(whole, 8)], CACHES)
    assert found is not None
    # 1 MiB: half of it stays in the second cache, a thirty-second part in the first
    assert found[0] == pytest.approx((970_000, 500_000, 0), rel=0.1, abs=10)


def test_what_is_not_modelled() -> None:
    unknown = AddressSet(0, 1 << 40, 8, 1000, None)
    assert modelled_misses([(nest((10, 8)), 8), (unknown, 8)], CACHES) is None
    assert modelled_misses([(nest((17_000_000, 8)), 8)], CACHES) is None
    assert modelled_misses([(nest((10, 8)), 8)], CacheSizes(64, ())) is None
    assert modelled_misses([(None, 8), (nest((10, 8)), 8)], CACHES) == ((0.0,) * 3,) * 2


def test_the_caches_of_a_machine() -> None:
    assert cache_sizes(Machine("", 1, 64, 32768, 524288, 0)) == CacheSizes(64, (32768, 524288))
    assert cache_sizes(Machine("", 1, 64, 0, 524288, 1 << 20)) == CacheSizes(64, ())
