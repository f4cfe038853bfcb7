"""The patch at a hotspot's entry, with the displaced instructions relocated; planned offline from the file's bytes.

A five-byte jump leads to a stub that counts and then runs the displaced instructions; where those cannot be moved or a
branch leads between them, a one-byte ``int3`` and a signal handler do the same, some hundred times slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import capstone
from capstone import x86_const as x86

from layout_advise.errors import EntryError, SnapshotError

JUMP_BYTES = 5
ALIGNMENT = 15
"""So many bytes of padding there are at most."""
MAX_BLOB, MAX_FIXES = 128, 8
MAX_EXITS, MAX_EXIT_BLOB, MAX_EXIT_FIXES = 6, 64, 4
RDX, RDI = 2, 7


@dataclass(frozen=True, slots=True)
class Outlined:
    """The body of a parallel region, at ``address`` of the ELF file ``path``. ``register`` (numbered as encoded) is where
    the runtime's function that starts the region is handed it."""

    path: Path
    address: int
    register: int = RDI


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a hotspot: ``address`` as in the ELF file ``path``, ``code`` the function's bytes from there on, with the
    :func:`padding` behind it.

    With ``outlined`` it is the entry of the runtime's function that starts parallel regions, and only those calls count
    that are handed that body."""

    path: Path
    address: int
    code: bytes
    symbol: str = ""
    outlined: Outlined | None = None
    exits: tuple[Entry, ...] = ()
    """The places where control goes on after a loop; a function returns instead."""
    chunk: int = 0
    """At the head of a loop: so many iterations in a row are a call; 0: each passage of the entry is one."""


@dataclass(frozen=True, slots=True)
class Fix:
    """``blob[at:at+4]`` becomes ``target - address of blob[end]``; ``target`` is an address in the ELF file."""

    at: int
    end: int
    target: int


@dataclass(frozen=True, slots=True)
class Patch:
    """``blob`` does what the first ``size`` bytes at the entry do. ``int3``: too short or branched into for a jump."""

    size: int
    blob: bytes
    fixes: tuple[Fix, ...]
    original: bytes
    int3: bool


@dataclass(frozen=True, slots=True)
class _Moved:
    code: bytes
    at: int | None = None  # of the rel32 field
    target: int = 0


def _branch_target(insn: capstone.CsInsn) -> int | None:
    """Target of a direct jump or call."""
    if not (insn.group(x86.X86_GRP_JUMP) or insn.group(x86.X86_GRP_CALL) or insn.group(x86.X86_GRP_BRANCH_RELATIVE)):
        return None
    operand = insn.operands[0] if insn.operands else None
    return int(operand.imm) if operand is not None and operand.type == x86.X86_OP_IMM else None


def _move(insn: capstone.CsInsn) -> _Moved | None:
    """The instruction for another address, or None where there is no simple form of it."""
    code = bytes(insn.bytes)
    target = _branch_target(insn)
    if target is not None:
        opcode = code.lstrip(b"\xf2\xf3\x2e\x3e")  # bnd, notrack, branch hints: meaningless here
        if opcode[0] == 0xE8:
            return _Moved(b"\xe8\0\0\0\0", 1, target)
        if opcode[0] in (0xE9, 0xEB):
            return _Moved(b"\xe9\0\0\0\0", 1, target)
        if 0x70 <= opcode[0] <= 0x7F:
            return _Moved(bytes((0x0F, opcode[0] + 0x10, 0, 0, 0, 0)), 2, target)
        if opcode[0] == 0x0F and 0x80 <= opcode[1] <= 0x8F:
            return _Moved(opcode[:2] + b"\0\0\0\0", 2, target)
        return None  # loop, jrcxz, xbegin
    for operand in insn.operands:
        if operand.type == x86.X86_OP_MEM and operand.mem.base == x86.X86_REG_RIP:
            return _Moved(code, insn.disp_offset, insn.address + insn.size + operand.mem.disp)
    return _Moved(code)


def _decode(code: bytes, address: int) -> list[capstone.CsInsn]:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    return list(decoder.disasm(code, address))


def _is_padding(insn: capstone.CsInsn) -> bool:
    return insn.id in (x86.X86_INS_NOP, x86.X86_INS_INT3) or bytes(insn.bytes) == b"\x66\x90"


def padding(code: bytes) -> bytes:
    """The bytes at the start of ``code`` that compilers put between functions and blocks, and that nothing reaches."""
    found = takewhile(_is_padding, _decode(code, 0))
    return code[: sum(insn.size for insn in found)]


def _relocate(insns: list[capstone.CsInsn], wanted: int) -> tuple[int, bytes, tuple[Fix, ...]] | None:
    size, blob, fixes = 0, b"", []
    for number, insn in enumerate(insns, 1):
        if size >= wanted:
            break
        moved = _move(insn)
        if moved is None:
            return None
        if moved.at is not None:
            fixes.append(Fix(len(blob) + moved.at, len(blob) + len(moved.code), moved.target))
        blob += moved.code
        size += insn.size
        leaves = insn.group(x86.X86_GRP_RET) or insn.id == x86.X86_INS_JMP
        if leaves and size < wanted:  # what follows may be another function, or the target of a branch; padding is neither
            room = size + sum(one.size for one in takewhile(_is_padding, insns[number:]))
            return (wanted, blob, tuple(fixes)) if room >= wanted else None
    return (size, blob, tuple(fixes)) if size >= wanted else None


def plan_exit(entry: Entry) -> Patch:
    """How to patch the place where a loop is left. Raises :class:`SnapshotError` where there is no room for a jump."""
    moved = _relocate(_decode(entry.code, entry.address), JUMP_BYTES)
    if moved is None or len(moved[1]) > MAX_EXIT_BLOB or len(moved[2]) > MAX_EXIT_FIXES:
        what = f"cannot watch the end of the loop at {entry.address:#x}"
        raise SnapshotError(what, "the instructions after it cannot be moved")
    size, blob, fixes = moved
    return Patch(size, blob, fixes, entry.code[:size], False)


def plan_patch(entry: Entry) -> Patch:
    """How to patch ``entry``. Raises :class:`EntryError` where neither way works."""
    insns = _decode(entry.code, entry.address)
    if not insns:
        raise EntryError(f"cannot stop at {entry.symbol or hex(entry.address)}", "its first instruction does not decode")
    targets = {target for insn in insns if not insn.group(x86.X86_GRP_CALL) and (target := _branch_target(insn)) is not None}
    if entry.address in targets and not entry.exits:  # a loop's entry stands before its head
        raise EntryError(
            f"cannot stop at {entry.symbol or hex(entry.address)}",
            "its first instruction is the head of a loop, so passes would be counted as calls",
        )
    moved = _relocate(insns, JUMP_BYTES)
    int3 = moved is None or any(entry.address < target < entry.address + moved[0] for target in targets)
    if int3 and entry.chunk:
        raise EntryError(f"cannot count at {entry.symbol or hex(entry.address)}", "there is no room for a jump")
    if int3:
        moved = _relocate(insns[:1], 1)
    if moved is None or len(moved[1]) > MAX_BLOB or len(moved[2]) > MAX_FIXES:
        raise EntryError(
            f"cannot stop at {entry.symbol or hex(entry.address)}",
            f"its first instruction ({insns[0].mnemonic} {insns[0].op_str}) cannot be moved",
        )
    size, blob, fixes = moved
    return Patch(size, blob, fixes, entry.code[: max(size, 1 if int3 else JUMP_BYTES)], int3)
