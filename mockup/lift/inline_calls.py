"""The control flow of a region with its callees inlined, and edges split where later stages put statements.

After :func:`build_flow` every loop has one preheader and one latch (both with a single successor), no edge runs from a
block with several successors to one with several predecessors, every edge out of a loop passes a block of its own (the
*pad*), and all returns meet in one exit block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import CALL_TARGET, Const, Expr, Flags, Op, Read, Semantics, SetEffect
from layout_advise.mockup.ir.lifted import ANOTHER_CALLEE
from layout_advise.mockup.lift.flow import (
    RIP,
    RSP,
    Cond,
    Flow,
    FlowBlock,
    FlowStep,
    Go,
    Switch,
    Unreachable,
    analyse,
    first_iteration,
    one_element,
    one_iteration_less,
)
from layout_advise.mockup.lift.loops.ways_back import WayBack, tell_rejoined, way_back
from layout_advise.mockup.lift.reducible import make_reducible
from layout_advise.mockup.machine import cfg as control
from layout_advise.mockup.machine.call_abi import STRING_OPERATIONS, Opaque, refusal
from layout_advise.mockup.machine.call_arguments import arguments_of
from layout_advise.mockup.machine.disassembly import Insn
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.machine.openmp_runtime import refusal_remark
from layout_advise.mockup.machine.semantics.control import call_target
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region

Semantic = Callable[[Insn], Semantics]

LEVELS = 8
"""So many callees may be within each other."""
DEEP_BLOCKS = 2000
"""With more blocks only what the region itself calls is inlined."""


@dataclass(frozen=True, slots=True)
class Untaken:
    """Ways that no call looked at has taken: where their code begins. With ``all_stop`` each of them ends there, else those
    on which something cannot be lifted do. ``called`` has what the indirect calls at some addresses call: they go no other
    way."""

    starts: frozenset[int] = frozenset()
    all_stop: bool = False
    called: Mapping[int, Sequence[int]] = field(default_factory=dict)


ALL_TAKEN = Untaken()


def build_flow(
    region: Region,
    semantics: Semantic,
    pure: Callable[[str], bool],
    *,
    opaque: bool = False,
    untaken: Untaken = ALL_TAKEN,
    loops: frozenset[int] = frozenset(),
) -> Flow:
    """The flow of ``region`` with the callees it names inlined.

    ``pure`` tells the names of functions without effects; with ``opaque`` all others stay calls too, and recursive calls and
    tail jumps with them, and ``rep`` operations one instruction; those at the addresses ``loops`` are written as loops over
    their elements. On the ways that are ``untaken`` what cannot be lifted, and each call that would stay one, ends the
    way. Raises NotLiftedError for these otherwise, and for irreducible control flow.
    """
    builder = _FlowBuilder(region, semantics, pure, opaque, untaken, loops)
    exit_block = builder.new(region.entry)
    exit_block.term = Go(None)
    start = builder.new(region.entry)
    start.term = Go(builder.copy(region, exit_block.id, (region.entry,)))
    if region.chunk:
        _count_iterations(builder, region, start, exit_block)
    _end_early(builder.blocks)
    flow = Flow(builder.blocks, start.id, exit_block.id)
    _reduce(flow, builder)
    analyse(flow)
    if exit_block.id not in flow.graph.predecessors:
        raise NotLiftedError(region.entry, region.symbol, "never returns")
    _normalise(flow, builder)
    analyse(flow)
    tell_rejoined(flow, builder.ways_back)
    return flow


class _FlowBuilder:
    def __init__(
        self,
        region: Region,
        semantics: Semantic,
        pure: Callable[[str], bool],
        opaque: bool,
        untaken: Untaken,
        loops: frozenset[int],
    ) -> None:
        self.semantics, self.pure, self.opaque, self.untaken, self.loops = semantics, pure, opaque, untaken, loops
        self.path, self.load_base = region.path, region.load_base
        self.is_stub = open_image(region.path, region.load_base).is_stub
        self.callees = {one.entry: one for one in functions_of(region) if one is not region}
        self.exits = frozenset(region.exits)
        self.blocks: dict[int, FlowBlock] = {}
        self.ways_back: dict[int, WayBack] = {}
        self.on_untaken_way = 0

    def new(self, start: int) -> FlowBlock:
        block = FlowBlock(len(self.blocks), start)
        self.blocks[block.id] = block
        return block

    def copy(self, region: Region, after: int, active: tuple[int, ...]) -> int:
        """A fresh copy of the region's blocks that goes on at ``after``; its entry."""
        graph = control.build_cfg(region, indirect_calls=self.opaque, loops=False, untaken=self.untaken.starts)
        ids = {start: self.new(start) for start in graph.blocks}
        for start, source in graph.blocks.items():
            fill = self._try_to_fill if start in self.untaken.starts else self._fill
            fill(ids[start], source, graph, {s: b.id for s, b in ids.items()}, after, active)
        return ids[graph.entry].id

    def _try_to_fill(
        self,
        block: FlowBlock,
        source: control.Block,
        graph: control.Cfg,
        ids: dict[int, int],
        after: int,
        active: tuple[int, ...],
    ) -> None:
        """Fills a block that never ran: it ends where it begins if all such do, or if something in it cannot be lifted."""
        block.untaken = True
        reason = "it never ran" if self.untaken.all_stop else ""
        if reason:
            way = way_back(graph, source.start, self.untaken.starts, self.semantics)
            self.ways_back |= {block.id: way} if way is not None else {}
        else:
            self.on_untaken_way += 1
            try:
                self._fill(block, source, graph, ids, after, active)
            except NotLiftedError as error:
                reason = error.reason
            finally:
                self.on_untaken_way -= 1
        if reason:
            block.steps.clear()
            block.term = Unreachable(reason)

    def _fill(
        self,
        block: FlowBlock,
        source: control.Block,
        graph: control.Cfg,
        ids: dict[int, int],
        after: int,
        active: tuple[int, ...],
    ) -> None:
        for insn in source.insns:
            called = graph.calls.get(insn.address)
            if called is None:
                string = insn.prefixes == {"rep"} and insn.mnemonic in STRING_OPERATIONS
                if string and insn.address in self.loops:
                    block = self._element_by_element(block, insn)
                elif string and self.opaque:
                    operation = f"rep {insn.mnemonic}"
                    block.steps.append(
                        FlowStep(insn.address, insn.text, Semantics(()), opaque=Opaque(operation, Const("i64", 0)))
                    )
                elif insn.mnemonic not in ("ret", "jmp"):
                    block.steps.append(FlowStep(insn.address, insn.text, self.semantics(insn)))
            elif not isinstance(source.terminator, control.Trap) or insn is not source.insns[-1]:
                following = self.new(insn.end)
                following.untaken = block.untaken
                self._call(block, insn, called, following.id, active)
                block = following
        self._terminate(block, source, ids, after, active)

    def _element_by_element(self, block: FlowBlock, insn: Insn) -> FlowBlock:
        """Adds a ``rep`` operation as a loop; returns the block behind it."""
        head, body, following = self.new(insn.address), self.new(insn.address), self.new(insn.end)
        before, test, element, after = one_element(insn, self.semantics)
        block.steps.append(before)
        head.steps.append(test)
        body.steps += element
        following.steps.append(after)
        block.term = body.term = Go(head.id)
        head.term = Cond("e", following.id, body.id)
        head.untaken = body.untaken = following.untaken = block.untaken
        return following

    def _terminate(
        self, block: FlowBlock, source: control.Block, ids: dict[int, int], after: int, active: tuple[int, ...]
    ) -> None:
        at = source.insns[-1] if source.insns else None
        pc, text = (at.address, at.text) if at else (source.start, "jump")
        match source.terminator:
            case control.Jump(target):
                block.term = Go(ids[target])
            case control.Branch(cc, target, fallthrough):
                same = target == fallthrough
                block.term = Go(ids[target]) if same else Cond(cc, ids[target], ids[fallthrough])
            case control.Ret(popped):
                block.steps.append(_move_stack(pc, 8 + popped))
                block.term = Go(after)
            case control.IndirectJump(targets, value, load):
                block.term = Switch(value, load, targets, tuple(ids[t] for t in targets))
            case control.TailCall(target, name):
                self._tail(block, at, (pc, text), control.Called(target, name), after, active)
            case control.Trap(reason, untaken):
                block.term = Unreachable(reason if untaken else "")

    def _tail(
        self,
        block: FlowBlock,
        insn: Insn | None,
        at: tuple[int, str],
        called: control.Called,
        after: int,
        active: tuple[int, ...],
    ) -> None:
        """Ends a block by a tail call, which returns to the region's caller, or by leaving a loop region."""
        if called.target in self.exits and len(active) == 1:
            assert called.target is not None
            block.steps.append(FlowStep(at[0], at[1], Semantics((SetEffect(RIP, Const("i64", called.target)),))))
            block.term = Go(after)
            return
        callee = self._callee(called, active)
        if callee is not None:
            block.term = Go(self.copy(callee, after, (*active, callee.entry)))
            return
        if called.name is not None and self.pure(called.name):
            block.steps.append(FlowStep(*at, Semantics(()), called.name))
        elif self.opaque:
            self._unknown(block, insn, at, called, tail=True)
        else:
            raise NotLiftedError(*at, f"leaves by a jump to {_label(called)}{refusal_remark(called.name)}")
        block.steps.append(_move_stack(at[0], 8))
        block.term = Go(after)

    def _call(self, block: FlowBlock, insn: Insn, called: control.Called, following: int, active: tuple[int, ...]) -> None:
        if called.target is None and self._through_pointer(block, insn, following, active):
            return
        callee = self._callee(called, active)
        block.term = Go(following)
        copied = self._inlined(callee, following, active) if callee is not None else None
        if copied is not None:
            block.steps.append(_move_stack(insn.address, -8))
            block.term = Go(copied)
        elif called.name is not None and self.pure(called.name):
            block.steps.append(FlowStep(insn.address, insn.text, Semantics(()), called.name))
        elif self.opaque:
            self._unknown(block, insn, (insn.address, insn.text), called, tail=False)
        elif called.target in active:
            raise insn.refuse(f"recursive call of {called.name or hex(called.target or 0)}")
        else:
            raise insn.refuse(f"calls {_label(called)}{refusal_remark(called.name)}")

    def _through_pointer(self, block: FlowBlock, insn: Insn, following: int, active: tuple[int, ...]) -> bool:
        """Ends a block by the functions that an indirect call was seen to make, all of them inlined; with any other the way
        ends. Tells whether that can be done."""
        targets = self.untaken.called.get(insn.address, ())
        callees = [self._callee(control.Called(target, None), active) for target in targets]
        copies = [self._inlined(one, following, active) if one is not None else None for one in callees]
        if not targets or None in copies:
            return False
        block.steps.append(FlowStep(insn.address, insn.text, call_target(insn)))
        for target, copied in zip(targets, copies, strict=True):
            entered, other = self.new(insn.address), self.new(insn.address)
            entered.untaken = other.untaken = block.untaken
            entered.steps.append(_move_stack(insn.address, -8))
            entered.term = Go(copied)
            same = Op("flags.sub", "flags", (Read(CALL_TARGET, "i64"), Const("i64", target)))
            block.steps.append(FlowStep(insn.address, insn.text, Semantics((SetEffect(Flags(), same),))))
            block.term = Cond("e", entered.id, other.id)
            block = other
        block.term = Unreachable(ANOTHER_CALLEE)
        return True

    def _callee(self, called: control.Called, active: tuple[int, ...]) -> Region | None:
        """The callee that is to be inlined; None where there is none, it is one of those that call it, or it lies too deep:
        each call gets a copy of its own, and copies of copies add up."""
        levels = LEVELS if len(self.blocks) < DEEP_BLOCKS else 1
        if called.target is None or called.target in active or len(active) > levels:
            return None
        return self.callees.get(called.target)

    def _inlined(self, callee: Region, following: int, active: tuple[int, ...]) -> int | None:
        """A copy of the callee; None where it cannot be lifted and its call may stay a call."""
        try:
            return self.copy(callee, following, (*active, callee.entry))
        except NotLiftedError:
            if self.opaque and not self.on_untaken_way:
                return None
            raise

    def _unknown(
        self, block: FlowBlock, insn: Insn | None, at: tuple[int, str], called: control.Called, *, tail: bool
    ) -> None:
        """Adds a call that is not inlined."""
        why = refusal(called.name)
        if self.on_untaken_way:
            why = f"calls {_label(called)}"
        if why is not None:
            raise NotLiftedError(*at, why)
        target: Expr = Read(CALL_TARGET, "i64")
        local = called.target is not None and not self.is_stub(called.target)
        takes = arguments_of(self.path, self.load_base, called.target, None if local else called.name)
        if called.target is not None:
            target = Const("i64", called.target)
        else:
            assert insn is not None
            block.steps.append(FlowStep(*at, call_target(insn)))
        block.steps.append(FlowStep(*at, Semantics(()), opaque=Opaque(called.name, target, tail, local, takes)))


def _label(called: control.Called) -> str:
    return called.name or (hex(called.target) if called.target is not None else "an address that is computed")


def _move_stack(pc: int, amount: int) -> FlowStep:
    moved = Op("add", "i64", (Read(RSP, "i64"), Const("i64", amount % 2**64)))
    return FlowStep(pc, "call/ret", Semantics((SetEffect(RSP, moved),)))


def _count_iterations(builder: _FlowBuilder, region: Region, start: FlowBlock, exit_block: FlowBlock) -> None:
    """Lets every way back to the head, which is the region's entry, count, and leave the loop when its chunk is done."""
    (head,) = start.successors
    back = [block for block in builder.blocks.values() if head in block.successors and block is not start]
    count, done = builder.new(region.entry), builder.new(region.entry)
    for block in back:
        block.redirect(head, count.id)
    start.steps.append(first_iteration(region.entry, region.chunk))
    count.steps += one_iteration_less(region.entry)
    count.term = Cond("e", done.id, head)
    done.steps.append(FlowStep(region.entry, "chunk", Semantics((SetEffect(RIP, Const("i64", region.entry)),))))
    done.term = Go(exit_block.id)


def _end_early(blocks: dict[int, FlowBlock]) -> None:
    """Ends ways that never ran at the first block from which they can only come to their end."""
    waiting = [block for block in blocks.values() if block.untaken and not isinstance(block.term, Unreachable)]
    changed = True
    while changed:
        changed = False
        for block in waiting:
            ends = [blocks[after].term for after in block.successors]
            reasons = [end.reason for end in ends if isinstance(end, Unreachable)]
            if ends and len(reasons) == len(ends) and any(reasons):
                block.steps.clear()
                block.term = Unreachable(next(filter(None, reasons)))
                changed = True
        waiting = [block for block in waiting if not isinstance(block.term, Unreachable)]


def _reduce(flow: Flow, builder: _FlowBuilder) -> None:
    """Makes the flow reducible: every loop gets one entry."""

    def copy(block: int) -> int:
        source, made = flow.blocks[block], builder.new(flow.blocks[block].start)
        made.untaken = source.untaken
        made.steps, made.term = list(source.steps), source.term
        return made.id

    stuck = make_reducible(
        lambda block: flow.blocks[block].successors,
        copy,
        lambda block, old, new: flow.blocks[block].redirect(old, new),
        flow.entry,
    )
    if stuck is not None:
        raise NotLiftedError(
            flow.blocks[stuck].start, "jump", "irreducible control flow (its loops would have to be copied)"
        )


def _normalise(flow: Flow, builder: _FlowBuilder) -> None:
    def between(sources: list[int], target: int) -> None:
        middle = builder.new(flow.blocks[target].start)
        for source in sources:
            flow.blocks[source].redirect(target, middle.id)
        middle.term = Go(target)

    for head, loop in list(flow.loops.items()):
        between([p for p in flow.graph.predecessors[head] if p in loop.blocks], head)
        between([p for p in flow.graph.predecessors[head] if p not in loop.blocks], head)
    analyse(flow)
    exits = {edge for loop in flow.loops.values() for edge in loop.exits}
    for block in list(flow.graph.order):
        following = flow.blocks[block].successors
        for target in following:
            if (block, target) in exits or (len(following) > 1 and len(flow.graph.predecessors[target]) > 1):
                between([block], target)
