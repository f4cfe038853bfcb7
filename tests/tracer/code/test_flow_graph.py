"""Dominators and natural loops against their definitions, on random graphs."""

from __future__ import annotations

from itertools import chain

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


def collapses(head: int, part: frozenset[int], edges: list[list[int]]) -> bool:
    """Whether the part, entered at ``head``, is reducible: by removing cycles of one node and joining each node to its only
    predecessor (Hecht and Ullman's T1 and T2) one node is left."""
    after = {node: {to for to in edges[node] if to in part} for node in part}
    while len(after) > 1:
        after = {node: following - {node} for node, following in after.items()}
        before = {node: [a for a, following in after.items() if node in following] for node in after}
        joined = next((node for node, above in before.items() if len(above) == 1 and node != head), None)
        if joined is None:
            return False
        (above,) = before[joined]
        after[above] = (after[above] | after.pop(joined)) - {joined}
    return True


@given(GRAPHS)
def test_cycles_with_several_entries_as_loops_with_one(edges: list[list[int]]) -> None:
    graph = flow_graph(0, dict(enumerate(edges)))
    natural = [loop.blocks for loop in graph.natural_loops()]
    for groups in graph.turned_loops(graph.order):
        ways = list(chain.from_iterable(groups))
        if not ways:
            continue
        (part,) = {loop.blocks for loop in ways}
        assert all(reached(edges, a) >= part for a in part)
        assert len({b for b in part if b == 0 or any(b in edges[a] for a in graph.order if a not in part)}) > 1
        kept = [[b for b in edges[node] if b in part] if node in part else [] for node in range(NODES)]
        around = {head: {a for a in part - {head} if any(a in reached(kept, b, head) for b in kept[a])} for head in part}
        for head, beside in around.items():
            deeper = {node for blocks in natural if blocks < part and head not in blocks for node in blocks}
            assert (head in {loop.head for loop in ways}) == (beside <= deeper and collapses(head, part, edges))
        assert [len({frozenset(around[loop.head]) for loop in one}) for one in groups] == [1] * len(groups)
        assert len({frozenset(around[one[0].head]) for one in groups}) == len(groups)
        for loop in ways:
            assert set(loop.latches) == {a for a in part if loop.head in edges[a]}
            assert set(loop.exits) == {(a, b) for a in part for b in edges[a] if b not in part}


def test_a_loop_whose_test_was_copied_is_one_from_where_all_its_ways_meet() -> None:
    """prodigal's ``dprog``: which of two ways an iteration begins with is asked before the loop and at its end."""
    graph = flow_graph(0, {0: [1, 2], 1: [3], 2: [3], 3: [4, 5], 4: [4, 5], 5: [1, 2, 6], 6: []})
    (((first, second),),) = graph.turned_loops(graph.order)
    assert {first.head, second.head} == {3, 5}
    assert first.blocks == {1, 2, 3, 4, 5}
    assert (first.exits, first.parent) == (((5, 6),), None)
    assert list(graph.turned_loops([6, 4])) == []
