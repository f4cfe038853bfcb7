"""One instruction after another: effects (:mod:`layout_advise.mockup.effects`) become nodes of the value graph.

The hotspot's own stack frame is a set of 64-bit cells (:class:`Slot`), locations like registers: spills and the pushes of
callee-saved registers vanish in renaming, and a cell that holds two floats splits like a vector lane does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.conditions import UndefinedFlagError, resolve
from layout_advise.mockup.effects import (
    BITS,
    CallEffect,
    Const,
    Expr,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    Location,
    Op,
    Read,
    SetEffect,
    StoreEffect,
    Temp,
    Ty,
)  # fmt: skip
from layout_advise.mockup.flow import RSP, Step
from layout_advise.mockup.lifted import Origin
from layout_advise.mockup.opaque import (
    INTEGERS,
    KEPT,
    RESULTS,
    STRING_OPERATIONS,
    VECTOR_COUNT,
    VECTORS,
    WIDE_VECTORS,
    Clobbered,
    Handed,
    Opaque,
)
from layout_advise.mockup.simplify import bitcast, build, hi32, is_const, lo32
from layout_advise.mockup.values import Access, Graph, Node

RAX = Gpr(0)
CALLER_SAVED = tuple(Gpr(n) for n in (0, 1, 2, 6, 7, 8, 9, 10, 11))
_INTEGER_OF: dict[int, Ty] = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}

_UNARY = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt cbrt fabs "
    "floor ceil trunc rint nearbyint round erf erfc"
)
_BINARY = "pow atan2 hypot fmod fmin fmax copysign remainder fdim"
_SUFFIXES: tuple[tuple[str, Ty], ...] = (("", "f64"), ("f", "f32"))
PURE: dict[str, tuple[Ty, int]] = {
    f"{name}{suffix}": (ty, count)
    for names, count in ((_UNARY, 1), (_BINARY, 2))
    for name in names.split()
    for suffix, ty in _SUFFIXES
}
"""libm functions without effects (but for errno): type of arguments and result, number of arguments."""

TEAM: dict[str, tuple[Ty, int]] = {"omp_get_thread_num": ("i32", 0), "omp_get_num_threads": ("i32", 0)}
"""Functions of OpenMP whose result is the same all through a thread's part of a parallel region."""

CALLED = PURE | TEAM
"""What may stay a call."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The 8 bytes at ``offset`` (a multiple of 8, negative) from stack base ``base``; see ``Graph.frame``."""

    base: int
    offset: int


Place = Location | Slot
State = dict[Place, Node]


UNWRITTEN = "memory of the frame that was never written"
"""``imm`` of an ``undef`` node: a cell of the frame at the entry."""


class FrameEscapes(Exception):
    """The frame cannot be kept in variables: the address of a local is computed at run time or handed on."""


@dataclass(frozen=True, slots=True)
class StoreTo:
    """``imm`` of a store node (args: address, value, and the guard where there is one)."""

    ty: Ty
    operand: int
    part: int


ReadOnly = Callable[[int, int], bytes | None]
"""Bytes at an address that cannot change at run time, None elsewhere."""


class Translator:
    """Translates steps into ``graph``; ``frame_cells`` False leaves the frame in memory; ``wide``: there are instructions on
    whole 256-bit registers."""

    def __init__(self, graph: Graph, frame_cells: bool, constant: ReadOnly, wide: bool = True) -> None:
        self.graph = graph
        self.wide = wide
        self.frame_cells = frame_cells
        self.constant = constant
        self.packs = 0
        self._defaults: dict[Place, Node] = {}

    def default(self, place: Place) -> Node:
        """What ``place`` holds at the entry."""
        if place not in self._defaults:
            g, saved = self.graph, self.graph.block
            g.block = None
            if isinstance(place, Slot):
                node = g.raw("undef", "i64", (), UNWRITTEN)
            elif isinstance(place, Flags):
                node = g.raw("undef", "flags", (), "flags at the entry")
            elif place == RSP and self.frame_cells:
                node = g.frame(0, 0)
            else:
                node = g.raw("livein", "i64", (), place)
            self._defaults[place] = node
            g.block = saved
        return self._defaults[place]

    def stack_pointer(self) -> Node:
        """rsp at the entry, as a value."""
        if not self.frame_cells:
            return self.default(RSP)
        key = Slot(-1, 0)  # no such cell: keeps the node apart from the frame address that RSP itself stands for
        if key not in self._defaults:
            saved, self.graph.block = self.graph.block, None
            self._defaults[key] = self.graph.raw("livein", "i64", (), RSP)
            self.graph.block = saved
        return self._defaults[key]

    def read(self, state: State, place: Place) -> Node:
        """The value of ``place`` now."""
        found = state.get(place)
        return self.default(place) if found is None else found

    def step(self, state: State, step: Step, events: list[Node], framed: set[tuple[int, int]]) -> None:
        """Apply one instruction to ``state``; its loads, stores and calls are appended to ``events``, its operands that are
        cells of the frame are added to ``framed``."""
        if step.call is not None:
            self._call(state, step, events)
            return
        if step.opaque is not None:
            self._opaque(state, step, step.opaque, events)
            return
        _OneStep(self, state, step, events, framed).run()

    def expression(self, state: State, expr: Expr, temps: dict[int, Node]) -> Node:
        """The node for ``expr`` in ``state``."""
        g = self.graph
        match expr:
            case Const(ty, value):
                return g.const(ty, value)
            case Read(location, _):
                return self.read(state, location)
            case Temp(number, _):
                return temps[number]
            case Op(name, ty, args):
                return make(g, name, ty, tuple(self.expression(state, a, temps) for a in args))

    def _call(self, state: State, step: Step, events: list[Node]) -> None:
        g = self.graph
        g.origin = Origin(step.pc)
        ty, count = CALLED[step.call or ""]
        raw = (self.read(state, Lane(i, 0)) for i in range(count))
        args = tuple(bitcast(g, ty, x if ty == "f64" else lo32(g, x)) for x in raw)
        call = g.raw("call", ty, args, step.call)
        events.append(call)
        lost = self._clobber(state, Clobbered(step.call))
        if ty == "i32":
            state[RAX] = build(g, "pair", "i64", (call, hi32(g, state[RAX])))
            return
        bits = bitcast(g, "i64" if ty == "f64" else "i32", call)
        state[Lane(0, 0)] = bits if ty == "f64" else build(g, "pair", "i64", (bits, hi32(g, lost)))

    def _clobber(self, state: State, gone: Clobbered | str) -> Node:
        """What a call may change is unknown after it; the node that stands for it in vector registers."""
        g = self.graph
        for register in CALLER_SAVED:
            state[register] = g.raw("undef", "i64", (), gone)
        state[Flags()] = g.raw("undef", "flags", (), str(gone))
        lost = g.raw("undef", "i64", (), gone)
        for number in range(32):
            for index in range(8):
                state[Lane(number, index)] = lost
        return lost

    def _opaque(self, state: State, step: Step, call: Opaque, events: list[Node]) -> None:
        """An event that is handed every register which may hold an argument, and events for what it may return."""
        g = self.graph
        g.origin = Origin(step.pc)
        if (call.name or "").startswith("rep "):
            self._string(state, call, events)
            return
        stack = self._stack_for(state, call)
        handed: list[tuple[Gpr | Lane, Node]] = []
        for place in (*INTEGERS, VECTOR_COUNT, *(WIDE_VECTORS if self.wide else VECTORS)):
            value = self.read(state, place)
            if value.op == "undef" or (place == VECTOR_COUNT and value.op != "const"):
                continue  # nothing that the caller put there
            if value.op == "livein" and isinstance(place, Lane) and place.index:
                continue  # the upper half of what the caller itself was handed: no scalar argument
            handed.append((place, value))
        target = self.expression(state, call.target, {})
        args = (target, *(() if stack is None else (stack,)), *(value for _, value in handed))
        event = g.raw("opaque", "i64", args, Handed(call.name, stack is not None, tuple(place for place, _ in handed)))
        events.append(event)
        before = {place: self.read(state, place) for place in KEPT} if call.local else {}
        gone = Clobbered(call.name)
        self._clobber(state, str(gone) if call.local else gone)
        for place in before or RESULTS:
            # of a local callee each register is read back: where it was not changed, it is what it was before the call
            old = before.get(place)
            made = (event,) if old is None or old.op == "undef" else (event, old)
            state[place] = g.raw("result", "i64", made, place)
            events.append(state[place])

    def _string(self, state: State, call: Opaque, events: list[Node]) -> None:
        """``rep movs`` or ``rep stos``, upwards (the ABI keeps the direction flag clear)."""
        g = self.graph
        name = (call.name or "").removeprefix("rep ")
        size = STRING_OPERATIONS[name]
        to, count = Gpr(7), Gpr(1)
        source = Gpr(6) if name.startswith("movs") else Gpr(0)
        places = (to, source, count)
        args = (g.const("i64", 0), *(self.read(state, place) for place in places))
        events.append(g.raw("opaque", "i64", args, Handed(call.name, False, places)))
        for place in (to, source) if source != Gpr(0) else (to,):
            moved = g.scale(self.read(state, count), size)
            state[place] = g.add(self.read(state, place), moved)
        state[count] = g.const("i64", 0)

    def _stack_for(self, state: State, call: Opaque) -> Node | None:
        """The stack pointer that the callee needs; None where it takes nothing from the stack."""
        pointer = self.read(state, RSP)
        if not self.frame_cells:
            return self.graph.lin("i64", 8 if call.tail else 0, ((pointer, 1),))
        if pointer.op != "frame":
            raise FrameEscapes
        base, offset = pointer.imm
        if call.tail:  # our own caller's arguments on the stack are the callee's
            return self._plain_address(self.graph.frame(base, offset + 8))
        if self.read(state, Slot(base, offset & ~7)).op != "undef":
            raise FrameEscapes  # perhaps an argument on the stack: then the frame has to be where the callee looks
        return None

    def _plain_address(self, address: Node) -> Node:
        if address.op == "frame" and address.imm[0] == 0 and address.imm[1] >= 0:
            return self.graph.lin("i64", address.imm[1], ((self.stack_pointer(), 1),))
        return address


def make(g: Graph, name: str, ty: Ty, args: tuple[Node, ...]) -> Node:
    """:func:`build`, and conditions resolved where the flags are known (they are tried again after each rewriting)."""
    if name == "undefined":
        return g.raw("undef", ty, (), "an undefined result")
    if name.startswith("cond."):
        leaves: dict[int, Node] = {}
        try:
            return _from_expr(g, resolve(name.removeprefix("cond."), _flags_expr(args[0], leaves)), leaves)
        except UndefinedFlagError:
            return g.raw(name, ty, args)
    return build(g, name, ty, args)


def _flags_expr(node: Node, leaves: dict[int, Node]) -> Expr:
    """A flags node as the expression that ``conditions.resolve`` reads; operands become numbered leaves."""
    if node.op == "undef":
        return Op("undefined", node.ty, ())
    if node.op == "const":
        return Const(node.ty, node.imm)
    if node.ty == "flags":
        return Op(node.op, "flags", tuple(_flags_expr(a, leaves) for a in node.args) if node.op.startswith("flags.") else ())
    leaves[node.uid] = node
    return Temp(node.uid, node.ty)


def _from_expr(g: Graph, expr: Expr, leaves: dict[int, Node]) -> Node:
    match expr:
        case Const(ty, value):
            return g.const(ty, value)
        case Temp(number, _):
            return leaves[number]
        case Op(name, ty, args):
            return make(g, name, ty, tuple(_from_expr(g, a, leaves) for a in args))
    raise TypeError(expr)


class _OneStep:
    def __init__(
        self, owner: Translator, state: State, step: Step, events: list[Node], framed: set[tuple[int, int]]
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
                    self.temps[number] = self._load(ty, self._value(address), Access(operand, part), guard)
                case StoreEffect(_, address, value, _, _, guard):
                    permit = None if guard is None else self._value(guard)
                    stores.append((effect, self._value(address), self._value(value), permit))
                case SetEffect(location, value):
                    sets.append((location, self._value(value)))
                case CallEffect(_, name):
                    raise NotLiftedError(self.step.pc, self.step.text, f"calls {name}")
        for store, where, what, permit in stores:
            self._mark("StoreEffect", store)
            self._store(store, where, what, permit)
        self.state.update(sets)
        g.origin = Origin(self.step.pc)

    def _mark(self, kind: str, effect: object) -> None:
        """Number the lanes of a packed instruction, loads, stores and results each for themselves."""
        if not self.step.semantics.packed:
            self.owner.graph.origin = Origin(self.step.pc)
            return
        if kind not in self.pack:
            self.owner.packs += 1
            self.pack[kind] = self.owner.packs
        lane = self.lane.get(kind, 0)
        self.lane[kind] = lane + 1
        self.owner.graph.origin = Origin(self.step.pc, self.pack[kind], lane)

    def _value(self, expr: Expr) -> Node:
        return self.owner.expression(self.state, expr, self.temps)

    def _load(self, ty: Ty, address: Node, access: Access, guard: Expr | None) -> Node:
        g = self.owner.graph
        size = BITS[ty] // 8
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
            return bitcast(g, ty, self._read_cells(where, size))
        data = self.owner.constant(address.imm, size) if unguarded and address.op == "const" else None
        if data is not None:  # shuffles by such indices, masks and signs become known
            return bitcast(g, ty, g.const(raw, int.from_bytes(data, "little")))
        args = (self._plain(address),) if unguarded or permit is None else (self._plain(address), permit)
        node = g.raw("load", raw, args, access)
        self.events.append(node)
        return bitcast(g, ty, node)

    def _store(self, effect: StoreEffect, address: Node, value: Node, permit: Node | None) -> None:
        g = self.owner.graph
        size = BITS[effect.ty] // 8
        if permit is not None and is_const(permit, 0):
            return
        unguarded = permit is None or is_const(permit, 1)
        value = bitcast(g, _INTEGER_OF[size], value)
        where = self._frame(address, size)
        if where is not None:
            if not unguarded:
                raise FrameEscapes
            self.framed.add((self.step.pc, effect.operand))
            self._write_cells(where, size, value)
            return
        args = (self._plain(address), value) if unguarded or permit is None else (self._plain(address), value, permit)
        self.events.append(g.raw("store", "i64", args, StoreTo(_INTEGER_OF[size], effect.operand, effect.part)))

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

    def _plain(self, address: Node) -> Node:
        return self.owner._plain_address(address)

    def _cell(self, at: Slot) -> tuple[Slot, int]:
        return Slot(at.base, at.offset & ~7), at.offset & 7

    def _read_cells(self, at: Slot, size: int) -> Node:
        g = self.owner.graph
        cell, inside = self._cell(at)
        value = self.owner.read(self.state, cell)
        if size == 8 and inside == 4:
            above = self.owner.read(self.state, Slot(cell.base, cell.offset + 8))
            return build(g, "pair", "i64", (hi32(g, value), lo32(g, above)))
        if inside + size > 8:
            raise FrameEscapes
        moved = build(g, "lshr", "i64", (value, g.const("i64", 8 * inside)))
        return value if size == 8 else build(g, "trunc", _INTEGER_OF[size], (moved,))

    def _write_cells(self, at: Slot, size: int, value: Node) -> None:
        g = self.owner.graph
        cell, inside = self._cell(at)
        old = self.owner.read(self.state, cell)
        if size == 8 and inside == 4:
            above = Slot(cell.base, cell.offset + 8)
            self.state[cell] = build(g, "pair", "i64", (lo32(g, old), lo32(g, value)))
            upper = hi32(g, self.owner.read(self.state, above))
            self.state[above] = build(g, "pair", "i64", (hi32(g, value), upper))
        elif inside + size > 8:
            raise FrameEscapes
        elif size == 4 and inside in (0, 4):
            halves = (value, hi32(g, old)) if inside == 0 else (lo32(g, old), value)
            self.state[cell] = build(g, "pair", "i64", halves)
        elif size == 8:
            self.state[cell] = value
        else:
            keep = g.const("i64", ~(((1 << (8 * size)) - 1) << (8 * inside)))
            if old.op == "undef":  # the other bytes of the cell: nobody reads what was never written
                old = g.const("i64", 0)
            kept = build(g, "and", "i64", (old, keep))
            wide = build(g, "zext", "i64", (value,))
            moved = build(g, "shl", "i64", (wide, g.const("i64", 8 * inside)))
            self.state[cell] = build(g, "or", "i64", (kept, moved))


def integer_of(ty: Ty) -> Ty:
    """The integer type as wide as ``ty``."""
    return cast(Ty, f"i{BITS[ty]}")
