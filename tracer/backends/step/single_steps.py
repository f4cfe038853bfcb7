"""The oracle: a hotspot's accesses by single-stepping, with effective addresses computed from the registers.

Twenty thousand times slower than the program; meant for checking the other backends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

from layout_advise.errors import TraceError
from layout_advise.tracer.code.decoder import GPR_NAMES
from layout_advise.tracer.code.instructions import Instruction, decode
from layout_advise.tracer.code.operands import RCX, MaskedElements
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.ptrace import UserRegisters
from layout_advise.tracer.process.ptraced import PtracedProgram

MOST_REFERENCES = 100_000
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class SingleStep:
    """One access: which operand of the instruction at ``pc``, and its address."""

    pc: int
    operand: int
    address: int


def trace_by_steps(program: PtracedProgram, region: Region, limit: int = MOST_REFERENCES) -> tuple[SingleStep, ...]:
    """Steps through one call, from the region's entry (where ``program`` must stand) to its return.

    Only accesses of the region and its callees are returned, in order; other code that they call runs step by step too, as
    do handlers of signals, whose accesses are left out. Other threads run on. Raises :class:`TraceError` beyond ``limit``
    accesses.
    """
    code = decode(region)
    found: list[SingleStep] = []
    registers = program.registers()
    if registers.rip != region.entry:
        raise TraceError("the program cannot be stepped", f"it stands at {registers.rip:#x}, not at {region.entry:#x}")
    top = registers.rsp
    program.detach_others()
    while registers.rsp <= top:
        insn = code.get(registers.rip)
        coming = addresses(program, insn, registers) if insn is not None and insn.accesses else []
        if program.step():
            found += coming
            if len(found) > limit:
                raise TraceError(f"{region.symbol} cannot be stepped", f"more than {limit} accesses")
        registers = program.registers()
    return tuple(found)


def addresses(program: PtracedProgram, insn: Instruction, registers: UserRegisters) -> list[SingleStep]:
    """The accesses that ``insn`` is about to make."""
    gpr = [int(getattr(registers, name)) for name in GPR_NAMES]
    if insn.repeat and gpr[RCX] == 0:
        return []
    steps = [
        SingleStep(insn.address, access.operand, access.memory.effective(gpr, registers.fs_base)) for access in insn.accesses
    ]
    lanes = insn.lanes
    if lanes is None:
        return steps
    made = lanes.made(program.mask(lanes.mask) if lanes.opmask else _signs(program.vector(lanes.mask), lanes))
    steps = list(compress(steps, made))
    if lanes.index is None:
        return steps
    read = program.wide_vector if lanes.opmask else program.vector
    index, scale = read(lanes.index), insn.accesses[0].memory.scale
    return [replace(step, address=step.address + _element(index, step.operand, lanes) * scale & _WORD) for step in steps]


def _signs(mask: bytes, lanes: MaskedElements) -> int:
    """The signs of the elements of a vector, one bit each."""
    return sum(mask[(k + 1) * lanes.element_bytes - 1] >> 7 << k for k in range(len(lanes.bits)))


def _element(index: bytes, lane: int, lanes: MaskedElements) -> int:
    at = lane * lanes.index_bytes
    return int.from_bytes(index[at : at + lanes.index_bytes], "little", signed=True)
