"""Moves of a vector register whose memory does not stay together: words of it one by one, from and to several places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.errors import NotLiftedError, RefusedError
from layout_advise.mockup.machine.disassembly import MemoryOperand, Register, decode_one

_WHOLE = frozenset(f"{v}mov{kind}" for v in ("", "v") for kind in ("ups", "aps", "upd", "apd", "dqu", "dqa"))
_HALF = frozenset(f"{v}mov{kind}" for v in ("", "v") for kind in ("q", "sd"))
_LOW = frozenset(f"{v}mov{kind}" for v in ("", "v") for kind in ("lps", "lpd"))
"""Stores of the lower half; as loads they keep the upper one."""
_LANE = 4
_REGISTERS = 16


@dataclass(frozen=True, slots=True)
class MovedPiece:
    """``bytes`` (4 or 8) of an access from ``at`` on, which are ``distance`` bytes from its first one in the new layout."""

    at: int
    bytes: int
    distance: int


@dataclass(frozen=True, slots=True)
class _Opcode:
    """An instruction on a vector register and memory: prefix, map (1: 0F, 3: 0F 3A) and opcode; whether it keeps the rest of
    the register, as VEX forms name it once more, and whether the lane is an immediate, and shifted by how much."""

    prefix: int
    map: int
    opcode: int
    merges: bool = False
    lane_shift: int | None = None


_LOADS = {
    (8, 0): _Opcode(0xF3, 1, 0x7E),  # movq: zero above
    (4, 0): _Opcode(0xF3, 1, 0x10),  # movss: zero above
    (8, 2): _Opcode(0, 1, 0x16, merges=True),  # movhps
    **dict.fromkeys(((4, 1), (4, 2), (4, 3)), _Opcode(0x66, 3, 0x21, merges=True, lane_shift=4)),  # insertps
}
_STORES = {
    (8, 0): _Opcode(0x66, 1, 0xD6),  # movq
    (4, 0): _Opcode(0xF3, 1, 0x11),  # movss
    (8, 2): _Opcode(0, 1, 0x17),  # movhps
    **dict.fromkeys(((4, 1), (4, 2), (4, 3)), _Opcode(0x66, 3, 0x17, lane_shift=0)),  # extractps
}


def in_pieces(code: bytes, register: int, distance: int, pieces: Sequence[MovedPiece]) -> bytes:
    """A move between a vector register and memory, as one of each of ``pieces``, the first of which is at
    ``[register + distance]``. Raises RefusedError for any other instruction."""
    refused = RefusedError(f"{code.hex(' ')} is not re-indexed", "what it accesses does not lie together in the new layout")
    try:
        insn = decode_one(code, 0x1000)
    except NotLiftedError:
        raise refused from None
    vector = next((o for o in insn.operands if isinstance(o, Register)), None)
    memory = next((o for o in insn.operands if isinstance(o, MemoryOperand)), None)
    stores = isinstance(next(iter(insn.operands), None), MemoryOperand)
    half = insn.mnemonic in _HALF or (stores and insn.mnemonic in _LOW)
    size = 16 if insn.mnemonic in _WHOLE else 8 if half else 0
    if vector is None or memory is None or memory.bytes != size or len(insn.operands) != 2 or insn.evex or insn.prefixes:
        raise refused
    if vector.kind != "vector" or vector.bytes != 16 or vector.number >= _REGISTERS:
        raise refused
    table = _STORES if stores else _LOADS
    made = b""
    for piece in pieces:
        lane = piece.at // _LANE
        opcode = table.get((piece.bytes, lane))
        if opcode is None:
            raise refused
        made += _encoded(opcode, vector.number, register, distance + piece.distance, lane, vex=insn.vex)
    return made


def words(runs: Sequence[tuple[int, int, int]]) -> tuple[MovedPiece, ...] | None:
    """Runs of bytes (start, end, distance) of an access as pieces; None where one begins or ends within a word."""
    found = []
    for start, end, distance in runs:
        at = start
        while at < end:
            size = 8 if at % 8 == 0 and end - at >= 8 else _LANE
            if at % size or end - at < size:
                return None
            found.append(MovedPiece(at, size, distance + at - start))
            at += size
    return tuple(found)


def _encoded(opcode: _Opcode, vector: int, base: int, distance: int, lane: int, *, vex: bool) -> bytes:
    number = base & 7
    address = bytes([0x80 | (vector & 7) << 3 | number]) + (b"\x24" if number == 4 else b"")
    tail = address + distance.to_bytes(4, "little", signed=True)
    if opcode.lane_shift is not None:
        tail += bytes([lane << opcode.lane_shift])
    if vex:
        kinds = {0: 0, 0x66: 1, 0xF3: 2}
        second = (0 if vector >> 3 else 0x80) | 0x40 | (0 if base >> 3 else 0x20) | opcode.map
        third = (~(vector if opcode.merges else 0) & 15) << 3 | kinds[opcode.prefix]
        return bytes([0xC4, second, third, opcode.opcode]) + tail
    rex = vector >> 3 << 2 | base >> 3
    head = (bytes([opcode.prefix]) if opcode.prefix else b"") + (bytes([0x40 | rex]) if rex else b"")
    return head + (b"\x0f" if opcode.map == 1 else b"\x0f\x3a") + bytes([opcode.opcode]) + tail
