"""Dominators and natural loops of a control-flow graph, which is given as the successors of each node.

Terms as in Aho, Lam, Sethi and Ullman, Compilers, section 9.6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import networkx as nx


@dataclass(frozen=True, slots=True)
class NaturalLoop:
    """A natural loop: all back edges to ``head`` together. ``parent`` is the head of the next enclosing loop.

    ``latches`` are the sources of the back edges, ``exits`` the edges (block inside, block outside) that leave the loop.
    """

    head: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    exits: tuple[tuple[int, int], ...]
    parent: int | None


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The nodes that are reachable from the entry, in reverse postorder, with their edges and immediate dominators.

    ``predecessors`` are ascending; ``idom`` of the entry is None; ``level`` is the depth in the dominator tree.
    """

    order: tuple[int, ...]
    successors: Mapping[int, tuple[int, ...]]
    predecessors: Mapping[int, tuple[int, ...]]
    idom: Mapping[int, int | None]
    level: Mapping[int, int]

    def dominates(self, above: int, below: int) -> bool:
        """Returns whether every path from the entry to ``below`` passes ``above``."""
        at: int | None = below
        while at is not None and self.level[at] > self.level[above]:
            at = self.idom[at]
        return at == above

    def common_dominator(self, a: int, b: int) -> int:
        """The nearest node that dominates both."""
        while a != b:
            if self.level[a] < self.level[b]:
                a, b = b, a
            up = self.idom[a]
            assert up is not None
            a = up
        return a

    def retreating(self) -> Iterator[tuple[int, int]]:
        """The edges that do not lead forward in reverse postorder."""
        place = {node: i for i, node in enumerate(self.order)}
        return ((a, b) for a in self.order for b in self.successors[a] if place[b] <= place[a])

    def second_entry(self) -> tuple[int, int] | None:
        """A retreating edge to a node that does not dominate its source: the graph is irreducible. None where it is not."""
        return next(((a, b) for a, b in self.retreating() if not self.dominates(b, a)), None)

    def natural_loops(self) -> tuple[NaturalLoop, ...]:
        """The loops, outermost first; a cycle with several entries is none."""
        latches: dict[int, list[int]] = {}
        for source, target in self.retreating():
            if self.dominates(target, source):
                latches.setdefault(target, []).append(source)
        bodies = {head: self._body(head, tails) for head, tails in latches.items()}
        place = {node: i for i, node in enumerate(self.order)}
        found: list[NaturalLoop] = []
        for head in sorted(bodies, key=lambda head: (-len(bodies[head]), place[head])):
            body = bodies[head]
            around = [loop for loop in found if head in loop.blocks]
            parent = min(around, key=lambda loop: len(loop.blocks)).head if around else None
            exits = tuple((a, b) for a in self.order if a in body for b in self.successors[a] if b not in body)
            found.append(NaturalLoop(head, body, tuple(latches[head]), exits, parent))
        return tuple(found)

    def turned_loops(self, within: Collection[int]) -> Iterator[tuple[tuple[NaturalLoop, ...], ...]]:
        """The cycles among the nodes ``within`` that are entered at several of them, of which none dominates the others, as
        compilers leave them that copy a loop's test: each as the loops that it would be if it were entered at one node only,
        which every way round it passes, but for those of natural loops without that node. Those with the same ways beside
        them are told together, and first those with most."""
        known = [loop.blocks for loop in self.natural_loops()]
        edges = [(a, b) for a in within for b in self.successors[a] if b in within]
        graph: nx.DiGraph[int] = nx.DiGraph(edges)
        for part in map(frozenset, nx.strongly_connected_components(graph)):
            entries = [n for n in part if n == self.order[0] or any(p not in part for p in self.predecessors[n])]
            if len(entries) > 1:
                inside = {node: [after for after in self.successors[node] if after in part] for node in part}
                found: dict[frozenset[int], list[NaturalLoop]] = {}
                for head in (node for node in self.order if node in part):
                    beside = _cycles_beside(head, inside)
                    deeper = frozenset[int]().union(*(blocks for blocks in known if blocks < part and head not in blocks))
                    if beside <= deeper and flow_graph(head, inside).second_entry() is None:
                        found.setdefault(beside, []).append(self._turned(head, part))
                yield tuple(tuple(found[beside]) for beside in sorted(found, key=len, reverse=True))

    def _turned(self, head: int, part: frozenset[int]) -> NaturalLoop:
        latches = tuple(node for node in self.predecessors[head] if node in part)
        exits = tuple((a, b) for a in self.order if a in part for b in self.successors[a] if b not in part)
        return NaturalLoop(head, part, latches, exits, None)

    def _body(self, head: int, tails: list[int]) -> frozenset[int]:
        body = {head, *tails}
        work = [tail for tail in tails if tail != head]
        while work:
            for before in self.predecessors[work.pop()]:
                if before not in body:
                    body.add(before)
                    work.append(before)
        return frozenset(body)


def _cycles_beside(head: int, inside: Mapping[int, Iterable[int]]) -> frozenset[int]:
    """The nodes of cycles that do not pass ``head``."""
    rest: nx.DiGraph[int] = nx.DiGraph([(a, b) for a in inside for b in inside[a] if head not in (a, b)])
    cycles = (part for part in nx.strongly_connected_components(rest) if len(part) > 1 or rest.has_edge(*part, *part))
    return frozenset[int]().union(*cycles)


def flow_graph(entry: int, successors: Mapping[int, Iterable[int]]) -> FlowGraph:
    """The graph with these edges, as far as it is reachable from ``entry``."""
    graph = reachable(entry, successors.__getitem__)
    order = reverse_postorder(graph, entry)
    above = nx.immediate_dominators(graph, entry)
    idom: dict[int, int | None] = {node: None if node == entry else above[node] for node in order}
    level: dict[int, int] = {}
    for node in order:
        up = idom[node]
        level[node] = 0 if up is None else level[up] + 1
    return FlowGraph(
        order,
        {node: tuple(graph.successors(node)) for node in order},
        {node: tuple(sorted(graph.predecessors(node))) for node in order},
        idom,
        level,
    )


def reachable(entry: int, successors: Callable[[int], Iterable[int]]) -> nx.DiGraph[int]:
    """The part of a graph that is reachable from ``entry``."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_node(entry)
    work = [entry]
    seen = {entry}
    while work:
        at = work.pop()
        for following in successors(at):
            graph.add_edge(at, following)
            if following not in seen:
                seen.add(following)
                work.append(following)
    return graph


def reverse_postorder(graph: nx.DiGraph[int], entry: int) -> tuple[int, ...]:
    """The nodes reachable from ``entry``, each before its successors but for retreating edges."""
    return tuple(reversed(list(nx.dfs_postorder_nodes(graph, entry))))
