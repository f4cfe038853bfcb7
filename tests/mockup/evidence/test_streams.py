"""Expansion of folded streams to arrays, against the expansion one by one."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point
from layout_advise.mockup.evidence import streams

FEW = st.integers(0, 4)


def nodes(depth: int) -> st.SearchStrategy[Node]:
    """Returns points and loops whose trip counts and addresses vary with the loops around."""
    coefs = st.lists(st.integers(-2, 3), max_size=depth).map(tuple)
    point = st.builds(Point, st.builds(Affine, st.integers(1000, 2000), coefs))
    if depth == 3:
        return point
    # a trip count may come out negative here: such a loop does not run
    loop = st.builds(Loop, st.builds(Affine, FEW, coefs), st.lists(nodes(depth + 1), max_size=3).map(tuple))
    return st.one_of(point, loop)


@given(st.lists(nodes(0), max_size=3), st.sampled_from((1, 5, 1 << 20)))
@settings(max_examples=100, deadline=None)
def test_arrays_hold_what_the_loops_make(body: list[Node], at_once: int) -> None:
    """Loops in loops, of constant and of varying trip counts, with several accesses an iteration."""
    stream = FoldedStream(tuple(body), 0)
    with patch.object(streams, "AT_ONCE", at_once):
        assert streams.expand_array(stream).tolist() == list(stream.expand())


@given(
    st.lists(nodes(0), min_size=1, max_size=3), st.integers(1, 64), st.lists(st.integers(900, 2100), min_size=1, max_size=3)
)
@settings(max_examples=100, deadline=None)
def test_which_ranges_a_stream_meets(body: list[Node], size: int, starts: list[int]) -> None:
    """Not its hull: a reference to blocks on both sides of a structure had kept that from another layout."""
    every = list(FoldedStream(tuple(body), 0).expand())
    stream = FoldedStream(tuple(body), len(every))
    ranges = tuple(range(start, start + 50) for start in starts)
    expected = tuple(any(a < r.stop and a + size > r.start for a in every) for r in ranges)
    assert streams.meets(stream, size, ranges) == expected


def test_what_is_not_known_exactly_may_meet_anything() -> None:
    unknown = AddressSet(1000, 9000, 8, 100, None)
    assert streams.meets(unknown, 8, (range(2000, 3000),)) == (True,)
    known = AddressSet(1000, 9000, 8000, 2, bytes([0b11]))
    assert streams.meets(known, 8, (range(2000, 3000), range(9004, 9010))) == (False, True)


def test_a_triangle_is_no_work_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of bodies (``for j > i``) were expanded one access at a time: a comparison of an n-body call took 20 minutes."""
    size = 1500
    triangle = Loop(Affine(size), (Loop(Affine(size - 1, (-1,)), (Point(Affine(1 << 20, (56, 56))),)),))
    steps = 0
    real = Affine.at

    def counted(affine: Affine, indices: tuple[int, ...]) -> int:
        nonlocal steps
        steps += 1
        return real(affine, indices)

    monkeypatch.setattr(Affine, "at", counted)
    found = streams.expand_array(FoldedStream((triangle,), size * (size - 1) // 2))
    assert found.size == size * (size - 1) // 2
    assert steps < size
