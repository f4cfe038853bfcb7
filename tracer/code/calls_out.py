"""Calls of code that is not traced with a region."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from layout_advise.tracer.code.instructions import Instruction, decode, functions_of, leaders
from layout_advise.tracer.code.region import Region


def calls_out(region: Region, untaken: Collection[int] = ()) -> bool:
    """Tells whether code of ``region`` or its callees calls or jumps to other code, leaving out what begins at ``untaken``
    addresses: it was not run. Raises RefusedError where the code does not decode."""
    code = decode(region)
    starts = sorted(leaders(code, (function.entry for function in functions_of(region))) | set(untaken))
    return any(_leaves(insn, code) and starts[bisect_right(starts, at) - 1] not in untaken for at, insn in code.items())


def _leaves(insn: Instruction, code: Collection[int]) -> bool:
    """Tells whether the instruction leads to other code; an indirect jump is one within a function."""
    if insn.flow == "call-indirect":
        return True
    return insn.target is not None and insn.target not in code
