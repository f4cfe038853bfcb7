"""Code that rounds addresses on its stack: where it puts them depends on the stack pointer modulo the rounding.

A function with aligned vectors or arrays in its frame rounds the stack pointer down (``and rsp, -32``; System V ABI: it is a
multiple of 16 before a call). Two processes whose stacks begin at other places modulo 32 have the same variable at other
distances from the stack pointer at the function's entry.
"""

from __future__ import annotations

from capstone import x86

from layout_advise.tracer.code.decoder import disassemble
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region

ABI = 16
_PAGE = 4096


def frame_alignment(region: Region) -> int:
    """The greatest rounding, in bytes, in the code of ``region`` and its callees; what the ABI gives anyway where there is
    none. Any register that is rounded down by 32 to 4096 bytes counts: most are on their way to ``rsp``."""
    found = ABI
    for function in functions_of(region):
        for place in function.ranges:
            for insn in disassemble(place.code, place.start):
                if insn.id == x86.X86_INS_AND and insn.operands[0].size == 8:
                    found = max(found, _rounding(insn.operands[1]))
    return found


def _rounding(operand: x86.X86Op) -> int:
    if operand.type != x86.X86_OP_IMM:
        return ABI
    step = -int(operand.imm)
    return step if ABI < step <= _PAGE and step & (step - 1) == 0 else ABI
