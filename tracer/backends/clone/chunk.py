"""Copies of a loop that is left after a chunk of its iterations: they count these at its head, which awaits no flags."""

from __future__ import annotations

from collections.abc import Hashable

from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.backends.clone.header import JMP, LEFT, slot
from layout_advise.tracer.code.region import Region

MOST_ITERATIONS = (1 << 31) - 1
"""A chunk has no more: the count is written as a number of 32 bits."""


def enter(out: Assembler, region: Region, copy: str) -> None:
    """Goes to the region's entry in ``copy``; the passage of the head with which a chunk begins is not counted."""
    if region.chunk:
        out.operate(b"\xc7", 0, slot(out, LEFT), imm=region.chunk.to_bytes(4, "little"))
    out.branch(JMP, behind_count(region, copy, region.entry))


def behind_count(region: Region, copy: str, address: int) -> Hashable:
    """The label of the instruction at ``address`` in ``copy``, at a head behind the counting."""
    return (copy, address, "counted") if region.chunk and address == region.entry else (copy, address)


def place(out: Assembler, region: Region, copy: str, address: int) -> None:
    """The instruction at ``address`` follows in ``copy``. At a head that comes before it where control goes on at the
    original head after the last iteration."""
    out.label((copy, address))
    if region.chunk and address == region.entry:
        out.operate(b"\xff", 1, slot(out, LEFT))  # dec
        out.branch(b"\x0f\x84", address)  # jz
        out.label(behind_count(region, copy, address))
