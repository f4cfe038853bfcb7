"""What an instruction that faulted was about to access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import capstone

from layout_advise.tracer.clone.operands import GPR_NAMES, Access, Kind, Refused, accesses_of, bare, lanes_of
from layout_advise.tracer.step import effective
from layout_advise.tracer.tracee import UserRegisters

LONGEST = 16
_WRITES = ("xsave", "maskmov", "vmaskmovdqu", "ins", "enter")


class Operands:
    """Decodes each instruction of a process once; ``read`` reads its memory."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._decoder.detail = True
        self._decoded: dict[int, tuple[Access, ...] | Kind] = {}

    def accesses(self, registers: UserRegisters, address: int) -> list[tuple[Kind, int, int]]:
        """Kind, address and bytes of all that the instruction at ``rip`` accesses, which faulted at ``address``; where its
        operands do not tell, the one byte that faulted."""
        if registers.rip not in self._decoded:
            self._decoded[registers.rip] = self._decode(registers.rip)
        known = self._decoded[registers.rip]
        if isinstance(known, str):
            return [(known, address, 1)]
        gpr = [int(getattr(registers, name)) for name in GPR_NAMES]
        places = [(a.kind, effective(a, gpr, registers.fs_base), a.bytes) for a in known]
        if not any(at <= address < at + size for _, at, size in places):
            return [(known[0].kind if known else "read", address, 1)]
        return places

    def _decode(self, pc: int) -> tuple[Access, ...] | Kind:
        insn = next(self._decoder.disasm(self._read(pc, LONGEST), pc), None)
        if insn is None:
            return "read"
        name = bare(insn.mnemonic)
        try:
            found, lanes = accesses_of(insn), lanes_of(insn)
        except Refused:
            return "write" if name.startswith(_WRITES) else "read"
        if lanes is None or not found:
            return found
        if lanes.index is not None:
            return found[0].kind
        return (replace(found[0], bytes=len(found) * lanes.element_bytes),)  # its mask is not looked at
