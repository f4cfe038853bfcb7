"""The memory accesses of an instruction: kind, size, and how the address is made.

capstone's access flags are wrong for some stores (``movlps``, ``vmovss``, ``vmaskmovps`` are given as reads), so reading and
writing is decided here by the operand's position and two small tables of mnemonics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from capstone import x86_const as x86

from layout_advise.tracer.code.decoder import GPR, REGISTERS, VECTOR
from layout_advise.tracer.code.evex import Elements, elements_of, evex_of, overshoot

Kind = Literal["read", "write", "both"]

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
_WORD = (1 << 64) - 1


_NARROW = {x86.X86_REG_EIP} | {number for number, found in REGISTERS.items() if (found.kind, found.bytes) == ("gpr", 4)}


@dataclass(frozen=True, slots=True)
class OperandAddress:
    """``base + index * scale + disp``, or ``target`` (an absolute address: rip-relative operands); ``fs`` adds the base of
    the thread's control block. Registers are numbers as encoded."""

    base: int | None = None
    index: int | None = None
    scale: int = 1
    disp: int = 0
    target: int | None = None
    fs: bool = False
    narrow: bool = False
    """32-bit address arithmetic (prefix 67)."""

    def effective(self, gpr: Sequence[int], fs_base: int) -> int:
        """The address with these general registers, without the index of a gather."""
        if self.target is not None:
            return self.target
        address = self.disp
        if self.base is not None:
            address += gpr[self.base]
        if self.index is not None:
            address += gpr[self.index] * self.scale
        address &= 0xFFFFFFFF if self.narrow else _WORD
        return address + (fs_base if self.fs else 0) & _WORD


@dataclass(frozen=True, slots=True)
class MaskedElements:
    """The condition under which each access of a gather, a scatter or a masked move is made, and its address.

    ``mask`` is a mask register where ``opmask``; access k is made if one of the bits ``bits[k]`` is set in it, or in as many
    low bits as it has among ``bits``, where they are ``counted``. Else it is a vector: access k is made if the sign of its
    element k is set. Of gathers and scatters the address is that of the access plus ``scale`` times element k of ``index``.
    """

    mask: int
    opmask: bool
    bits: tuple[int, ...]
    element_bytes: int
    counted: bool = False
    index: int | None = None
    index_bytes: int = 0
    vector_bytes: int = 0
    """Of the vectors that have to be looked at."""

    def made(self, mask: int) -> list[bool]:
        """For each access, whether it is made with this mask (of a vector: the signs of its elements)."""
        if self.counted:
            mask = (1 << (mask & sum(self.bits)).bit_count()) - 1
        return [bool(mask & bits) for bits in self.bits]


@dataclass(frozen=True, slots=True)
class OperandAccess:
    """One memory operand. ``operand`` numbers the operands of an instruction: the explicit ones first, then the stack; for
    what has lanes it is the lane."""

    operand: int
    kind: Kind
    bytes: int
    memory: OperandAddress


def words(text: str) -> frozenset[str]:
    """The words of ``text`` as a set."""
    return frozenset(text.split())


_NO_ACCESS = frozenset({"lea", "nop", "endbr64", "clflush", "clflushopt", "clwb", "cldemote", "invlpg"})
_READ_FIRST = words(
    "cmp test push call jmp mul div idiv imul bt ldmxcsr vldmxcsr fxrstor fxrstor64 frstor fldenv lgdt verr verw"
)
_MODIFY = words(
    "add sub and or xor adc sbb inc dec neg not shl shr sal sar rol ror rcl rcr shld shrd xchg xadd cmpxchg "
    "cmpxchg8b cmpxchg16b bts btr btc"
)
_X87_STORES = ("fst", "fist", "fnst", "fsave", "fnsave", "fxsave", "fbstp")
_STRING = frozenset(f"{op}{width}" for op in ("movs", "stos", "lods", "cmps", "scas") for width in "bwdq")
_REFUSED = words("enter leavew xlatb maskmovq maskmovdqu vmaskmovdqu iretq iretd retf retfq ljmp lcall xbegin")
_REFUSED_STARTS = ("xsave", "xrstor", "insb", "insw", "insd", "outs", "tile")
_NOT_TOUCHING = ("prefetch", "vgatherpf", "vscatterpf")
_INDEXED = ("vgather", "vpgather", "vscatter", "vpscatter")
_MASKED = ("vmaskmovp", "vpmaskmov")


class UnsupportedOperand(Exception):
    """The instruction cannot be instrumented; the text says why."""


def bare(mnemonic: str) -> str:
    """The mnemonic without its prefixes (``lock``, ``rep``, ``notrack``, ``bnd``)."""
    return mnemonic.rsplit(" ", 1)[-1]


def is_string(insn: Any) -> bool:
    """Returns whether ``insn`` is a string instruction (``movsd`` is also the name of an SSE move)."""
    return (
        bare(insn.mnemonic) in _STRING and insn.opcode[0] in (*range(0xA4, 0xA8), *range(0xAA, 0xB0)) and not insn.opcode[1]
    )


def kind_of(mnemonic: str, position: int) -> Kind:
    """How the memory operand at ``position`` (0: the destination in Intel's order) of ``mnemonic`` is accessed."""
    if mnemonic in ("xchg", "xadd"):
        return "both"
    if position > 0 or mnemonic in _READ_FIRST:
        return "read"
    if mnemonic in _MODIFY:
        return "both"
    if mnemonic.startswith("f"):
        return "write" if mnemonic.startswith(_X87_STORES) else "read"
    if mnemonic in _STRING:
        return "write" if mnemonic[:4] in ("movs", "stos") else "read"
    if "ucomis" in mnemonic or "comis" in mnemonic or mnemonic in ("ptest", "vptest"):
        return "read"
    return "write"


def memory_of(insn: Any, operand: Any) -> OperandAddress:
    """The address of a capstone memory operand. Raises :class:`UnsupportedOperand` for segments other than fs."""
    mem = operand.mem
    if mem.segment == x86.X86_REG_GS:
        raise UnsupportedOperand("it addresses through gs")
    fs, disp = mem.segment == x86.X86_REG_FS, mem.disp - overshoot(bytes(insn.bytes))
    if mem.base in (x86.X86_REG_RIP, x86.X86_REG_EIP):
        return OperandAddress(target=insn.address + insn.size + disp, fs=fs)
    narrow = mem.base in _NARROW or mem.index in _NARROW
    if fs and narrow:
        raise UnsupportedOperand("it has a 32-bit address in the thread's control block")
    index = GPR.get(mem.index)
    if mem.index and index is None and mem.index not in VECTOR and mem.index not in (x86.X86_REG_RIZ, x86.X86_REG_EIZ):
        raise UnsupportedOperand("its index register is unknown")
    return OperandAddress(GPR.get(mem.base), index, mem.scale, disp, None, fs, narrow)


def lanes_of(insn: Any) -> MaskedElements | None:
    """The lanes of a gather, a scatter or a masked move, ``None`` for other instructions."""
    name = bare(insn.mnemonic)
    if name.startswith(_NOT_TOUCHING):
        return None
    if name.startswith(_INDEXED):
        return _indexed(insn, name)
    if name.startswith(_MASKED):
        each = _element_bytes(name)
        count = _memory_operand(insn).size // each
        return MaskedElements(VECTOR[insn.operands[1].reg], False, _each(count), each, vector_bytes=each * count)
    evex = evex_of(bytes(insn.bytes))
    memory = _memory_operand(insn)
    if evex is None or memory is None:
        return None
    found = elements_of(name, evex, memory.size, immediate=insn.operands[-1].type == x86.X86_OP_IMM)
    return None if found is None else _of_elements(evex.mask, found)


def _of_elements(mask: int, found: Elements) -> MaskedElements:
    return MaskedElements(mask, True, found.bits, found.bytes, found.counted)


def _indexed(insn: Any, name: str) -> MaskedElements:
    """A gather or scatter."""
    code = bytes(insn.bytes)
    index_bytes = 8 if re.split("gather|scatter", name)[1][0] == "q" else 4
    element_bytes = _element_bytes(name)
    index = VECTOR[_memory_operand(insn).mem.index]
    evex = evex_of(code)
    if evex is not None:
        if not evex.mask:
            raise UnsupportedOperand("it has no mask")
        bits = _each(evex.vector_bytes // max(index_bytes, element_bytes))
        return MaskedElements(evex.mask, True, bits, element_bytes, False, index, index_bytes, evex.vector_bytes)
    at = code.find(0xC4)
    if at < 0 or len(insn.operands) != 3:
        raise UnsupportedOperand("its encoding is unknown")
    vector_bytes = 32 if code[at + 2] & 4 else 16
    bits = _each(vector_bytes // max(index_bytes, element_bytes))
    return MaskedElements(VECTOR[insn.operands[2].reg], False, bits, element_bytes, False, index, index_bytes, vector_bytes)


def _each(count: int) -> tuple[int, ...]:
    return tuple(1 << k for k in range(count))


def _element_bytes(name: str) -> int:
    return 8 if name.endswith(("pd", "q")) else 4


def _memory_operand(insn: Any) -> Any:
    return next((operand for operand in insn.operands if operand.type == x86.X86_OP_MEM), None)


def accesses_of(insn: Any) -> tuple[OperandAccess, ...]:
    """Every memory access of ``insn``, explicit operands first, then the stack; of gathers, scatters and masked moves one
    for each lane (:func:`lanes_of` tells which of them are made). Raises :class:`UnsupportedOperand`."""
    name = bare(insn.mnemonic)
    if name in _NO_ACCESS or name.startswith(_NOT_TOUCHING):
        return ()
    if name in _REFUSED or name.startswith(_REFUSED_STARTS):
        raise UnsupportedOperand("it is not supported")
    lanes = lanes_of(insn)
    if lanes is not None:
        return _lane_accesses(insn, name, lanes)
    found: list[OperandAccess] = []
    for position, operand in enumerate(insn.operands):
        if operand.type != x86.X86_OP_MEM:
            continue
        if name in ("bt", "bts", "btr", "btc") and insn.operands[1].type == x86.X86_OP_REG:
            raise UnsupportedOperand("its bit offset reaches beyond the operand")
        memory = memory_of(insn, operand)
        if name == "pop" and memory.base == RSP:
            raise UnsupportedOperand("it pops to an address relative to rsp")
        found.append(OperandAccess(len(found), kind_of(name, position), operand.size, memory))
    stack = _stack_access(insn, name)
    if stack is not None:
        found.append(OperandAccess(len(found), *stack))
    return tuple(found)


def _lane_accesses(insn: Any, name: str, lanes: MaskedElements) -> tuple[OperandAccess, ...]:
    """The elements of a masked move follow each other; those of a gather or scatter are all where it has its base."""
    position = next(n for n, operand in enumerate(insn.operands) if operand.type == x86.X86_OP_MEM)
    memory, kind = memory_of(insn, insn.operands[position]), kind_of(name, position)
    if lanes.index is not None and (memory.fs or memory.narrow):
        raise UnsupportedOperand("its address is not flat")
    step = 0 if lanes.index is not None else lanes.element_bytes
    return tuple(OperandAccess(k, kind, lanes.element_bytes, _behind(memory, k * step)) for k in range(len(lanes.bits)))


def _behind(memory: OperandAddress, offset: int) -> OperandAddress:
    if memory.target is not None:
        return replace(memory, target=memory.target + offset)
    return replace(memory, disp=memory.disp + offset)


def _stack_access(insn: Any, name: str) -> tuple[Kind, int, OperandAddress] | None:
    if name == "call":
        return "write", 8, OperandAddress(base=RSP, disp=-8)
    if name == "ret":
        return "read", 8, OperandAddress(base=RSP)
    if name == "leave":
        return "read", 8, OperandAddress(base=RBP)
    if name in ("push", "pushf", "pushfq"):
        size = 2 if name == "pushf" or (name == "push" and _is_word(insn)) else 8
        return "write", size, OperandAddress(base=RSP, disp=-size)
    if name in ("pop", "popf", "popfq"):
        size = 2 if name == "popf" or (name == "pop" and _is_word(insn)) else 8
        return "read", size, OperandAddress(base=RSP)
    return None


def _is_word(insn: Any) -> bool:
    """Returns whether a push or pop has the operand-size prefix (the size of an immediate says nothing)."""
    return bool(insn.prefix[2] == 0x66)
