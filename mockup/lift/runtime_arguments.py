"""Arguments of the OpenMP runtime's functions: numbers in the frame that they have pointers to, and words on the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.mockup.ir.node import Node, StoreTo
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.machine_state import FrameEscapes, MachineState, Slot, State


@dataclass(frozen=True, slots=True)
class FramePart:
    """``bytes`` bytes (4 or 8) of the frame, ``inside`` bytes (0 or 4) from the start of the cell ``slot``."""

    slot: Slot
    inside: int
    bytes: int

    def overlaps(self, other: FramePart) -> bool:
        """Returns whether both have a byte in common."""
        return self.slot == other.slot and (self.bytes == 8 or other.bytes == 8 or self.inside == other.inside)


def part_at(address: Node, size: int) -> FramePart:
    """The part of a cell that ``address`` points at. Raises :class:`FrameEscapes` where it is none of the frame."""
    if address.op != "frame" or address.imm[1] % size or (address.imm[0] == 0 and address.imm[1] >= 0):
        raise FrameEscapes
    base, offset = address.imm
    return FramePart(Slot(base, offset & ~7), offset & 7, size)


def held(owner: MachineState, state: State, part: FramePart) -> Node:
    """The value of the part, as an i64 whose upper half has no meaning where the part has 4 bytes."""
    g, cell = owner.graph, owner.read(state, part.slot)
    if part.bytes == 8:
        return cell
    half = g.hi32(cell) if part.inside else g.lo32(cell)
    return half if half.op == "undef" else g.zext("i64", half)


def put(owner: MachineState, state: State, part: FramePart, value: Node) -> None:
    """Writes ``value`` to the part; the other half of its cell is unchanged."""
    g, cell = owner.graph, owner.read(state, part.slot)
    if part.bytes == 8:
        state[part.slot] = value
        return
    low = g.lo32(value)
    halves = (g.lo32(cell), low) if part.inside else (low, g.hi32(cell))
    state[part.slot] = g.build("pair", "i64", *halves)


def low_half(g: Graph, value: Node) -> Node:
    """An argument of 32 bits: what stands above it in its register or on the stack may never have been set."""
    half = g.lo32(value)
    return half if half.op == "undef" else g.zext("i64", half)


def stored_at(g: Graph, events: Sequence[Node], address: Node) -> Node | None:
    """The value that the last store among ``events`` left in the 8 (or 4) bytes at ``address``, where that is certain: where
    nothing but stores at known distances from there came since."""
    for event in reversed(events):
        if event.op == "load":
            continue
        if event.op != "store" or len(event.args) != 2:
            return None
        kind = event.imm
        assert isinstance(kind, StoreTo)
        distance = g.sub(event.args[0], address)
        if distance.op != "const":
            return None
        if distance.imm == 0 and kind.ty in ("i64", "i32"):
            value = event.args[1]
            return value if kind.ty == "i64" else g.zext("i64", value)
        if -8 < signed_distance(distance.imm) < 8:
            return None
    return None


def signed_distance(value: int) -> int:
    """``value`` modulo 2**64 as a signed number."""
    return value - (1 << 64) if value >> 63 else value
