"""Loops with several entries get one: what lies between the other entries and the head is copied (node splitting).

Compilers jump into the middle of a loop (a first half iteration left out, a test that stands at the bottom). Such a graph
has no natural loops. In each cycle with several entries one of them is made the head; the blocks that the others reach
before the head are copied, and are run once on the way in. (Hecht and Ullman, Flow graph reducibility, 1972.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import networkx as nx

from layout_advise.tracer.code.flow_graph import reachable

GROWTH = 4
"""So many times larger the graph may become."""

Cycle = tuple[set[int], list[int]]


def make_reducible(
    successors: Callable[[int], Iterable[int]],
    copy: Callable[[int], int],
    redirect: Callable[[int, int, int], None],
    entry: int,
) -> int | None:
    """Splits nodes until every cycle has one entry; the graph is reached through the functions alone.

    ``copy(node)`` makes a node with the same successors, ``redirect(node, old, new)`` moves its edges from ``old`` to
    ``new``.
    Returns None when done; where the graph would grow too much, an entry of the cycle that cannot be undone.
    """
    first: int | None = None
    while True:
        graph = reachable(entry, successors)
        first = first or graph.number_of_nodes()
        cycle = _several_entries(graph, set(graph.nodes), entry)
        if cycle is None:
            return None
        head, others = _cheapest(graph, *cycle)
        if graph.number_of_nodes() + len(others) > GROWTH * first + 64:
            return head
        made = {node: copy(node) for node in sorted(others)}
        for node in sorted(others):
            for target in set(graph.successors(node)) & others:
                redirect(made[node], target, made[target])
        for node in sorted((set(cycle[1]) - {head}) & others):
            for before in list(graph.predecessors(node)):
                if before not in cycle[0]:
                    redirect(before, node, made[node])


def _several_entries(graph: nx.DiGraph[int], nodes: set[int], entry: int) -> Cycle | None:
    """An outermost cycle with several entries, and these; cycles inside others are looked at without the others' heads."""
    work = [nodes]
    while work:
        inside = work.pop()
        for part in nx.strongly_connected_components(graph.subgraph(inside)):
            if len(part) == 1:
                continue
            entries = sorted(n for n in part if n == entry or any(p not in part for p in graph.predecessors(n)))
            if len(entries) > 1:
                return set(part), entries
            work.append(set(part) - set(entries))
    return None


def _cheapest(graph: nx.DiGraph[int], part: set[int], entries: list[int]) -> tuple[int, set[int]]:
    """The entry that makes the best head, and the nodes to be copied for it: those that the others reach before it."""
    choices: list[tuple[int, int, set[int]]] = []
    for head in entries:
        body = graph.subgraph(part - {head})
        others: set[int] = set()
        for other in entries:
            if other != head and other not in others:
                others |= {other} | nx.descendants(body, other)
        choices.append((len(others), head, others))
    _, head, others = min(choices, key=lambda choice: choice[:2])
    return head, others
