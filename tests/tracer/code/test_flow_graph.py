"""Dominators and natural loops against their definitions, on random graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.tracer.code.flow_graph import flow_graph

NODES = 8
GRAPHS = st.lists(st.lists(st.integers(0, NODES - 1), max_size=3, unique=True), min_size=NODES, max_size=NODES)


def reached(edges: list[list[int]], start: int, without: int | None = None) -> set[int]:
    """Nodes reachable from ``start`` by paths that do not pass ``without``."""
    seen, work = set(), [start]
    while work:
        at = work.pop()
        if at != without and at not in seen:
            seen.add(at)
            work += edges[at]
    return seen


@given(GRAPHS)
def test_order_and_dominators(edges: list[list[int]]) -> None:
    graph = flow_graph(0, dict(enumerate(edges)))
    assert graph.order[0] == 0
    assert set(graph.order) == reached(edges, 0)
    for above in graph.order:
        below = set(graph.order) - reached(edges, 0, without=above)
        assert {node for node in graph.order if graph.dominates(above, node)} == below
    for a in graph.order:
        for b in graph.order:
            common = [n for n in graph.order if graph.dominates(n, a) and graph.dominates(n, b)]
            assert graph.common_dominator(a, b) == max(common, key=lambda n: graph.level[n])


@given(GRAPHS)
def test_natural_loops(edges: list[list[int]]) -> None:
    graph = flow_graph(0, dict(enumerate(edges)))
    back = {(a, b) for a in graph.order for b in edges[a] if graph.dominates(b, a)}
    loops = graph.natural_loops()
    assert {(latch, loop.head) for loop in loops for latch in loop.latches} == back
    for number, loop in enumerate(loops):
        inside = {n for n in graph.order if any(latch in reached(edges, n, loop.head) for latch in loop.latches)}
        assert loop.blocks == inside | {loop.head}
        assert set(loop.exits) == {(a, b) for a in loop.blocks for b in edges[a] if b not in loop.blocks}
        around = [outer for outer in loops[:number] if loop.head in outer.blocks]
        assert loop.parent == (min(around, key=lambda outer: len(outer.blocks)).head if around else None)
    assert (graph.second_entry() is None) == (set(graph.retreating()) == back)


def test_a_cycle_with_two_entries_is_no_loop() -> None:
    graph = flow_graph(0, {0: [1, 2], 1: [2], 2: [1, 3], 3: []})
    assert graph.natural_loops() == ()
    edge = graph.second_entry()
    assert edge is not None
    assert set(edge) == {1, 2}
