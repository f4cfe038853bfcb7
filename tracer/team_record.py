"""Tracing one parallel region of a stopped program: every thread of the team runs a clone of its own.

The program is parked where it starts the region. A fork has no other threads than the parked one, so the region runs in a
restored copy, which is thrown away.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from layout_advise.errors import SnapshotError, TraceError
from layout_advise.layoutalgebra.nests import Stream
from layout_advise.tracer.clone.image import build_clone
from layout_advise.tracer.clone.place import choose_address
from layout_advise.tracer.code import Region
from layout_advise.tracer.folding import BITMAP_BUDGET, fold_records
from layout_advise.tracer.record import DEFAULT_CAP, disk_full, records_folder, room_for_records
from layout_advise.tracer.snapshot.process import AgentProcess
from layout_advise.tracer.snapshot.protocol import CloneImage, Member
from layout_advise.tracer.space import is_full
from layout_advise.tracer.trace import Mapping, Reference, Thread, Trace

_RSI = 6


def trace_region(
    program: AgentProcess,
    copy: AgentProcess,
    region: Region,
    call: int,
    cap: int = DEFAULT_CAP,
    *,
    folder: Path | None = None,
) -> Trace:
    """The folded trace of the parallel region that ``program`` is about to start, ``region`` being its body's code. It runs
    in ``copy``, a restored copy of ``program`` that must not be used afterwards; ``program`` stays as it is.

    ``cap`` is the most records taken, by all threads together. Raises :class:`TraceError`, also where a thread enters the
    body more than once (a region inside the region), and the errors of ``copy``.
    """
    images = _images(copy, region)
    count = len(images[0].references)
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=records_folder(folder)) as temporary:
        records = Path(temporary) / "records"
        capacity = min(cap, room_for_records(Path(temporary))) // len(images)
        if capacity <= 0:
            raise TraceError("no trace was taken", f"no room for records in {temporary}", "free some space there")
        mappings = copy.mappings()
        try:
            members, stray = copy.trace_team(images, records, capacity)
        except SnapshotError as error:
            if is_full(records.parent):
                raise disk_full(region.symbol, records.parent) from error
            raise
        if stray:
            why = f"its body was entered {stray} times more than the team has threads"
            raise TraceError(f"no trace of {region.symbol}", why, "regions inside regions are not handled")
        present = [number for number, member in enumerate(members) if member.entered]
        streams: list[Stream | None] = []
        for number in present:
            part = Path(f"{records}.{number}")
            taken = members[number].records
            streams += fold_records(part, count, BITMAP_BUDGET // len(present)) if taken else [None] * count
            part.unlink()
    data = program.registers().gpr[_RSI]
    return Trace(
        symbol=region.symbol,
        call=call,
        backend="clone",
        references=_references(images[0], present),
        streams=tuple(streams),
        accesses=sum(member.records for member in members),
        truncated=any(member.truncated for member in members),
        registers=program.registers(),
        mappings=program.mappings(),
        allocations=program.allocations(),
        threads=tuple(_thread(number, members[number], data, mappings) for number in present),
    )


def _images(copy: AgentProcess, region: Region) -> list[CloneImage]:
    """A clone for each thread that may come: a clone is run by one thread at a time."""
    taken: list[Mapping] = list(copy.mappings())
    images = []
    for _ in range(copy.team()):
        image = build_clone(region, choose_address(taken, region.entry))
        images.append(image)
        taken.append(Mapping(image.address, image.address + len(image.code), "rwxp", 0, ""))
    return images


def _references(image: CloneImage, present: Sequence[int]) -> tuple[Reference, ...]:
    every = [(number, reference) for number in present for reference in image.references]
    return tuple(replace(reference, id=n, thread=number) for n, (number, reference) in enumerate(every))


def _thread(number: int, member: Member, data: int, mappings: Sequence[Mapping]) -> Thread:
    # a thread that the region itself started has its stack in no mapping of before: the page of its frame must do
    page = member.rsp // os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PAGE_SIZE")
    stack = next((m.start for m in mappings if m.start <= member.rsp < m.end), page)
    return Thread(number, data, member.rsp, member.fs_base, stack)
