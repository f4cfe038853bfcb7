"""Cutting the code into segments: runs of instructions that are entered at the top only and record under one check.

A segment saves two registers that none of its instructions touches before its first memory access, and restores them after
its last one. Between, one holds the place of the next record and the other the address that is being computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layout_advise.tracer.code.instructions import Instruction
from layout_advise.tracer.code.operands import RAX, RSP

_SCRATCH_ORDER = (11, 10, 9, 8, 15, 14, 13, 12, 5, 3, 6, 7, 2, 1)
"""Legacy registers last: they are the ones with implicit uses. rax is kept free for saving the flags, rsp is the stack."""

_MOST_RECORDS = 48


@dataclass(frozen=True, slots=True)
class Segment:
    """``code`` in order; ``first`` and ``last`` are the positions of the first and last instruction that accesses memory
    (-1 where none does); ``scratch`` two registers free between them."""

    code: tuple[Instruction, ...]
    first: int
    last: int
    scratch: tuple[int, int]

    @property
    def records(self) -> int:
        """At most how many records one pass makes."""
        return sum(len(insn.accesses) for insn in self.code)

    @property
    def inside(self) -> tuple[Instruction, ...]:
        """The instructions that must not be jumped to: the registers have to be saved first."""
        return self.code[self.first + 1 : self.last + 1] if self.first >= 0 else ()


def scratch_of(uses: int) -> tuple[int, int] | None:
    """Two registers that are not in the mask ``uses``, or ``None``."""
    free = [r for r in _SCRATCH_ORDER if not uses >> r & 1]
    return (free[0], free[1]) if len(free) >= 2 else None


def segment(code: tuple[Instruction, ...]) -> Segment:
    """A segment of exactly these instructions (two registers must be free)."""
    touching = [k for k, insn in enumerate(code) if insn.accesses]
    if not touching:
        return Segment(code, -1, -1, (11, 10))
    uses = _mask(code[touching[0] : touching[-1] + 1])
    scratch = scratch_of(uses)
    assert scratch is not None, "one instruction uses at most ten registers"
    return Segment(code, touching[0], touching[-1], scratch)


def _mask(code: tuple[Instruction, ...]) -> int:
    mask = 1 << RAX | 1 << RSP
    for insn in code:
        mask |= insn.uses
    return mask


def cut(code: Mapping[int, Instruction], leaders: set[int]) -> list[Segment]:
    """All of ``code`` (ascending) as segments."""
    segments: list[Segment] = []
    run: list[Instruction] = []
    uses = records = 0

    def close() -> None:
        nonlocal uses, records
        if run:
            segments.append(segment(tuple(run)))
            run.clear()
        uses = records = 0

    for insn in code.values():
        wider = uses | insn.uses
        if (
            run
            and (
                insn.address in leaders
                or insn.address != run[-1].end
                or insn.alone
                or records + len(insn.accesses) > _MOST_RECORDS
                or scratch_of(wider | 1 << RAX | 1 << RSP) is None
            )
        ):  # fmt: skip
            close()
        run.append(insn)
        uses |= insn.uses
        records += len(insn.accesses)
        if insn.flow != "next" or insn.alone:
            close()
    close()
    return segments


def live_flags(code: Mapping[int, Instruction]) -> set[int]:
    """Addresses of instructions before which the status flags may still be needed (unknown successors need them)."""
    live: set[int] = set()
    order = list(code.values())
    changed = True
    while changed:
        changed = False
        for insn in reversed(order):
            if insn.address in live:
                continue
            if insn.reads_flags or (not insn.kills_flags and insn.flow != "stop" and _live_after(insn, code, live)):
                live.add(insn.address)
                changed = True
    return live


def _live_after(insn: Instruction, code: Mapping[int, Instruction], live: set[int]) -> bool:
    if insn.flow == "jump-indirect":
        return True
    targets = [] if insn.flow == "call" or insn.target is None else [insn.target]
    if insn.falls_through:
        targets.append(insn.end)
    return any(target in live or target not in code for target in targets)
