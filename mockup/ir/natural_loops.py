"""Natural loops of a control-flow graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx

from layout_advise.errors import NotLiftedError


@dataclass(frozen=True, slots=True)
class NaturalLoop:
    """A natural loop: all back edges to ``head`` together. ``parent`` is the head of the next enclosing loop.

    ``exits`` are the edges (block inside, block outside) that leave it.
    """

    head: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    exits: tuple[tuple[int, int], ...]
    parent: int | None


def natural_loops(
    graph: nx.DiGraph[int],
    order: list[int],
    dominates: Callable[[int, int], bool],
    text: Callable[[int], str],
    *,
    strict: bool = True,
) -> tuple[NaturalLoop, ...]:
    """The loops of ``graph``, outermost first; ``order`` is a reverse postorder of it.

    Raises NotLiftedError for irreducible control flow, with the ``text`` of the block whose jump enters the loop anew; not
    ``strict``: what has two entries is no loop here, and the others are found.
    """
    position = {start: i for i, start in enumerate(order)}
    latches: dict[int, list[int]] = {}
    for start in order:
        for successor in graph.successors(start):
            if position[successor] > position[start]:
                continue
            if not dominates(successor, start):
                if not strict:
                    continue
                raise NotLiftedError(start, text(start), "irreducible control flow (a loop with two entries)")
            latches.setdefault(successor, []).append(start)
    bodies = {head: _body(graph, head, tails) for head, tails in latches.items()}
    heads = sorted(bodies, key=lambda head: (-len(bodies[head]), position[head]))
    found: list[NaturalLoop] = []
    for head in heads:
        around = [loop for loop in found if head in loop.blocks]
        parent = min(around, key=lambda loop: len(loop.blocks)).head if around else None
        exits = tuple((b, s) for b in order if b in bodies[head] for s in graph.successors(b) if s not in bodies[head])
        found.append(NaturalLoop(head, bodies[head], tuple(latches[head]), exits, parent))
    return tuple(found)


def _body(graph: nx.DiGraph[int], head: int, tails: list[int]) -> frozenset[int]:
    seen = {head, *tails}
    work = [tail for tail in tails if tail != head]
    while work:
        for before in graph.predecessors(work.pop()):
            if before not in seen:
                seen.add(before)
                work.append(before)
    return frozenset(seen)
