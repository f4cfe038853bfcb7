"""The code that calls which stay calls run: its accesses are the original's own, and no mock-up makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layout_advise.mockup.ir.lifted import Imm, Item, OpaqueCall, everything
from layout_advise.mockup.machine.disassembly import Immediate, decode
from layout_advise.tracer.code.region import Region


def native_code(region: Region, body: Sequence[Item]) -> tuple[tuple[int, int], ...]:
    """Returns the code (start, end) of ``region`` and its callees that the calls kept in ``body`` may run: that of a string
    operation is its instruction, that of a callee what it may call, too. Any callee may be reached by an indirect call."""
    callees = {callee.entry: callee for callee in _all(region)}
    found: set[tuple[int, int]] = set()
    wanted: list[int] = []
    for call in (item for item in everything(body) if isinstance(item, OpaqueCall)):
        if (call.function or "").startswith("rep "):
            found.add((call.origin.pc, call.origin.pc + 1))
        elif isinstance(call.target, Imm):
            wanted.append(int(call.target.value))
        else:
            wanted += callees
    for callee in _reached(wanted, callees):
        found.update((piece.start, piece.end) for piece in callee.ranges)
    return tuple(sorted(found))


def _reached(entries: Iterable[int], callees: dict[int, Region]) -> list[Region]:
    """The callees that begin at ``entries``, and those that are called or jumped to directly from them."""
    seen: set[int] = set()
    work = list(entries)
    while work:
        entry = work.pop()
        if entry in seen or entry not in callees:
            continue
        seen.add(entry)
        for insn in decode(callees[entry]).values():
            if insn.mnemonic in ("call", "jmp"):
                work += [operand.value for operand in insn.operands if isinstance(operand, Immediate)]
    return [callees[entry] for entry in seen]


def _all(region: Region) -> Iterable[Region]:
    """The callees of a region and theirs."""
    for callee in region.callees:
        yield callee
        yield from _all(callee)
