"""The natural loops of a hotspot's machine code: which instruction runs in which loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx

from layout_advise.tracer.code.instructions import Instruction, decode, functions_of
from layout_advise.tracer.code.region import Region

_ROOT = -1


@dataclass(frozen=True, slots=True)
class MachineLoop:
    """``head`` is the first instruction, ``parent`` the number of the loop around it in the same function, ``depth`` counts
    the loops around it, ``code`` holds the addresses of all its instructions."""

    head: int
    parent: int | None
    depth: int
    code: frozenset[int]


def loops_of(region: Region) -> tuple[MachineLoop, ...]:
    """The loops of ``region`` and of each of its callees, outer before inner. Back edges into a block that does not dominate
    their source (irreducible control flow) make no loop. Raises :class:`TraceError` where the code does not decode."""
    code = decode(region)
    entries = {start for f in functions_of(region) for start in (f.entry, *(r.start for r in f.ranges)) if start in code}
    graph = _graph(code, entries)
    above = nx.immediate_dominators(graph, _ROOT)
    bodies: dict[int, set[int]] = {}
    for source, target in graph.edges:
        if source in above and source != _ROOT and _dominates(above, target, source):
            bodies.setdefault(target, {target}).update(_body(graph, target, source, above))
    found: list[MachineLoop] = []
    for head in sorted(bodies, key=lambda h: (-len(bodies[h]), h)):
        around = [n for n, loop in enumerate(found) if head in loop.code]
        parent = min(around, key=lambda n: len(found[n].code), default=None)
        depth = 0 if parent is None else found[parent].depth + 1
        found.append(MachineLoop(head, parent, depth, frozenset(bodies[head])))
    return tuple(found)


def innermost(loops: tuple[MachineLoop, ...], address: int) -> int | None:
    """The number of the innermost loop around the instruction at ``address``."""
    return min((n for n, loop in enumerate(loops) if address in loop.code), key=lambda n: len(loops[n].code), default=None)


def _graph(code: Mapping[int, Instruction], entries: set[int]) -> nx.DiGraph[int]:
    """Instructions and where control goes after them. What a jump through a table leads to is not known here: it may lead to
    any instruction of the code that nothing else leads to."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(code)
    graph.add_edges_from((_ROOT, entry) for entry in entries)
    for insn in code.values():
        if insn.target is not None and insn.target in code and insn.flow != "call":
            graph.add_edge(insn.address, insn.target)
        if insn.falls_through and insn.end in code:
            graph.add_edge(insn.address, insn.end)
    indirect = [insn.address for insn in code.values() if insn.flow == "jump-indirect"]
    if indirect:
        orphans = [a for a in code if graph.in_degree(a) == 0]
        graph.add_edges_from((a, b) for a in indirect for b in orphans)
    return graph


def _dominates(above: Mapping[int, int], upper: int, lower: int) -> bool:
    at = lower
    while at not in (upper, _ROOT):
        at = above[at]
    return at == upper


def _body(graph: nx.DiGraph[int], head: int, tail: int, reachable: Mapping[int, int]) -> set[int]:
    seen = {head, tail}
    work = [tail] if tail != head else []
    while work:
        for before in graph.predecessors(work.pop()):
            if before not in seen and before in reachable:
                seen.add(before)
                work.append(before)
    return seen
