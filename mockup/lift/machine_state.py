"""The contents of registers, flags and cells of the frame at a point of the code, as nodes of the value graph.

The hotspot's own stack frame is a set of 64-bit cells (:class:`Slot`), locations like registers: spills and the pushes of
callee-saved registers vanish in renaming, and a cell that holds two floats splits like a vector lane does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layout_advise.mockup.ir.effects import X87, Const, Expr, Flags, Lane, Location, MaskBit, Op, Read, Temp, Ty, X87Depth
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.flow import RSP
from layout_advise.mockup.machine.conditions import UndefinedFlagError, resolve


@dataclass(frozen=True, slots=True)
class Slot:
    """The 8 bytes at ``offset`` (a multiple of 8, negative) from stack base ``base``; see ``Graph.frame``."""

    base: int
    offset: int


@dataclass(frozen=True, slots=True)
class LongSlot:
    """The number of 80 bits (``f80``) at ``offset`` from stack base ``base``: a register of the x87 stack, spilled."""

    base: int
    offset: int


Place = Location | Slot | LongSlot
State = dict[Place, Node]

UNWRITTEN = "memory of the frame that was never written"
"""``imm`` of an ``undef`` node: a cell of the frame at the entry."""


class FrameEscapes(Exception):
    """The frame cannot be kept in variables: the address of a local is computed at run time or handed on."""


ReadOnly = Callable[[int, int], bytes | None]
"""Bytes at an address that cannot change at run time, None elsewhere."""


class MachineState:
    """The contents of places, as nodes of ``graph``; ``frame_cells`` False leaves the frame in memory; ``wide``: there are
    instructions on whole 256-bit registers; ``masks``: there are some that write mask registers. ``known`` is what lanes and
    bits of masks hold at the entry, in terms of the first one that holds it."""

    def __init__(
        self,
        graph: Graph,
        frame_cells: bool,
        constant: ReadOnly,
        wide: bool = True,
        known: Mapping[Lane | MaskBit, Expr] = MappingProxyType({}),
        masks: bool = False,
    ) -> None:
        self.graph = graph
        self.wide = wide
        self.masks = masks
        self.frame_cells = frame_cells
        self.constant = constant
        self.known = known
        self.packs = 0
        self.spills_long = False
        """Whether a number of 80 bits was spilled."""
        self._defaults: dict[Place, Node] = {}

    def default(self, place: Place) -> Node:
        """The value of ``place`` at the entry."""
        if place not in self._defaults:
            g, saved = self.graph, self.graph.block
            g.block = None
            if isinstance(place, Slot):
                node = g.raw("undef", "i64", (), UNWRITTEN)
            elif isinstance(place, LongSlot):
                node = g.raw("undef", "f80", (), UNWRITTEN)
            elif isinstance(place, Flags):
                node = g.raw("undef", "flags", (), "flags at the entry")
            elif isinstance(place, X87):
                node = g.raw("undef", "f80", (), "what the x87 stack held at the entry, which is not captured")
            elif isinstance(place, X87Depth):
                node = g.const("i64", 0)
            elif place == RSP and self.frame_cells:
                node = g.frame(0, 0)
            else:
                node = g.raw("livein", "i1" if isinstance(place, MaskBit) else "i64", (), place)
            self._defaults[place] = node
            if isinstance(place, Lane | MaskBit) and place in self.known:
                # where this names the place itself, that is the value at the entry, just made
                self._defaults[place] = self.expression({}, self.known[place], {})
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

    def plain_address(self, address: Node) -> Node:
        """``address``; of our caller's part of the stack in terms of the stack pointer at the entry."""
        if address.op == "frame" and address.imm[0] == 0 and address.imm[1] >= 0:
            return self.graph.lin("i64", address.imm[1], ((self.stack_pointer(), 1),))
        return address


def make(g: Graph, name: str, ty: Ty, args: tuple[Node, ...]) -> Node:
    """The simplified node for ``name(args)``. Conditions are resolved once their flags are known."""
    if name == "undefined":
        return g.raw("undef", ty, (), "an undefined result")
    if name.startswith("cond."):
        leaves: dict[int, Node] = {}
        try:
            return _from_expr(g, resolve(name.removeprefix("cond."), _flags_expr(args[0], leaves)), leaves)
        except UndefinedFlagError:
            return g.raw(name, ty, args)
    return g.build(name, ty, *args)


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
