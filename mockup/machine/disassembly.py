"""Machine code as data: capstone's decoding turned into our own frozen instructions.

Nothing behind this module sees capstone. Three things are normalised here: compares whose predicate capstone writes into the
mnemonic (``vcmplt_oqpd``, ``vpcmpltud``) become ``vcmppd``, ``vpcmpud`` with the predicate as last operand, rip-relative
addresses become absolute, and the mask that governs an AVX-512 instruction is no operand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from capstone import x86_const as x86

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.tracer.code.decoder import LONGEST_INSTRUCTION, REGISTERS, disassemble
from layout_advise.tracer.code.decoder import Register as Register
from layout_advise.tracer.code.decoder import register as register
from layout_advise.tracer.code.evex import Evex, evex_of, opcode_at, overshoot
from layout_advise.tracer.code.region import Region

_COMPARE = re.compile(r"(v?cmp)[a-z_]*(ps|pd|ss|sd)")
_INTEGER_COMPARE = re.compile(r"vpcmp(?:eq|neq|n?lt|n?le)?(u?[bwdq])")
_PREDICATES = 32
_INTEGER_PREDICATES = 8
_ROUNDINGS = ("sae", "rn-sae", "rd-sae", "ru-sae", "rz-sae")


@dataclass(frozen=True, slots=True)
class MemoryOperand:
    """A memory operand: ``base + index * scale + displacement`` (mod 2**64), ``bytes`` bytes wide.

    rip-relative operands have no base and an absolute ``displacement``. ``vector_index`` is the index of a gather.
    ``narrow`` tells of 32-bit address arithmetic; ``segment`` is ``fs`` or ``gs`` where overridden.
    """

    base: Gpr | None
    index: Gpr | None
    scale: int
    displacement: int
    bytes: int
    vector_index: Register | None = None
    segment: str | None = None
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant operand; ``value`` is signed as written by the encoder (branch targets are run-time addresses)."""

    value: int


Operand = Register | MemoryOperand | Immediate


@dataclass(frozen=True, slots=True)
class Insn:
    """One instruction at its run-time address.

    ``mnemonic`` without prefixes; ``prefixes`` names ``lock``, ``rep``, ``repne`` where they are prefixes proper (not part
    of the opcode). ``evex`` marks AVX-512 encodings; of those ``mask`` is the number of the mask register that governs the
    elements (0: none; it is no operand), ``zeroing`` whether the others become zero, ``broadcast`` whether the operand in
    memory is one element for all, ``rounding`` what is said in braces instead (``sae``, ``rn-sae``...), and ``vector_bytes``
    the width of the operation. ``text`` is for messages.
    """

    address: int
    bytes: bytes
    mnemonic: str
    text: str
    operands: tuple[Operand, ...]
    prefixes: frozenset[str] = frozenset()
    vex: bool = False
    evex: bool = False
    mask: int = 0
    zeroing: bool = False
    broadcast: bool = False
    rounding: str = ""
    vector_bytes: int = 0

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.bytes)

    @property
    def end(self) -> int:
        """Address of the next instruction."""
        return self.address + len(self.bytes)

    def refuse(self, reason: str) -> NotLiftedError:
        """The error that says that this instruction stops the lifter, and why."""
        return NotLiftedError(self.address, self.text, reason)


def _memory(insn: Any, operand: Any) -> MemoryOperand:
    base, index = REGISTERS.get(operand.mem.base), REGISTERS.get(operand.mem.index)
    relative = operand.mem.base in (x86.X86_REG_RIP, x86.X86_REG_EIP)
    segment = insn.reg_name(operand.mem.segment) if operand.mem.segment else None
    return MemoryOperand(
        base=Gpr(base.number) if base is not None and base.kind == "gpr" else None,
        index=Gpr(index.number) if index is not None and index.kind == "gpr" else None,
        scale=operand.mem.scale,
        displacement=(operand.mem.disp - overshoot(bytes(insn.bytes)) + (insn.address + insn.size if relative else 0))
        % 2**64,
        bytes=operand.size,
        vector_index=index if index is not None and index.kind == "vector" else None,
        segment=segment if segment in ("fs", "gs") else None,
        narrow=insn.addr_size == 4,
    )


def _operand(insn: Any, operand: Any) -> Operand:
    if operand.type == x86.X86_OP_REG:
        return REGISTERS[operand.reg]
    if operand.type == x86.X86_OP_IMM:
        return Immediate(operand.imm)
    return _memory(insn, operand)


def _convert(insn: Any) -> Insn:
    operands = tuple(_operand(insn, operand) for operand in insn.operands)
    code = bytes(insn.bytes)
    words = insn.mnemonic.split()
    evex = evex_of(code)
    mnemonic, operands = _named_predicate(words[-1], operands, code, evex is not None and evex.opcode_map == 3)
    names = {"lock": "lock", "rep": "rep", "repe": "rep", "repz": "rep", "repne": "repne", "repnz": "repne"}
    prefixes = {names[word] for word in words[:-1] if word in names}
    if mnemonic == "ret":
        prefixes.discard("rep")  # "rep ret" is old AMD padding
    plain = Insn(
        address=insn.address,
        bytes=code,
        mnemonic=mnemonic,
        text=f"{insn.mnemonic} {insn.op_str}".strip(),
        operands=operands,
        prefixes=frozenset(prefixes),
        vex=code[opcode_at(code)] in (0xC4, 0xC5),
    )
    return plain if evex is None else _extended(plain, evex, insn.avx_rm)


def _named_predicate(
    mnemonic: str, operands: tuple[Operand, ...], code: bytes, third_map: bool
) -> tuple[str, tuple[Operand, ...]]:
    """Compares as one instruction each, with their predicate as operand. Of integers only those of the ``third_map`` of
    opcodes have one: ``vpcmpeqd`` is also an instruction of its own."""
    given = bool(operands) and isinstance(operands[-1], Immediate)
    if any(isinstance(op, Register) and op.kind == "vector" for op in operands):
        if compare := _COMPARE.fullmatch(mnemonic):
            return compare[1] + compare[2], operands if given else (*operands, Immediate(code[-1] % _PREDICATES))
        if third_map and (compare := _INTEGER_COMPARE.fullmatch(mnemonic)):
            return f"vpcmp{compare[1]}", operands if given else (*operands, Immediate(code[-1] % _INTEGER_PREDICATES))
    return mnemonic, operands


def _extended(insn: Insn, evex: Evex, rounding: int) -> Insn:
    """Adds the fields of an EVEX prefix, of which capstone reports only some. The governing mask, which
    capstone gives as the second operand, is taken out."""
    operands = insn.operands
    if evex.mask:
        assert len(operands) > 1, insn.text
        governing = operands[1]
        assert isinstance(governing, Register), insn.text
        assert (governing.kind, governing.number) == ("mask", evex.mask), insn.text
        operands = (operands[0], *operands[2:])
    memory = any(isinstance(op, MemoryOperand) for op in operands)
    said = evex.broadcast and not memory
    return replace(
        insn,
        operands=operands,
        evex=True,
        mask=evex.mask,
        zeroing=evex.zeroing,
        broadcast=evex.broadcast and memory,
        rounding=_ROUNDINGS[rounding] if said else "",
        vector_bytes=64 if said else evex.vector_bytes,  # the bits of the width tell the rounding then
    )


def decode_one(code: bytes, address: int) -> Insn:
    """The instruction at the start of ``code``; raises :class:`NotLiftedError` where the bytes are no instruction."""
    for insn in disassemble(code[:LONGEST_INSTRUCTION], address, 1):
        return _convert(insn)
    half = code[:1] == b"\x62" and len(code) > 1 and code[1] & 7 in (5, 6)  # the maps that EVEX got for it
    why = "an instruction of AVX-512 FP16; rebuild with -mno-avx512fp16" if half else "not a known x86-64 instruction"
    raise NotLiftedError(address, f"bytes {code[:8].hex()}", why)


def decode(region: Region) -> dict[int, Insn]:
    """Every instruction of the region's ranges by linear sweep, ascending by address.

    Data inside the code would be decoded too: use :func:`layout_advise.mockup.machine.cfg.build_cfg` for what can be
    reached. Bytes that are no instruction end the sweep of their range.
    """
    found: dict[int, Insn] = {}
    for piece in sorted(region.ranges, key=lambda r: r.start):
        for insn in disassemble(piece.code, piece.start):
            found[insn.address] = _convert(insn)
    return found
