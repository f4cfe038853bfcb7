"""The oracle: a hotspot's accesses by single-stepping, with effective addresses computed from the registers.

Twenty thousand times slower than the program; meant for checking the other backends.
"""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.errors import TraceError
from layout_advise.tracer.clone.decode import Instruction, decode
from layout_advise.tracer.clone.operands import GPR_NAMES, RCX, Access
from layout_advise.tracer.code import Region
from layout_advise.tracer.ptraced import PtracedProgram, UserRegisters

MOST_REFERENCES = 100_000
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Step:
    """One access: which operand of the instruction at ``pc``, and its address."""

    pc: int
    operand: int
    address: int


def trace_by_steps(program: PtracedProgram, region: Region, limit: int = MOST_REFERENCES) -> tuple[Step, ...]:
    """Steps through one call, from the region's entry (where ``program`` must stand) to its return.

    Only accesses of the region and its callees are returned, in order; other code that they call runs step by step too.
    Raises :class:`TraceError` beyond ``limit`` accesses.
    """
    code = decode(region)
    found: list[Step] = []
    registers = program.registers()
    if registers.rip != region.entry:
        raise TraceError("the program cannot be stepped", f"it stands at {registers.rip:#x}, not at {region.entry:#x}")
    top = registers.rsp
    while registers.rsp <= top:
        insn = code.get(registers.rip)
        if insn is not None and insn.accesses:
            found += addresses(program, insn, registers)
            if len(found) > limit:
                raise TraceError(f"{region.symbol} cannot be stepped", f"more than {limit} accesses")
        program.step()
        registers = program.registers()
    return tuple(found)


def addresses(program: PtracedProgram, insn: Instruction, registers: UserRegisters) -> list[Step]:
    """The accesses that ``insn`` is about to make."""
    gpr = [int(getattr(registers, name)) for name in GPR_NAMES]
    if insn.repeat and gpr[RCX] == 0:
        return []
    if insn.lanes is None:
        return [Step(insn.address, access.operand, _effective(access, gpr, registers.fs_base)) for access in insn.accesses]
    lanes = insn.lanes
    index, mask = program.vector(lanes.index), program.vector(lanes.mask)
    steps = []
    for lane, access in enumerate(insn.accesses):
        at, sign = lane * lanes.index_bytes, (lane + 1) * lanes.element_bytes - 1
        if mask[sign] & 0x80:
            offset = int.from_bytes(index[at : at + lanes.index_bytes], "little", signed=True) * access.memory.scale
            steps.append(Step(insn.address, access.operand, _effective(access, gpr, 0) + offset & _WORD))
    return steps


def _effective(access: Access, gpr: list[int], fs_base: int) -> int:
    memory = access.memory
    if memory.target is not None:
        return memory.target
    address = memory.disp
    if memory.base is not None:
        address += gpr[memory.base]
    if memory.index is not None:
        address += gpr[memory.index] * memory.scale
    address &= 0xFFFFFFFF if memory.narrow else _WORD
    return address + (fs_base if memory.fs else 0) & _WORD
