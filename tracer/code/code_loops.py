"""The natural loops of a hotspot's machine code: which instruction runs in which loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layout_advise.tracer.code.flow_graph import flow_graph
from layout_advise.tracer.code.instructions import Instruction, decode, functions_of
from layout_advise.tracer.code.region import Region

_ROOT = -1


@dataclass(frozen=True, slots=True)
class MachineLoop:
    """``head`` is the first instruction, ``parent`` the number of the loop around it in the same function, ``depth`` counts
    the loops around it, ``code`` holds the addresses of all its instructions."""

    head: int
    parent: int | None
    depth: int
    code: frozenset[int]


def loops_of(region: Region) -> tuple[MachineLoop, ...]:
    """The loops of ``region`` and of each of its callees, outer before inner. Back edges into a block that does not dominate
    their source (irreducible control flow) make no loop. Raises :class:`TraceError` where the code does not decode."""
    code = decode(region)
    entries = {start for f in functions_of(region) for start in (f.entry, *(r.start for r in f.ranges)) if start in code}
    loops = flow_graph(_ROOT, _successors(code, entries)).natural_loops()
    found: list[MachineLoop] = []
    number: dict[int, int] = {}
    for loop in sorted(loops, key=lambda one: (-len(one.blocks), one.head)):
        parent = None if loop.parent is None else number[loop.parent]
        number[loop.head] = len(found)
        found.append(MachineLoop(loop.head, parent, 0 if parent is None else found[parent].depth + 1, loop.blocks))
    return tuple(found)


def innermost(loops: tuple[MachineLoop, ...], address: int) -> int | None:
    """The number of the innermost loop around the instruction at ``address``."""
    return min((n for n, loop in enumerate(loops) if address in loop.code), key=lambda n: len(loops[n].code), default=None)


def _successors(code: Mapping[int, Instruction], entries: set[int]) -> dict[int, list[int]]:
    """Where control goes after each instruction, and from the root to the entries. A jump through a table may lead to any
    instruction of the code that nothing else leads to."""
    following: dict[int, list[int]] = {_ROOT: sorted(entries)}
    for insn in code.values():
        target = insn.target if insn.flow != "call" else None
        onward = insn.end if insn.falls_through else None
        following[insn.address] = [at for at in (target, onward) if at is not None and at in code]
    reached = {at for targets in following.values() for at in targets}
    orphans = [at for at in code if at not in reached]
    for insn in code.values():
        if insn.flow == "jump-indirect":
            following[insn.address] += orphans
    return following
