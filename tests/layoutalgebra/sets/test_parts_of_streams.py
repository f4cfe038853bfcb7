"""Parts of folded streams, against their expansion."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, expand
from layout_advise.layoutalgebra.sets.spans import PEEL_LIMIT, addresses, meets_set, spans, within
from layout_advise.mockup.evidence.streams import contains


@st.composite
def nests(draw: st.DrawFn, depth: int = 0) -> Node:
    """A point or a loop below ``depth`` others; trip counts of inner loops may depend on the outer ones."""
    if depth == 3 or (depth and draw(st.booleans())):
        return Point(Affine(draw(st.integers(0, 200)), tuple(draw(st.lists(st.integers(-40, 40), max_size=depth)))))
    slopes = tuple(draw(st.lists(st.integers(0, 1), max_size=depth)))
    return Loop(Affine(draw(st.integers(0, 4)), slopes), tuple(draw(st.lists(nests(depth + 1), min_size=1, max_size=2))))


def folded(*nodes: Node) -> FoldedStream:
    return FoldedStream(nodes, sum(1 for _ in expand(nodes)))


@given(st.lists(nests(), min_size=1, max_size=3), st.integers(-50, 250), st.integers(1, 200))
def test_a_part_is_what_lies_in_the_range(nodes: list[Node], low: int, size: int) -> None:
    part = within(folded(*nodes), low, low + size)
    expected = [address for address in expand(tuple(nodes)) if low <= address < low + size]
    assert part is not None
    assert part.count == len(expected)
    if isinstance(part, FoldedStream):
        assert list(part.expand()) == expected
    else:
        assert held(part) == set(expected)


def held(part: AddressSet) -> set[int]:
    bits = np.unpackbits(np.frombuffer(part.bitmap or b"", np.uint8), bitorder="little")
    return {part.minimum + part.gcd * int(k) for k in np.flatnonzero(bits)}


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(1, 9), st.integers(-50, 500), st.integers(1, 400))
def test_a_part_of_a_set_is_what_lies_in_the_range(places: set[int], step: int, low: int, size: int) -> None:
    """A set that was made of the folded part of a stream, and its part: minimum, maximum and steps are its own."""
    every = sorted(1000 + step * place for place in places)
    whole = AddressSet(every[0], every[-1], step, 7 * len(every), _bitmap(every, step))
    part = within(whole, 1000 + low, 1000 + low + size)
    expected = {address for address in every if 1000 + low <= address < 1000 + low + size}
    assert isinstance(part, AddressSet)
    assert held(part) == expected
    assert part.count == 7 * len(expected)
    if expected:
        assert (part.minimum, part.maximum) == (min(expected), max(expected))
        assert contains(part, np.array(sorted(expected), np.uint64))


def _bitmap(every: list[int], step: int) -> bytes:
    bits = np.zeros((every[-1] - every[0]) // step + 1, np.uint8)
    bits[[(address - every[0]) // step for address in every]] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def test_a_loop_over_blocks_is_taken_apart() -> None:
    """Eight buffers of a coder, one after the other: ``for 8 step 16400 for 4096 step 4``."""
    rows = Loop(Affine(8), (Loop(Affine(4096), (Point(Affine(1000, (16400, 4))),)),))
    part = within(folded(rows), 1000 + 3 * 16400, 1000 + 3 * 16400 + 16384)
    assert part == FoldedStream((Loop(Affine(4096), (Point(Affine(1000 + 3 * 16400, (4,))),)),), 4096)
    other = within(folded(rows), 0, 1000)
    assert other == FoldedStream((), 0)


def test_a_loop_that_is_long_and_crosses_the_range_has_a_set_as_its_part() -> None:
    long = Loop(Affine(PEEL_LIMIT + 1), (Point(Affine(0, (8,))),))
    assert within(folded(long), 0, 800) == AddressSet(0, 792, 8, 100, b"\xff" * 12 + b"\x0f")
    assert within(folded(long), 0, 1 << 20) == folded(long)


def test_a_set_that_is_not_known_exactly_has_no_part() -> None:
    assert within(AddressSet(0, 1 << 40, 8, 1000, None), 0, 800) is None


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(0, 9000), st.integers(0, 3000), st.sampled_from([8, 24]))
def test_parts_of_sets_are_those_in_range(steps: set[int], low: int, size: int, gcd: int) -> None:
    base, first = 1000, min(steps)
    bits = np.zeros(max(steps) - first + 1, dtype=np.uint8)
    bits[[s - first for s in steps]] = 1
    every = [base + gcd * s for s in sorted(steps)]
    packed = np.packbits(bits, bitorder="little").tobytes()
    whole = AddressSet(every[0], every[-1], gcd if len(every) > 1 else 0, 2 * len(every), packed)
    inside = [a for a in every if low <= a < low + size]
    part = within(whole, low, low + size)
    assert isinstance(part, AddressSet)
    assert (part.minimum, part.maximum) == ((inside[0], inside[-1]) if inside else (0, 0))
    assert part.count == 2 * len(inside)
    found = [] if not inside else [a for span in spans(part) if (one := addresses(span)) is not None for a in one.tolist()]
    assert found == inside
    assert meets_set(whole, low, low + size) == bool(inside)
