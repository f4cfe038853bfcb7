"""SSA construction: registers, vector lanes, flags and the cells of the frame become values, block by block."""

from __future__ import annotations

from layout_advise.errors import NotLiftedError
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
    X87Depth,
)
from layout_advise.mockup.ir.lifted import Origin
from layout_advise.mockup.ir.node import GraphAccess, Node
from layout_advise.mockup.ir.rules.form import is_const
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.flow import RSP, Cond, Flow, Switch
from layout_advise.mockup.lift.machine_state import MachineState, Place, ReadOnly, State, make
from layout_advise.mockup.lift.ssa import SsaProgram, conditions_on_each_path, rewrite
from layout_advise.mockup.lift.translate import translate
from layout_advise.mockup.machine.entry_values import Known


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
    program.depth = builder.owner.read(last, X87Depth())
    rewrite(program, {})
    _leaves_no_number(program)
    conditions_on_each_path(program)
    return program


def _leaves_no_number(program: SsaProgram) -> None:
    """Raises NotLiftedError where a result is left on the x87 stack: that is neither compared nor handed on."""
    depth, program.depth = program.depth, None
    if depth is not None and not is_const(depth, 0):
        raise NotLiftedError(program.flow.entry, "the function", "it leaves a result on the x87 stack")


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
                    program.references.add((step.pc, effect.operand, block))
        last = source.steps[-1].pc if source.steps else source.start
        g.origin = Origin(last, block=block)
        match source.term:
            case Cond(cc, _, _):
                program.conds[block] = make(g, f"cond.{cc}", "i1", (self.owner.read(state, Flags()),))
            case Switch(value, load, _, _):
                program.switches[block] = self._target(state, value, load, events)
                if load is not None:
                    program.references.add((last, 0, block))
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
