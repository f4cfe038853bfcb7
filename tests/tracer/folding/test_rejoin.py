"""Loops take in the iterations around them, and the order stays the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import Affine, Loop, Node, Point, expand
from layout_advise.tracer.folding.execution_order import count_nodes
from layout_advise.tracer.folding.rejoin import rejoined


def point(name: int) -> Point:
    return Point(Affine(name))


A, B, C = (point(name) for name in (1, 2, 3))


def loop(trip: int, *body: Node, coefs: tuple[int, ...] = ()) -> Loop:
    return Loop(Affine(trip, coefs), body)


def bodies(depth: int) -> st.SearchStrategy[list[Node]]:
    """Few names, so that neighbours are often alike; trip counts may grow with the index of any loop around."""
    points: st.SearchStrategy[Node] = st.integers(1, 3).map(point)
    if depth == 3:
        return st.lists(points, min_size=1, max_size=4)
    coefs = st.lists(st.integers(0, 2), max_size=depth).map(lambda c: tuple(c) if not c or c[-1] else ())
    loops = st.builds(lambda t, c, b: Loop(Affine(t, c), tuple(b)), st.integers(0, 3), coefs, bodies(depth + 1))
    return st.lists(points | loops, min_size=1, max_size=6)


@given(bodies(0))
def test_the_order_stays_the_same(nodes: list[Node]) -> None:
    found = rejoined(nodes)
    assert list(expand(found)) == list(expand(tuple(nodes)))
    assert count_nodes(found) <= count_nodes(tuple(nodes))


def test_iterations_before_and_behind_a_loop_belong_to_it() -> None:
    assert rejoined([A, B, C, loop(5, B, C), B, C, A]) == (A, loop(7, B, C), A)
    assert rejoined([loop(4, A), loop(5, A)]) == (loop(9, A),)
    assert rejoined([A, B, A, B, A, B]) == (loop(3, A, B),)
    assert rejoined([loop(4, loop(5, A), A)]) == (loop(24, A),)


def test_a_loop_in_a_loop() -> None:
    turn: list[Node] = [A, B, loop(6, B), B, C]
    assert rejoined([*turn, loop(7, *turn), *turn]) == (loop(9, A, loop(8, B), C),)
    growing: list[Node] = [A, B, loop(2, B, coefs=(1,)), C]
    assert rejoined([loop(9, *growing)]) == (loop(9, A, loop(3, B, coefs=(1,)), C),)
