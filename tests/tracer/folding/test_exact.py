"""Folding loses nothing: a nest expands to the recorded stream, a set holds exactly the recorded addresses."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Stream
from layout_advise.tracer.folding.fold import fold, fold_records

TOP = (1 << 48) - 1


def members(found: AddressSet) -> list[int]:
    assert found.bitmap is not None
    bits = np.unpackbits(np.frombuffer(found.bitmap, dtype=np.uint8), bitorder="little")
    return [found.minimum + found.gcd * int(k) for k in np.flatnonzero(bits)]


def check(addresses: list[int], found: Stream) -> None:
    assert found.count == len(addresses)
    if isinstance(found, FoldedStream):
        assert list(found.expand()) == addresses
    else:
        assert members(found) == sorted(set(addresses))
        assert (found.minimum, found.maximum) == (min(addresses), max(addresses))
        assert found.gcd == np.gcd.reduce(np.array(addresses) - addresses[0])


@st.composite
def nests(draw: st.DrawFn, depth: int = 0) -> list[int]:
    """A stream as a program makes it: loops (some triangular), sequences, negative and zero strides, noise."""
    if depth == 3 or draw(st.integers(0, 3)) == 0:
        return [draw(st.integers(0, 2000))]
    trip, stride, shrink = draw(st.integers(0, 9)), draw(st.integers(-300, 300)), draw(st.integers(-1, 1))
    bodies = [draw(nests(depth + 1)) for _ in range(draw(st.integers(1, 3)))]
    result: list[int] = []
    for i in range(trip):
        for body in bodies:
            part = body[: max(0, len(body) + shrink * i)] if shrink else body
            result += [a + stride * i for a in part]
    return result


@settings(max_examples=400, deadline=None)
@given(st.lists(nests(), max_size=3))
def test_programs_streams_expand_exactly(parts: list[list[int]]) -> None:
    addresses = [a + 100_000 for part in parts for a in part]
    found = fold(addresses)
    assert isinstance(found, FoldedStream)
    check(addresses, found)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, TOP)), max_size=200))
def test_any_short_stream_expands_exactly(addresses: list[int]) -> None:
    found = fold(addresses)
    assert isinstance(found, FoldedStream)
    check(addresses, found)


@pytest.mark.parametrize("seed", range(12))
def test_long_irregular_streams_are_exact_sets(seed: int) -> None:
    rng = random.Random(seed)
    unit, span, base = rng.choice([1, 3, 8, 24]), rng.choice([50, 5000, 10**6]), rng.choice([0, 12345, 1 << 46])
    addresses = [base + unit * rng.randrange(span) for _ in range(9000)]
    if seed % 3 == 0:
        addresses = sorted(addresses, reverse=seed % 2 == 0) + addresses[:7] + list(range(base, base + unit * 900, unit))
    found = fold(addresses)
    assert isinstance(found, AddressSet)
    check(addresses, found)


@pytest.mark.parametrize(
    ("name", "addresses", "most"),
    [
        ("row", [50000 - 8 * i for i in range(999)], 1),
        ("constant", [77] * 1000, 1),
        ("triangle", [800 * i + 8 * j for i in range(300) for j in range(i, 300)], 8),
        ("lower triangle", [800 * i + 8 * j for i in range(300) for j in range(i)], 8),
        ("checkerboard", [808 * i + 16 * j + 8 * (i % 2) for i in range(400) for j in range(40)], 4),
        (
            "stencil",
            [9000 * i + 90 * j + 8 * k + d for i in range(9) for j in range(9) for k in range(9) for d in (0, 3, 77)],
            3,
        ),
        ("two sweeps", [*range(0, 8000, 8), *range(4, 8000, 8), *range(0, 8000, 8)], 3),
        ("pairs", [1000 * i + 8 * j for i in range(500) for j in range(2)], 2),
    ],
)
def test_regular_streams_become_few_terms(name: str, addresses: list[int], most: int) -> None:
    found = fold(addresses)
    assert isinstance(found, FoldedStream), name
    assert len(found.nodes) <= most, found.nodes
    check(addresses, found)


def test_a_span_beyond_the_bitmap_is_inexact_but_bounded() -> None:
    rng = random.Random(1)
    addresses = [rng.randrange(1 << 46) for _ in range(5000)]
    found = fold(addresses)
    assert isinstance(found, AddressSet)
    assert not found.exact
    assert (found.minimum, found.maximum, found.count) == (min(addresses), max(addresses), 5000)


def test_the_bitmaps_of_all_streams_share_a_budget() -> None:
    rng = np.random.default_rng(2)
    records = rng.integers(0, 1 << 20, 40_000, dtype=np.uint64) * 8 | rng.integers(
        0, 4, 40_000, dtype=np.uint64
    ) << np.uint64(48)
    exact = [stream.exact for stream in fold_records(records, 4, bitmap_budget=450_000) if isinstance(stream, AddressSet)]
    assert len(exact) == 4
    assert 0 < sum(exact) < 4


def test_sites_are_told_apart(tmp_path: Path) -> None:
    streams = [[8 * i for i in range(500)], [], [3] * 20, [random.Random(4).randrange(9999) for _ in range(4000)]]
    mixed = [(site, address) for site, stream in enumerate(streams) for address in stream]
    order = sorted(range(len(mixed)), key=lambda k: (k * 7) % 11)
    records = np.array([mixed[k][1] | mixed[k][0] << 48 for k in order], dtype=np.uint64)
    records.tofile(tmp_path / "records")
    for source in (records, tmp_path / "records"):
        found = fold_records(source, 5)
        assert found[1] is None
        assert found[4] is None
        for site in (0, 2, 3):
            stream = found[site]
            assert stream is not None
            check([mixed[k][1] for k in order if mixed[k][0] == site], stream)


def test_damaged_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="names site 3 of 3"):
        fold_records(np.array([5, 3 << 48 | 5], dtype=np.uint64), 3)
    (tmp_path / "odd").write_bytes(bytes(12))
    with pytest.raises(TraceError, match="ends within a record"):
        fold_records(tmp_path / "odd", 3)
    with pytest.raises(TraceError, match="cannot be read"):
        fold_records(tmp_path / "none", 3)
