"""The control flow that is lifted, as a graph of blocks: its order, dominators and natural loops.

:func:`layout_advise.mockup.lift.inline_calls.build_flow` makes one of a region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Const, Expr, Flags, Gpr, Location, Op, Read, Semantics, SetEffect
from layout_advise.mockup.machine.call_abi import Opaque
from layout_advise.mockup.machine.disassembly import Insn
from layout_advise.tracer.code.flow_graph import FlowGraph, flow_graph

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


_FLAGS_BEFORE = Gpr(17)
"""Stands for the flags before a string operation, which leaves them alone: behind :data:`RIP`."""
_LEFT = Gpr(18)
"""Stands for the iterations that are left of a chunk."""


def one_element(
    insn: Insn, semantics: Callable[[Insn], Semantics]
) -> tuple[FlowStep, FlowStep, tuple[FlowStep, ...], FlowStep]:
    """The steps of a ``rep`` operation that is written as a loop: before it; the test of how many elements are left, whether
    that is zero; one element; after it."""
    left = Read(Gpr(1), "i64")

    def step(place: Location, value: Expr) -> FlowStep:
        return FlowStep(insn.address, insn.text, Semantics((SetEffect(place, value),)))

    moved = FlowStep(insn.address, insn.text, semantics(replace(insn, prefixes=frozenset())))
    return (
        step(_FLAGS_BEFORE, Read(Flags(), "flags")),
        step(Flags(), Op("flags.logic", "flags", (left,))),
        (moved, step(Gpr(1), Op("add", "i64", (left, Const("i64", 2**64 - 1))))),
        step(Flags(), Read(_FLAGS_BEFORE, "flags")),
    )


def first_iteration(pc: int, iterations: int) -> FlowStep:
    """Before the first of so many iterations of a loop whose head is at ``pc``."""
    return FlowStep(pc, "chunk", Semantics((SetEffect(_LEFT, Const("i64", iterations)),)))


def one_iteration_less(pc: int) -> tuple[FlowStep, FlowStep]:
    """After an iteration, where no flags are awaited: the count, and the test of whether it is zero."""
    less = Op("add", "i64", (Read(_LEFT, "i64"), Const("i64", 2**64 - 1)))
    zero = Op("flags.logic", "flags", (Read(_LEFT, "i64"),))
    return (
        FlowStep(pc, "chunk", Semantics((SetEffect(_LEFT, less),))),
        FlowStep(pc, "chunk", Semantics((SetEffect(Flags(), zero),))),
    )


@dataclass(frozen=True, slots=True)
class Go:
    """Goes on at ``target``; None: the hotspot returns."""

    target: int | None


@dataclass(frozen=True, slots=True)
class Cond:
    """Goes to ``taken`` where ``cc`` holds, else to ``other``."""

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
class Unreachable:
    """Ends a block that never goes on: it called abort or the like. ``reason``: it would go on, but no call that was looked
    at came here, and this could not be lifted; ``rejoins`` are the run-time addresses of the heads of the loops that it
    would come back to."""

    reason: str = ""
    rejoins: frozenset[int] = frozenset()


Term = Go | Cond | Switch | Unreachable


@dataclass(slots=True)
class FlowBlock:
    """A block; ``start`` is the run-time address it comes from. ``untaken``: no call that was looked at came here."""

    id: int
    start: int
    steps: list[FlowStep] = field(default_factory=list)
    term: Term = field(default_factory=Unreachable)
    untaken: bool = False

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


@dataclass(frozen=True, slots=True)
class FlowLoop:
    """A natural loop; ``exits`` are (block inside, pad outside), ``parent`` the head of the enclosing loop."""

    head: int
    blocks: frozenset[int]
    latch: int
    preheader: int
    exits: tuple[tuple[int, int], ...]
    parent: int | None
    depth: int


NO_GRAPH = FlowGraph((), {}, {}, {}, {})
"""Of a flow that is not analysed yet."""


@dataclass(slots=True)
class Flow:
    """The blocks, their ``graph`` and its loops, inner before outer; ``loop_of`` is the head of the innermost one."""

    blocks: dict[int, FlowBlock]
    entry: int
    exit: int
    graph: FlowGraph = NO_GRAPH
    loops: dict[int, FlowLoop] = field(default_factory=dict)
    loop_of: dict[int, int | None] = field(default_factory=dict)


def analyse(flow: Flow) -> None:
    """Computes graph and loops anew from the blocks (in place)."""
    graph = flow.graph = flow_graph(flow.entry, {block.id: block.successors for block in flow.blocks.values()})
    if (edge := graph.second_entry()) is not None:
        raise NotLiftedError(flow.blocks[edge[0]].start, "jump", "irreducible control flow (a loop with two entries)")
    place = {block: i for i, block in enumerate(graph.order)}
    flow.loops, flow.loop_of = {}, dict.fromkeys(graph.order)
    depth: dict[int | None, int] = {None: 0}
    outermost_first = graph.natural_loops()
    for loop in outermost_first:
        depth[loop.head] = depth[loop.parent] + 1
        flow.loop_of.update(dict.fromkeys(loop.blocks, loop.head))
    for loop in sorted(outermost_first, key=lambda one: (len(one.blocks), place[one.head])):
        preheader = next(p for p in graph.predecessors[loop.head] if p not in loop.blocks)
        flow.loops[loop.head] = FlowLoop(
            loop.head, loop.blocks, loop.latches[0], preheader, loop.exits, loop.parent, depth[loop.head]
        )
