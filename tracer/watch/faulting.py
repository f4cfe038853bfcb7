"""The accesses that a faulting instruction was about to make."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from layout_advise.tracer.code.decoder import GPR_NAMES, LONGEST_INSTRUCTION, disassemble
from layout_advise.tracer.code.operands import (
    Kind,
    OperandAccess,
    UnsupportedOperand,
    accesses_of,
    bare,
    lanes_of,
)
from layout_advise.tracer.process.ptrace import UserRegisters

_STRINGS = re.compile(r"rep (movs|stos|lods)[bdqw]$")
_RCX, _DOWNWARDS = 1, 1 << 10
_WRITES = ("xsave", "maskmov", "vmaskmovdqu", "ins", "enter")


class Operands:
    """Decodes each instruction of a process once; ``read`` reads its memory."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._decoded: dict[int, tuple[OperandAccess, ...] | Kind] = {}
        self._repeated: set[int] = set()

    def repeats(self, registers: UserRegisters) -> bool:
        """Returns whether the instruction at ``rip`` is a string instruction that goes on upwards until ``rcx`` is 0."""
        self._known(registers.rip)
        return registers.rip in self._repeated and not registers.eflags & _DOWNWARDS

    def accesses(self, registers: UserRegisters, address: int) -> list[tuple[Kind, int, int]]:
        """Kind, address and bytes of all that the instruction at ``rip`` accesses, which faulted at ``address`` (of one that
        :meth:`repeats`, all that is left); where its operands do not tell, the one byte that faulted."""
        known = self._known(registers.rip)
        if isinstance(known, str):
            return [(known, address, 1)]
        gpr = [int(getattr(registers, name)) for name in GPR_NAMES]
        times = gpr[_RCX] if self.repeats(registers) else 1
        places = [(a.kind, a.memory.effective(gpr, registers.fs_base), a.bytes * times) for a in known]
        if not any(at <= address < at + size for _, at, size in places):
            return [(known[0].kind if known else "read", address, 1)]
        return places

    def _known(self, pc: int) -> tuple[OperandAccess, ...] | Kind:
        if pc not in self._decoded:
            self._decoded[pc] = self._decode(pc)
        return self._decoded[pc]

    def _decode(self, pc: int) -> tuple[OperandAccess, ...] | Kind:
        insn = next(disassemble(self._read(pc, LONGEST_INSTRUCTION), pc, 1), None)
        if insn is None:
            return "read"
        name = bare(insn.mnemonic)
        if _STRINGS.match(insn.mnemonic):
            self._repeated.add(pc)
        try:
            found, lanes = accesses_of(insn), lanes_of(insn)
        except UnsupportedOperand:
            return "write" if name.startswith(_WRITES) else "read"
        if lanes is None or not found:
            return found
        if lanes.index is not None:
            return found[0].kind
        return (replace(found[0], bytes=len(found) * lanes.element_bytes),)  # its mask is not looked at
