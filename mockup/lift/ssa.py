"""Static single assignment over 64-bit locations: registers, vector lanes, flags and the cells of the frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from layout_advise.mockup.ir.effects import (
    AtomicEffect,
    Const,
    Expr,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    MaskBit,
    Semantics,
    SetEffect,
    StoreEffect,
)
from layout_advise.mockup.ir.lifted import Origin
from layout_advise.mockup.ir.node import PINNED, SIDE_EFFECTS, GraphAccess, Node
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.flow import RSP, Cond, Flow, Switch
from layout_advise.mockup.lift.machine_state import MachineState, Place, ReadOnly, State, make
from layout_advise.mockup.lift.translate import translate
from layout_advise.mockup.machine.entry_values import Known


@dataclass(slots=True)
class SsaProgram:
    """The hotspot in SSA form. ``events`` are the loads, stores and calls of a block in order, ``conds`` the i1 of blocks
    that end in a condition, ``switches`` the target address of those that jump through a table; ``outs`` what the result
    registers hold at the exit. ``exits`` are the values carried out of loops, by pad, ``trips`` trip counts and ``stays``
    the conditions to go on that they replace, by loop head. ``references`` are all memory operands (pc, operand) of
    the code, ``framed`` those that became cells of the frame."""

    flow: Flow
    graph: Graph
    events: dict[int, list[Node]] = field(default_factory=dict)
    phis: dict[int, list[Node]] = field(default_factory=dict)
    conds: dict[int, Node] = field(default_factory=dict)
    switches: dict[int, Node] = field(default_factory=dict)
    outs: dict[Gpr | Lane, Node] = field(default_factory=dict)
    exits: dict[int, list[Node]] = field(default_factory=dict)
    trips: dict[int, Node] = field(default_factory=dict)
    stays: dict[int, Node] = field(default_factory=dict)
    references: set[tuple[int, int]] = field(default_factory=set)
    framed: set[tuple[int, int]] = field(default_factory=set)

    def roots(self) -> Iterator[Node]:
        """The roots of liveness: stores, unknown calls, conditions, jump targets, results."""
        for events in self.events.values():
            yield from (node for node in events if node.op in SIDE_EFFECTS)
        yield from self.conds.values()
        yield from self.switches.values()
        yield from self.trips.values()
        yield from self.outs.values()

    def live(self) -> dict[Node, None]:
        """Everything that the roots need, through phis and memory addresses, in an order that is the same every time (a
        set's is that of the nodes' addresses, and what is made in it would differ from one lifting to the next)."""
        seen: dict[Node, None] = {}
        work = list(self.roots())
        while work:
            node = work.pop()
            if node not in seen:
                seen[node] = None
                work.extend(node.args)
        return seen


def build_ssa(
    flow: Flow, *, frame_cells: bool, results: tuple[Gpr | Lane, ...], constant: ReadOnly, known: Known = ()
) -> SsaProgram:
    """SSA of ``flow``; loads of what ``constant`` knows become constants, and ``known`` is what vector registers hold at the
    entry.

    Raises :class:`layout_advise.mockup.lift.machine_state.FrameEscapes` where frame cells do not work.
    """
    steps = [step.semantics for block in flow.graph.order for step in flow.blocks[block].steps]
    masks = any(isinstance(e, SetEffect) and isinstance(e.location, MaskBit) for each in steps for e in each.effects)
    frames, written = _frame_states(flow, frame_cells, constant, masks)
    program = SsaProgram(flow, Graph())
    wide = any(_widens(each) for each in steps)
    builder = _SsaBuilder(
        program, MachineState(program.graph, frame_cells, constant, wide, dict(known), masks), frames, written
    )
    for block in flow.graph.order:
        builder.block(block)
    builder.close_loops()
    last = builder.out[flow.exit]
    program.outs = {place: builder.owner.read(last, place) for place in results if place in last}
    rewrite(program, {})
    return program


def _widens(semantics: Semantics) -> bool:
    """Returns whether something other than zeros goes to the upper half of a 256-bit register."""
    sets = (e for e in semantics.effects if isinstance(e, SetEffect))
    return any(isinstance(s.location, Lane) and s.location.index > 1 and s.value != Const("i64", 0) for s in sets)


def _frame_states(
    flow: Flow, frame_cells: bool, constant: ReadOnly, masks: bool
) -> tuple[dict[int, State], dict[int, set[Place]]]:
    """The places that hold frame addresses at the start of each block, and the places that each block writes.

    A forward analysis to a fixed point: places whose frame address differs between predecessors are dropped.
    """
    graph = Graph()
    owner = MachineState(graph, frame_cells, constant, wide=False, masks=masks)
    at: dict[int, State] = {flow.entry: {RSP: owner.default(RSP)} if frame_cells else {}}
    written: dict[int, set[Place]] = {block: set() for block in flow.graph.order}
    changed = True
    while changed:
        changed = False
        for block in flow.graph.order:
            if block not in at:
                continue
            state = dict(at[block])
            events: list[Node] = []
            for step in flow.blocks[block].steps:
                translate(owner, state, step, events, set())
            written[block] |= {place for place, node in state.items() if at[block].get(place) is not node}
            held = {place: node for place, node in state.items() if node.op == "frame"}
            for following in flow.blocks[block].successors:
                before = at.get(following)
                merged = held if before is None else {p: n for p, n in before.items() if held.get(p) is n}
                if before is None or len(merged) != len(before):
                    at[following] = dict(merged)
                    changed = True
    return at, written


class _SsaBuilder:
    """Blocks in reverse postorder: a place gets a phi where its values differ, or at the head of a loop that writes it."""

    def __init__(
        self, program: SsaProgram, owner: MachineState, frames: dict[int, State], written: dict[int, set[Place]]
    ) -> None:
        self.program, self.owner, self.frames, self.written = program, owner, frames, written
        self.out: dict[int, State] = {}
        self.heads: dict[int, dict[Place, Node]] = {}

    def block(self, block: int) -> None:
        """Translate one block; all its predecessors but latches are done."""
        program, g = self.program, self.program.graph
        g.block = block
        state = self._entry_state(block)
        events: list[Node] = []
        source = program.flow.blocks[block]
        for step in source.steps:
            translate(self.owner, state, step, events, program.framed)
            for effect in step.semantics.effects:
                if isinstance(effect, LoadEffect | StoreEffect | AtomicEffect):
                    program.references.add((step.pc, effect.operand))
        last = source.steps[-1].pc if source.steps else source.start
        g.origin = Origin(last)
        match source.term:
            case Cond(cc, _, _):
                program.conds[block] = make(g, f"cond.{cc}", "i1", (self.owner.read(state, Flags()),))
            case Switch(value, load, _, _):
                program.switches[block] = self._target(state, value, load, events)
                if load is not None:
                    program.references.add((last, 0))
        program.events[block] = events
        self.out[block] = state

    def _target(self, state: State, value: Expr | None, load: Expr | None, events: list[Node]) -> Node:
        if value is not None:
            return self.owner.expression(state, value, {})
        assert load is not None
        node = self.program.graph.raw("load", "i64", (self.owner.expression(state, load, {}),), GraphAccess(0, 0))
        events.append(node)
        return node

    def _entry_state(self, block: int) -> State:
        flow = self.program.flow
        before = flow.graph.predecessors[block]
        known = self.frames.get(block, {})
        if not before:
            return dict(known)
        if block in flow.loops:
            return self._loop_state(block, known)
        state = dict(self.out[before[0]])
        if len(before) == 1:
            return state
        outs = [self.out[b] for b in before]
        for place in dict.fromkeys(p for out in outs for p in out):
            values = [self.owner.read(out, place) for out in outs]
            if place in known:
                state[place] = known[place]
            elif all(value is values[0] for value in values):
                state[place] = values[0]
            else:
                state[place] = self._phi(block, values[0], tuple(values))
        return state

    def _loop_state(self, head: int, known: State) -> State:
        loop = self.program.flow.loops[head]
        state = dict(self.out[loop.preheader])
        places = dict.fromkeys(p for block in sorted(loop.blocks) for p in sorted(self.written[block], key=repr))
        self.heads[head] = {}
        for place in places:
            if place in known:
                state[place] = known[place]
                continue
            first = self.owner.read(state, place)
            phi = self._phi(head, first, (first,))
            self.heads[head][place] = phi
            state[place] = phi
        return state

    def _phi(self, block: int, like: Node, args: tuple[Node, ...]) -> Node:
        g = self.program.graph
        g.block = block
        g.origin = Origin(self.program.flow.blocks[block].start)
        phi = g.raw("phi", like.ty, args)
        self.program.phis.setdefault(block, []).append(phi)
        return phi

    def close_loops(self) -> None:
        """Give every loop phi its value from the latch. Phi arguments are in the order of ``FlowGraph.predecessors``."""
        flow = self.program.flow
        for head, phis in self.heads.items():
            loop = flow.loops[head]
            for place, phi in phis.items():
                latest = self.owner.read(self.out[loop.latch], place)
                phi.args = tuple(latest if before == loop.latch else phi.args[0] for before in flow.graph.predecessors[head])


def rebuilt(g: Graph, node: Node, args: tuple[Node, ...]) -> Node:
    """The node like ``node`` with other arguments, simplified."""
    g.block, g.origin = node.block, node.origin
    if node.op == "lin":
        const, coefs = node.imm
        return g.lin(node.ty, const, zip(args, coefs, strict=True))
    return make(g, node.op, node.ty, args)


def rewrite(program: SsaProgram, replace: dict[Node, Node]) -> None:
    """Replace nodes everywhere and simplify again, until no phi is left whose arguments are all the same.

    Pinned nodes keep their identity, only their arguments change.
    """
    while True:
        memo: dict[Node, Node] = {}
        _apply(program, replace, memo)
        replace = _trivial_phis(program)
        if not replace:
            return


def renew(program: SsaProgram, root: Node, replace: dict[Node, Node], memo: dict[Node, Node]) -> Node:
    """``root`` with replacements applied below it; ``memo`` is shared between the calls of one pass."""
    stack = [root]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        other = replace.get(node, node)
        if other is not node:
            if other in memo:
                memo[node] = memo[other]
            else:
                stack.append(other)
            continue
        if node.op in PINNED or not node.args:
            memo[node] = node
            continue
        missing = [a for a in node.args if a not in memo]
        if missing:
            stack.extend(missing)
            continue
        args = tuple(memo[a] for a in node.args)
        # conditions that waited for their flags are tried again even if nothing below them changed
        same = args == node.args and not node.op.startswith("cond.")
        memo[node] = node if same else rebuilt(program.graph, node, args)
    return memo[root]


def _apply(program: SsaProgram, replace: dict[Node, Node], memo: dict[Node, Node]) -> None:
    def new(node: Node) -> Node:
        return renew(program, node, replace, memo)

    for block, phis in program.phis.items():
        program.phis[block] = [phi for phi in phis if phi not in replace]
    pinned: Iterable[Node] = [
        n for group in (program.events, program.phis, program.exits) for nodes in group.values() for n in nodes
    ]
    for node in pinned:
        node.args = tuple(new(a) for a in node.args)
    program.conds = {block: new(node) for block, node in program.conds.items()}
    program.switches = {block: new(node) for block, node in program.switches.items()}
    program.trips = {head: new(node) for head, node in program.trips.items()}
    program.stays = {head: new(node) for head, node in program.stays.items()}
    program.outs = {place: new(node) for place, node in program.outs.items()}


def _trivial_phis(program: SsaProgram) -> dict[Node, Node]:
    """Phis that choose between themselves and one other value; and those that nobody needs."""
    live = program.live()
    found: dict[Node, Node] = {}
    for block, phis in program.phis.items():
        program.phis[block] = [phi for phi in phis if phi in live]
        for phi in program.phis[block]:
            others = [a for a in dict.fromkeys(phi.args) if a is not phi]
            if len(others) == 1 and others[0] not in found:
                found[phi] = others[0]
    return found
