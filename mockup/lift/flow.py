"""The control flow that is lifted, as a graph of blocks: its order, dominators and natural loops.

:func:`layout_advise.mockup.lift.inline_calls.build_flow` makes one of a region.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import networkx as nx

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Expr, Gpr, Semantics
from layout_advise.mockup.machine.call_abi import Opaque

RSP = Gpr(4)
RIP = Gpr(16)
"""Stands for the place where a loop is left: behind the general registers, as in the agent's ``la_registers``."""


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One instruction. ``call`` names the pure function that it calls, ``opaque`` is the unknown one."""

    pc: int
    text: str
    semantics: Semantics
    call: str | None = None
    opaque: Opaque | None = None


@dataclass(frozen=True, slots=True)
class Go:
    """On to ``target``; None: the hotspot returns."""

    target: int | None


@dataclass(frozen=True, slots=True)
class Cond:
    """To ``taken`` where ``cc`` holds, else to ``other``."""

    cc: str
    taken: int
    other: int


@dataclass(frozen=True, slots=True)
class Switch:
    """To ``targets[i]`` where the run-time address ``value`` equals ``keys[i]``; ``load``: it is read from there."""

    value: Expr | None
    load: Expr | None
    keys: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hang:
    """Never goes on (the code after it was an abort)."""


Term = Go | Cond | Switch | Hang


@dataclass(slots=True)
class FlowBlock:
    """A block; ``start`` is the run-time address it comes from."""

    id: int
    start: int
    steps: list[FlowStep] = field(default_factory=list)
    term: Term = field(default_factory=Hang)

    @property
    def successors(self) -> tuple[int, ...]:
        """Ids of the blocks that may follow, without repetition."""
        match self.term:
            case Go(target):
                return () if target is None else (target,)
            case Cond(_, taken, other):
                return tuple(dict.fromkeys((taken, other)))
            case Switch(_, _, _, targets):
                return tuple(dict.fromkeys(targets))
        return ()

    def redirect(self, old: int, new: int) -> None:
        """Let every edge to ``old`` go to ``new``."""
        match self.term:
            case Go(target) if target == old:
                self.term = Go(new)
            case Cond(cc, taken, other):
                self.term = Cond(cc, new if taken == old else taken, new if other == old else other)
            case Switch(value, load, keys, targets):
                self.term = Switch(value, load, keys, tuple(new if t == old else t for t in targets))


@dataclass(slots=True)
class FlowLoop:
    """A natural loop; ``exits`` are (block inside, pad outside), ``parent`` the head of the enclosing loop."""

    head: int
    blocks: set[int]
    latch: int
    preheader: int
    exits: list[tuple[int, int]]
    parent: int | None
    depth: int


@dataclass(slots=True)
class Flow:
    """The whole graph; ``order`` is a reverse postorder, ``loops`` come inner before outer."""

    blocks: dict[int, FlowBlock]
    entry: int
    exit: int
    order: list[int] = field(default_factory=list)
    preds: dict[int, list[int]] = field(default_factory=dict)
    idom: dict[int, int | None] = field(default_factory=dict)
    level: dict[int, int] = field(default_factory=dict)
    loops: dict[int, FlowLoop] = field(default_factory=dict)
    loop_of: dict[int, int | None] = field(default_factory=dict)

    def dominates(self, above: int, below: int) -> bool:
        """Whether every path to ``below`` passes ``above``."""
        at: int | None = below
        while at is not None and self.level[at] > self.level[above]:
            at = self.idom[at]
        return at == above

    def meet(self, a: int, b: int) -> int:
        """The nearest block that dominates both."""
        while a != b:
            if self.level[a] < self.level[b]:
                a, b = b, a
            up = self.idom[a]
            assert up is not None
            a = up
        return a

    def loops_around(self, block: int) -> Iterator[FlowLoop]:
        """The loops that contain ``block``, innermost first."""
        head = self.loop_of[block]
        while head is not None:
            loop = self.loops[head]
            yield loop
            head = loop.parent


def analyse(flow: Flow) -> None:
    """Compute order, predecessors, dominators and loops anew from the blocks."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_node(flow.entry)
    work = [flow.entry]
    seen = {flow.entry}
    while work:
        at = work.pop()
        for following in flow.blocks[at].successors:
            graph.add_edge(at, following)
            if following not in seen:
                seen.add(following)
                work.append(following)
    flow.order = list(reversed(list(nx.dfs_postorder_nodes(graph, flow.entry))))
    flow.preds = {block: sorted(graph.predecessors(block)) for block in flow.order}
    idom = dict(nx.immediate_dominators(graph, flow.entry))
    flow.idom = {block: None if block == flow.entry else idom[block] for block in flow.order}
    flow.level = {}
    for block in flow.order:
        up = flow.idom[block]
        flow.level[block] = 0 if up is None else flow.level[up] + 1
    _find_loops(flow)


def _find_loops(flow: Flow) -> None:
    latches: dict[int, list[int]] = {}
    place = {block: i for i, block in enumerate(flow.order)}
    for block in flow.order:
        for following in flow.blocks[block].successors:
            if place[following] <= place[block]:
                if not flow.dominates(following, block):
                    raise NotLiftedError(
                        flow.blocks[block].start, "jump", "irreducible control flow (a loop with two entries)"
                    )
                latches.setdefault(following, []).append(block)
    bodies = {head: _loop_body(flow, head, tails) for head, tails in latches.items()}
    flow.loops = {}
    for head in sorted(bodies, key=lambda h: (len(bodies[h]), place[h])):
        body = bodies[head]
        outer = [h for h in bodies if h != head and head in bodies[h]]
        before = [p for p in flow.preds[head] if p not in body]
        exits = [(b, s) for b in flow.order if b in body for s in flow.blocks[b].successors if s not in body]
        parent = min(outer, key=lambda h: len(bodies[h])) if outer else None
        flow.loops[head] = FlowLoop(head, body, latches[head][0], before[0], exits, parent, len(outer) + 1)
    flow.loop_of = dict.fromkeys(flow.order)
    for head, loop in reversed(flow.loops.items()):
        for block in loop.blocks:
            flow.loop_of[block] = head


def _loop_body(flow: Flow, head: int, tails: list[int]) -> set[int]:
    body = {head, *tails}
    work = [tail for tail in tails if tail != head]
    while work:
        for before in flow.preds[work.pop()]:
            if before not in body:
                body.add(before)
                work.append(before)
    return body
