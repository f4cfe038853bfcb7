"""Parts of folded streams, against their expansion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Node, Point, expand
from layout_advise.layoutalgebra.sets.spans import PEEL_LIMIT, within


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
    if part is not None:
        assert list(part.expand()) == expected
        assert part.count == len(expected)


def test_a_loop_over_blocks_is_taken_apart() -> None:
    """Eight buffers of a coder, one after the other: ``for 8 step 16400 for 4096 step 4``."""
    rows = Loop(Affine(8), (Loop(Affine(4096), (Point(Affine(1000, (16400, 4))),)),))
    part = within(folded(rows), 1000 + 3 * 16400, 1000 + 3 * 16400 + 16384)
    assert part == FoldedStream((Loop(Affine(4096), (Point(Affine(1000 + 3 * 16400, (4,))),)),), 4096)
    other = within(folded(rows), 0, 1000)
    assert other == FoldedStream((), 0)


def test_a_loop_that_is_long_and_crosses_the_range_has_no_part() -> None:
    long = Loop(Affine(PEEL_LIMIT + 1), (Point(Affine(0, (8,))),))
    assert within(folded(long), 0, 800) is None
    assert within(folded(long), 0, 1 << 20) == folded(long)
