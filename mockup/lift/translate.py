"""Translation of one instruction: its effects (:mod:`layout_advise.mockup.ir.effects`) become nodes of the value graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import (
    BITS,
    AtomicEffect,
    CallEffect,
    Expr,
    LoadEffect,
    Op,
    PrefetchEffect,
    SetEffect,
    StoreEffect,
    Ty,
)  # fmt: skip
from layout_advise.mockup.ir.lifted import Origin
from layout_advise.mockup.ir.node import GraphAccess, Node, StoreTo
from layout_advise.mockup.ir.rules.form import is_const
from layout_advise.mockup.lift.calls import named_call, opaque_call
from layout_advise.mockup.lift.flow import FlowStep
from layout_advise.mockup.lift.machine_state import UNWRITTEN, FrameEscapes, LongSlot, MachineState, Place, Slot, State

_INTEGER_OF: dict[int, Ty] = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


@dataclass(frozen=True, slots=True)
class AtomicAt:
    """``imm`` of an ``atomic`` node (args: address, and the operation's)."""

    ty: Ty
    operation: str
    operand: int


def translate(owner: MachineState, state: State, step: FlowStep, events: list[Node], framed: set[tuple[int, int]]) -> None:
    """Applies one instruction to ``state``; its loads, stores and calls are appended to ``events``, its operands that are
    cells of the frame are added to ``framed``."""
    if step.call is not None:
        named_call(owner, state, step, events)
        return
    if step.opaque is not None:
        opaque_call(owner, state, step, step.opaque, events)
        return
    _OneStep(owner, state, step, events, framed).run()


class _OneStep:
    def __init__(
        self, owner: MachineState, state: State, step: FlowStep, events: list[Node], framed: set[tuple[int, int]]
    ) -> None:
        self.owner, self.state, self.step, self.events, self.framed = owner, state, step, events, framed
        self.temps: dict[int, Node] = {}
        self.lane: dict[str, int] = {}
        self.pack: dict[str, int] = {}

    def run(self) -> None:
        g = self.owner.graph
        sets: list[tuple[Place, Node]] = []
        stores: list[tuple[StoreEffect, Node, Node, Node | None]] = []
        for effect in self.step.semantics.effects:
            self._mark(type(effect).__name__, effect)
            match effect:
                case LoadEffect(number, ty, address, operand, part, guard):
                    self.temps[number] = self._load(ty, self._value(address), GraphAccess(operand, part), guard)
                case StoreEffect(_, address, value, _, _, guard):
                    permit = None if guard is None else self._value(guard)
                    stores.append((effect, self._value(address), self._value(value), permit))
                case PrefetchEffect(address, hint):
                    self._prefetch(self._value(address), hint)
                case AtomicEffect():
                    self.temps[effect.number] = self._atomic(effect)
                case SetEffect(location, value):
                    sets.append((location, self._halves(value)))
                case CallEffect(_, name):
                    raise NotLiftedError(self.step.pc, self.step.text, f"calls {name}")
        for store, where, what, permit in stores:
            self._mark("StoreEffect", store)
            self._store(store, where, what, permit)
        self.state.update(sets)
        g.origin = Origin(self.step.pc, block=g.block)

    def _mark(self, kind: str, effect: object) -> None:
        """Number the lanes of a packed instruction, loads, stores and results each for themselves."""
        if not self.step.semantics.packed:
            self.owner.graph.origin = Origin(self.step.pc, block=self.owner.graph.block)
            return
        if kind not in self.pack:
            self.owner.packs += 1
            self.pack[kind] = self.owner.packs
        lane = self.lane.get(kind, 0)
        self.lane[kind] = lane + 1
        self.owner.graph.origin = Origin(
            self.step.pc, self.pack[kind], lane, self.step.semantics.width, self.owner.graph.block
        )

    def _value(self, expr: Expr) -> Node:
        return self.owner.expression(self.state, expr, self.temps)

    def _halves(self, expr: Expr) -> Node:
        """The value of a lane; of two elements in it each is numbered."""
        g, origin = self.owner.graph, self.owner.graph.origin
        if origin.pack is None or not isinstance(expr, Op) or expr.name != "pair":
            return self._value(expr)
        halves = []
        for half, arg in enumerate(expr.args):
            g.origin = replace(origin, lane=2 * origin.lane + half)
            halves.append(self._value(arg))
        return g.build("pair", "i64", *halves)

    def _load(self, ty: Ty, address: Node, access: GraphAccess, guard: Expr | None) -> Node:
        g = self.owner.graph
        size = BITS[ty] // 8
        if ty == "f80":
            known = self.owner.constant(address.imm, size) if address.op == "const" else None
            if known is not None:
                return g.const(ty, int.from_bytes(known, "little"))
            return self._long_slot(address, access.operand, None)
        raw = _INTEGER_OF[size]
        permit = None if guard is None else self._value(guard)
        if permit is not None and is_const(permit, 0):
            return g.const(ty, 0)
        unguarded = permit is None or is_const(permit, 1)
        where = self._frame(address, size)
        if where is not None:
            if not unguarded:
                raise FrameEscapes
            self.framed.add((self.step.pc, access.operand))
            return g.bitcast(ty, self._read_cells(where, size))
        data = self.owner.constant(address.imm, size) if unguarded and address.op == "const" else None
        if data is not None:  # shuffles by such indices, masks and signs become known
            return g.bitcast(ty, g.const(raw, int.from_bytes(data, "little")))
        args = (self._plain(address),) if unguarded or permit is None else (self._plain(address), permit)
        node = g.raw("load", raw, args, access)
        self.events.append(node)
        return g.bitcast(ty, node)

    def _store(self, effect: StoreEffect, address: Node, value: Node, permit: Node | None) -> None:
        g = self.owner.graph
        size = BITS[effect.ty] // 8
        if permit is not None and is_const(permit, 0):
            return
        if effect.ty == "f80":
            self._long_slot(address, effect.operand, value)
            return
        unguarded = permit is None or is_const(permit, 1)
        value = g.bitcast(_INTEGER_OF[size], value)
        where = self._frame(address, size)
        if where is not None:
            if not unguarded:
                raise FrameEscapes
            self.framed.add((self.step.pc, effect.operand))
            self._write_cells(where, size, value)
            return
        args = (self._plain(address), value) if unguarded or permit is None else (self._plain(address), value, permit)
        self.events.append(g.raw("store", "i64", args, StoreTo(_INTEGER_OF[size], effect.operand, effect.part)))

    def _prefetch(self, address: Node, hint: str) -> None:
        if address.op != "frame":  # what stands in the frame is in registers, or near
            self.events.append(self.owner.graph.raw("prefetch", "i64", (self._plain(address),), hint))

    def _atomic(self, effect: AtomicEffect) -> Node:
        """Translates an atomic operation: an event whose value is the memory's old content."""
        g, size = self.owner.graph, BITS[effect.ty] // 8
        address = self._value(effect.address)
        if self._frame(address, size) is not None:
            raise FrameEscapes
        args = (self._plain(address), *(self._value(a) for a in effect.args))
        event = g.raw("atomic", "i64", args, AtomicAt(effect.ty, effect.operation, effect.operand))
        given = g.raw("given", "i64", (event,), "before")
        self.events += (event, given)
        return given if size == 8 else g.build("trunc", effect.ty, given)

    def _frame(self, address: Node, size: int) -> Slot | None:
        """The frame place that ``address`` is; None for other memory (also the caller's part of the stack)."""
        if address.op != "frame":
            return None
        base, offset = address.imm
        if base == 0 and offset >= 0:
            return None
        floor = min((o for (b, o, _), new in self.owner.graph.bases.items() if b == base and new != base), default=None)
        if offset + size > 0 or (floor is not None and offset < floor):
            raise FrameEscapes
        return Slot(base, offset)

    def _long_slot(self, address: Node, operand: int, value: Node | None) -> Node:
        """The value of a spilled number of 80 bits, after it becomes ``value`` where that is given."""
        where = self._frame(address, 16)
        if where is None:
            raise NotLiftedError(self.step.pc, self.step.text, "a number of 80 bits in memory")
        self.framed.add((self.step.pc, operand))
        place = LongSlot(where.base, where.offset)
        if value is None:
            return self.owner.read(self.state, place)
        self.owner.spills_long = True
        self._forget_long_slots(where, 16)
        lost = self.owner.graph.raw("undef", "i64", (), "a part of a number of 80 bits")
        self.state |= {place: value, self._cell(where)[0]: lost, self._cell(Slot(where.base, where.offset + 8))[0]: lost}
        return value

    def _forget_long_slots(self, at: Slot, size: int) -> None:
        """Numbers of 80 bits are no more where something else is written."""
        if not self.owner.spills_long:
            return
        for place in [p for p in self.state if isinstance(p, LongSlot) and p.base == at.base]:
            if place.offset < at.offset + size and at.offset < place.offset + 10:
                self.state[place] = self.owner.graph.raw("undef", "f80", (), UNWRITTEN)

    def _plain(self, address: Node) -> Node:
        return self.owner.plain_address(address)

    def _cell(self, at: Slot) -> tuple[Slot, int]:
        return Slot(at.base, at.offset & ~7), at.offset & 7

    def _read_cells(self, at: Slot, size: int) -> Node:
        g = self.owner.graph
        cell, inside = self._cell(at)
        value = self.owner.read(self.state, cell)
        if size == 8 and inside == 4:
            above = self.owner.read(self.state, Slot(cell.base, cell.offset + 8))
            return g.pair(g.hi32(value), g.lo32(above))
        if inside + size > 8:
            raise FrameEscapes
        moved = g.build("lshr", "i64", value, g.const("i64", 8 * inside))
        return value if size == 8 else g.build("trunc", _INTEGER_OF[size], moved)

    def _write_cells(self, at: Slot, size: int, value: Node) -> None:
        g = self.owner.graph
        self._forget_long_slots(at, size)
        cell, inside = self._cell(at)
        old = self.owner.read(self.state, cell)
        if size == 8 and inside == 4:
            above = Slot(cell.base, cell.offset + 8)
            self.state[cell] = g.pair(g.lo32(old), g.lo32(value))
            upper = g.hi32(self.owner.read(self.state, above))
            self.state[above] = g.pair(g.hi32(value), upper)
        elif inside + size > 8:
            raise FrameEscapes
        elif size == 4 and inside in (0, 4):
            halves = (value, g.hi32(old)) if inside == 0 else (g.lo32(old), value)
            self.state[cell] = g.build("pair", "i64", *halves)
        elif size == 8:
            self.state[cell] = value
        else:
            keep = g.const("i64", ~(((1 << (8 * size)) - 1) << (8 * inside)))
            if old.op == "undef":  # the other bytes of the cell: nobody reads what was never written
                old = g.const("i64", 0)
            kept = g.build("and", "i64", old, keep)
            wide = g.zext("i64", value)
            moved = g.build("shl", "i64", wide, g.const("i64", 8 * inside))
            self.state[cell] = g.build("or", "i64", kept, moved)
