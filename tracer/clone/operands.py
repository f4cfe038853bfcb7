"""Which memory an instruction accesses, how, and where the address comes from.

capstone's access flags are wrong for some stores (``movlps``, ``vmovss``, ``vmaskmovps`` are given as reads), so reading and
writing is decided here by the operand's position and two small tables of mnemonics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from capstone import x86_const as x86

Kind = Literal["read", "write", "both"]

GPR_NAMES = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))
RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)


def _gpr_numbers() -> dict[int, int]:
    """capstone's register id -> number, for every width (``ah`` is part of rax)."""
    spelling: dict[str, int] = {}
    for number, name in enumerate(GPR_NAMES):
        if number < 8:
            short = name[1:]
            spelling |= {name: number, f"e{short}": number, short: number}
            spelling |= {f"{short[0]}l": number, f"{short[0]}h": number} if number < 4 else {f"{short}l": number}
        else:
            spelling |= {name + suffix: number for suffix in ("", "d", "w", "b")}
    return {getattr(x86, f"X86_REG_{name.upper()}"): number for name, number in spelling.items()}


GPR = _gpr_numbers()
VECTOR = {
    getattr(x86, f"X86_REG_{width}{number}"): number for width in ("XMM", "YMM", "ZMM") for number in range(32)
}  # fmt: skip
_NARROW = {getattr(x86, f"X86_REG_{name}") for name in ("EAX", "ECX", "EDX", "EBX", "ESP", "EBP", "ESI", "EDI", "EIP")} | {
    getattr(x86, f"X86_REG_R{number}D") for number in range(8, 16)
}


@dataclass(frozen=True, slots=True)
class Memory:
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


@dataclass(frozen=True, slots=True)
class Lanes:
    """The addresses of a gather: lane ``k`` is at ``memory + scale * index[k]`` if the sign of ``mask[k]`` is set."""

    index: int
    mask: int
    count: int
    index_bytes: int
    element_bytes: int


@dataclass(frozen=True, slots=True)
class Access:
    """One memory operand. ``operand`` numbers the operands of an instruction: the explicit ones first, then the stack; for a
    gather it is the lane."""

    operand: int
    kind: Kind
    bytes: int
    memory: Memory


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
_REFUSED_STARTS = ("xsave", "xrstor", "insb", "insw", "insd", "outs", "tile", "vscatter", "vpscatter")
_COUNTED = ("vcompress", "vpcompress", "vexpand", "vpexpand")  # in memory, as many elements as their mask has bits


class Refused(Exception):
    """The instruction cannot be instrumented; the text says why."""


def bare(mnemonic: str) -> str:
    """The mnemonic without its prefixes (``lock``, ``rep``, ``notrack``, ``bnd``)."""
    return mnemonic.rsplit(" ", 1)[-1]


def is_string(insn: Any) -> bool:
    """Whether ``insn`` is a string instruction (``movsd`` is also the name of an SSE move)."""
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


def memory_of(insn: Any, operand: Any) -> Memory:
    """The address of a capstone memory operand. Raises :class:`Refused` for segments other than fs."""
    mem = operand.mem
    if mem.segment == x86.X86_REG_GS:
        raise Refused("it addresses through gs")
    fs = mem.segment == x86.X86_REG_FS
    if mem.base in (x86.X86_REG_RIP, x86.X86_REG_EIP):
        return Memory(target=insn.address + insn.size + mem.disp, fs=fs)
    narrow = mem.base in _NARROW or mem.index in _NARROW
    if fs and narrow:
        raise Refused("it has a 32-bit address in the thread's control block")
    index = GPR.get(mem.index)
    if mem.index and index is None and mem.index not in VECTOR and mem.index not in (x86.X86_REG_RIZ, x86.X86_REG_EIZ):
        raise Refused("its index register is unknown")
    return Memory(GPR.get(mem.base), index, mem.scale, mem.disp, None, fs, narrow)


def lanes_of(insn: Any) -> Lanes | None:
    """The lanes of a VEX gather, ``None`` for other instructions. Raises :class:`Refused` for the EVEX form."""
    name = bare(insn.mnemonic)
    if not name.startswith(("vgather", "vpgather")):
        return None
    vex = bytes(insn.bytes)
    at = vex.find(0xC4)
    if 0x62 in vex[:at] or at not in (0, 1) or len(insn.operands) != 3:
        raise Refused("it is an AVX-512 gather")
    index_bytes = 8 if name.split("gather")[1][0] == "q" else 4
    element_bytes = 8 if name.endswith(("pd", "q")) else 4
    vector_bytes = 32 if vex[at + 2] & 4 else 16
    memory = insn.operands[1].mem
    return Lanes(
        index=VECTOR[memory.index],
        mask=VECTOR[insn.operands[2].reg],
        count=vector_bytes // max(index_bytes, element_bytes),
        index_bytes=index_bytes,
        element_bytes=element_bytes,
    )


def accesses_of(insn: Any) -> tuple[Access, ...]:
    """Every memory access of ``insn``, explicit operands first, then the stack. Raises :class:`Refused`.

    A masked move counts as one access of its full size whatever its mask is.
    """
    name = bare(insn.mnemonic)
    if name in _NO_ACCESS or name.startswith("prefetch"):
        return ()
    if name in _REFUSED or name.startswith(_REFUSED_STARTS):
        raise Refused("it is not supported")
    lanes = lanes_of(insn)
    if lanes is not None:
        memory = memory_of(insn, insn.operands[1])
        return tuple(Access(k, "read", lanes.element_bytes, memory) for k in range(lanes.count))
    found: list[Access] = []
    for position, operand in enumerate(insn.operands):
        if operand.type != x86.X86_OP_MEM:
            continue
        if name in ("bt", "bts", "btr", "btc") and insn.operands[1].type == x86.X86_OP_REG:
            raise Refused("its bit offset reaches beyond the operand")
        if name.startswith(_COUNTED):
            raise Refused("its mask says how much it accesses")
        memory = memory_of(insn, operand)
        if name == "pop" and memory.base == RSP:
            raise Refused("it pops to an address relative to rsp")
        found.append(Access(len(found), kind_of(name, position), operand.size, memory))
    stack = _stack_access(insn, name)
    if stack is not None:
        found.append(Access(len(found), *stack))
    return tuple(found)


def _stack_access(insn: Any, name: str) -> tuple[Kind, int, Memory] | None:
    if name == "call":
        return "write", 8, Memory(base=RSP, disp=-8)
    if name == "ret":
        return "read", 8, Memory(base=RSP)
    if name == "leave":
        return "read", 8, Memory(base=RBP)
    if name in ("push", "pushf", "pushfq"):
        size = 2 if name == "pushf" or (name == "push" and _is_word(insn)) else 8
        return "write", size, Memory(base=RSP, disp=-size)
    if name in ("pop", "popf", "popfq"):
        size = 2 if name == "popf" or (name == "pop" and _is_word(insn)) else 8
        return "read", size, Memory(base=RSP)
    return None


def _is_word(insn: Any) -> bool:
    """Whether a push or pop has the operand-size prefix (the size of an immediate says nothing)."""
    return bool(insn.prefix[2] == 0x66)
