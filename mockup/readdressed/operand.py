"""An instruction whose memory operand is ``[register + distance]`` in the place of the address that it had."""

from __future__ import annotations

from dataclasses import replace

from layout_advise.errors import NotLiftedError, RefusedError
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.machine.disassembly import Insn, MemoryOperand, decode_one
from layout_advise.tracer.code.evex import EVEX_BYTE

_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3\xf0")
_VEX2, _VEX3 = 0xC5, 0xC4
_WITH_OFFSET = range(0xA0, 0xA4)
"""Opcodes of ``mov`` whose address is in the instruction, without a ModRM byte."""
_ANYWHERE = 0x1000


def at_register(code: bytes, register: int, distance: int = 0) -> bytes:
    """The instruction ``code`` with the memory operand ``[register + distance]`` (a number as encoded, not rsp; 32 bits).

    Raises RefusedError for a form that has no such operand, or where what comes out is not the same instruction, as the
    disassembler reads both.
    """
    try:
        old = decode_one(code, _ANYWHERE)
    except NotLiftedError as error:
        raise RefusedError(f"{code.hex(' ')} is not re-indexed", error.reason) from None
    if sum(isinstance(operand, MemoryOperand) for operand in old.operands) != 1:
        raise RefusedError(f"{code.hex(' ')} is not re-indexed", "it has no memory operand of its own")
    start = next(k for k, byte in enumerate(code) if byte not in _PREFIXES)
    head, at = _with_base(code, start, register)
    number = register & 7
    direct = 4 if number == 4 else number  # r12 needs a SIB byte
    modrm = (0x80 if distance else 0x40) | code[at] & 0x38 | direct
    tail = (b"\x24" if number == 4 else b"") + (distance.to_bytes(4, "little", signed=True) if distance else b"\x00")
    made = head + bytes([modrm]) + tail + code[_end_of_address(code, at) :]
    _check(old, made, register, distance)
    return made


def _with_base(code: bytes, start: int, register: int) -> tuple[bytes, int]:
    """The bytes before the ModRM byte, the register's highest bit in their prefix, and that byte's place in ``code``."""
    first, high = code[start], register >> 3
    if first == EVEX_BYTE:  # X and B are inverted
        prefix = (code[start + 1] & 0x9F) | 0x40 | (0 if high else 0x20)
        return code[: start + 1] + bytes([prefix]) + code[start + 2 : start + 5], start + 5
    if first == _VEX3:
        prefix = (code[start + 1] & 0x9F) | 0x40 | (0 if high else 0x20)
        return code[: start + 1] + bytes([prefix]) + code[start + 2 : start + 4], start + 4
    if first == _VEX2:
        if not high:
            return code[: start + 3], start + 3
        second = bytes([_VEX3, code[start + 1] & 0x80 | 0x40 | 1, code[start + 1] & 0x7F])
        return code[:start] + second + code[start + 2 : start + 3], start + 3
    rex = first if first & 0xF0 == 0x40 else 0
    opcode = start + bool(rex)
    prefix = (rex & 0x4C) | high
    found = bytes([0x40 | prefix]) if rex or high else b""
    length = 1
    if code[opcode] == 0x0F:
        length = 3 if code[opcode + 1] in (0x38, 0x3A) else 2
    elif code[opcode] in _WITH_OFFSET:
        raise RefusedError(f"{code.hex(' ')} is not re-indexed", "its address is a part of it")
    return code[:start] + found + code[opcode : opcode + length], opcode + length


def _end_of_address(code: bytes, at: int) -> int:
    """The end of the bytes of the old address; the ModRM byte is at ``at``."""
    mode, number = code[at] >> 6, code[at] & 7
    end, base = at + 1, number
    if number == 4:
        end, base = at + 2, code[at + 1] & 7
    wide = mode == 2 or (mode == 0 and base == 5)
    return end + (4 if wide else mode)


def _check(old: Insn, made: bytes, register: int, distance: int) -> None:
    what = f"{old.bytes.hex(' ')} is not re-indexed"
    try:
        new = decode_one(made, _ANYWHERE)
    except NotLiftedError as error:
        raise RefusedError(what, error.reason) from None
    place = MemoryOperand(Gpr(register), None, 1, distance % (1 << 64), 0)
    moved = tuple(replace(place, bytes=o.bytes) if isinstance(o, MemoryOperand) else o for o in old.operands)
    if new != replace(old, bytes=made, text=new.text, operands=moved):
        raise RefusedError(what, f"{made.hex(' ')} would be another instruction")
