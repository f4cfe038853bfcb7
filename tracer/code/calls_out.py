"""Calls of code that is not traced with a region."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping

from layout_advise.tracer.code.instructions import Instruction, decode, functions_of, leaders
from layout_advise.tracer.code.region import Region


def calls_out(region: Region, untaken: Collection[int] = ()) -> bool:
    """Tells whether code of ``region`` or its callees calls or jumps to other code, leaving out what begins at ``untaken``
    addresses: it was not run. Raises RefusedError where the code does not decode."""
    code = decode(region)
    gone = _not_run(region, code, untaken)
    return any(_leaves(insn, code) and at not in gone for at, insn in code.items())


def calls_unseen(region: Region, untaken: Collection[int], called: Iterable[tuple[int, Collection[int]]]) -> frozenset[int]:
    """The addresses of the calls, and of the jumps to other code, of which a trace of ``region`` and its callees does not
    tell what they do: the code is not in it, or did not run. ``called`` are the targets of indirect calls, as far as they
    are known. Raises RefusedError where the code does not decode."""
    code, known = decode(region), dict(called)
    gone, found = _not_run(region, code, untaken), set[int]()
    for at, insn in code.items():
        if insn.flow not in ("call", "call-indirect") and not _leaves(insn, code):
            continue
        targets = known.get(at, ()) if insn.target is None else (insn.target,)
        if at in gone or not targets or any(target not in code for target in targets):
            found.add(at)
    return frozenset(found)


def _not_run(region: Region, code: Mapping[int, Instruction], untaken: Collection[int]) -> frozenset[int]:
    """The addresses of the instructions in the pieces that begin at ``untaken``."""
    starts = sorted(leaders(code, (function.entry for function in functions_of(region))) | set(untaken))
    return frozenset(at for at in code if starts[bisect_right(starts, at) - 1] in untaken) if untaken else frozenset()


def _leaves(insn: Instruction, code: Collection[int]) -> bool:
    """Tells whether the instruction leads to other code; an indirect jump is one within a function."""
    if insn.flow == "call-indirect":
        return True
    return insn.target is not None and insn.target not in code
