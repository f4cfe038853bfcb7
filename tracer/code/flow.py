"""The effect of a capstone instruction on control, flags and general registers."""

from __future__ import annotations

from typing import Any, Literal

from capstone import x86_const as x86

from layout_advise.errors import RefusedError
from layout_advise.tracer.code.decoder import GPR
from layout_advise.tracer.code.operands import RAX, RBX, RCX, RDI, RDX, RSI, UnsupportedOperand, is_string, words

Flow = Literal["next", "jump", "branch", "loop", "call", "return", "jump-indirect", "call-indirect", "stop"]

_STOPS = frozenset({"ud2", "ud1", "ud0", "hlt", "int3"})
_BREAKS = frozenset(
    {"syscall", "sysenter", "int", "cpuid", "xgetbv", "rdtsc", "rdtscp", "rdpkru", "wrpkru", "monitor", "mwait"}
)
_LOOPS = frozenset({"loop", "loope", "loopne", "jrcxz", "jecxz"})
_FLAG_READERS = (
    "j",
    "set",
    "cmov",
    "fcmov",
    "adc",
    "sbb",
    "rcl",
    "rcr",
    "lahf",
    "pushf",
    "cmc",
    "loop",
    "ado",
    "int",
    "sys",
)
_FLAG_KILLERS = words(
    "cmp test add sub and or xor neg xadd ucomiss ucomisd comiss comisd vucomiss vucomisd vcomiss vcomisd ptest vptest "
    "call ret"
)
# capstone's lists of implicit registers are not always complete; these are added to them
_IMPLICIT: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("mul", "imul", "div", "idiv", "cwd", "cdq", "cqo", "cbw", "cwde", "cdqe", "cmpxchg"), (RAX, RDX)),
    **dict.fromkeys(("cmpxchg8b", "cmpxchg16b"), (RAX, RBX, RCX, RDX)),
    **dict.fromkeys(("lahf", "sahf", "fnstsw", "fstsw"), (RAX,)),
    "mulx": (RDX,),
}


def repeat_prefix(insn: Any) -> int:
    """The prefix byte of a repeated string instruction, else 0."""
    if not is_string(insn) or insn.prefix[0] not in (0xF2, 0xF3):
        return 0
    if insn.addr_size != 8:
        raise UnsupportedOperand("it is a repeated string instruction with 32-bit addresses")
    return int(insn.prefix[0])


def flow_of(insn: Any, name: str) -> tuple[Flow, int | None, int | None]:
    """How control goes on, the target of a direct jump or call, and the register that an indirect one goes through."""
    if name == "ret":
        return "return", None, None
    if name in _STOPS:
        return ("stop" if name != "int3" else "next"), None, None
    direct: dict[str, Flow] = {"jmp": "jump", "call": "call"}
    if name in direct:
        operand = insn.operands[0]
        if operand.type == x86.X86_OP_IMM:
            return direct[name], operand.imm, None
        register = GPR[operand.reg] if operand.type == x86.X86_OP_REG else None
        return ("jump-indirect" if name == "jmp" else "call-indirect"), None, register
    if name in _LOOPS:
        return "loop", insn.operands[0].imm, None
    if name.startswith("j"):
        return "branch", insn.operands[0].imm, None
    return "next", None, None


def relative_displacement(insn: Any) -> tuple[int, int]:
    """Offset and meaning of a rip-relative displacement.

    capstone's own ``disp_offset`` is wrong for several prefixed and VEX forms, but the displacement always stands before the
    immediate, and behind a ModRM byte with mod 00 and rm 101.
    """
    for operand in insn.operands:
        if operand.type == x86.X86_OP_MEM and operand.mem.base in (x86.X86_REG_RIP, x86.X86_REG_EIP):
            code, disp = bytes(insn.bytes), operand.mem.disp
            text = (disp & 0xFFFFFFFF).to_bytes(4, "little")
            places = [len(code) - 4 - immediate for immediate in (0, 1, 2, 4)]
            found = [at for at in places if at >= 2 and code[at : at + 4] == text and code[at - 1] & 0xC7 == 5]
            if len(found) != 1:
                raise RefusedError(f"no clone of the code at {insn.address:#x}", f"no displacement found in {code.hex(' ')}")
            return found[0], insn.address + insn.size + disp
    return -1, 0


def used_registers(insn: Any, name: str) -> int:
    """The general registers that it reads or writes, bit n for register n."""
    numbers = set(_IMPLICIT.get(name, ()))
    if is_string(insn):
        numbers |= {RAX, RCX, RSI, RDI}
    if "cmpe" in name or "cmpi" in name:  # pcmpestri and its kin
        numbers |= {RAX, RCX, RDX}
    ids = [*insn.regs_read, *insn.regs_write]
    for operand in insn.operands:
        if operand.type == x86.X86_OP_REG:
            ids.append(operand.reg)
        elif operand.type == x86.X86_OP_MEM:
            ids += (operand.mem.base, operand.mem.index)
    numbers |= {GPR[i] for i in ids if i in GPR}
    return sum(1 << number for number in numbers)


def implicit_registers(name: str) -> frozenset[int]:
    """The general registers that an instruction with this mnemonic may write without naming them."""
    return frozenset(_IMPLICIT.get(name, ()))


def reads_flags(name: str) -> bool:
    """Returns whether the instruction depends on the flags."""
    return name.startswith(_FLAG_READERS) and name != "jmp"


def kills_flags(name: str) -> bool:
    """Returns whether nothing depends on the flags of before after the instruction."""
    return name in _FLAG_KILLERS


def stands_alone(name: str) -> bool:
    """Returns whether it enters the kernel or serializes the processor: no recording segment may hold it among others."""
    return name in _BREAKS
