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
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.backends.clone.records import (
    DEFAULT_CAP,
    clone_trace,
    cut_by_jump,
    cut_for_room,
    disk_full,
    left_copy,
    not_run,
    records_folder,
    room_for_records,
)
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.execution_order import fold_control, renumbered
from layout_advise.tracer.folding.fold import BITMAP_BUDGET, fold_records
from layout_advise.tracer.process.disk_space import is_full
from layout_advise.tracer.process.stopped_program import CloneImage, TeamMember
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import Control, Mapping, Reference, Thread, Trace

_NUMBER_WITHIN = 1 << 16
"""Bytes above its return address in which the runtime keeps the number that it hands a body of clang's a pointer to."""


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

    ``cap`` is the most records taken, by all threads together, each of which gets an equal share of them; it shrinks to what
    the disk has room for (``limits`` tells where that cut the trace). Raises :class:`TraceError`, also where a thread enters
    the body more than once (a region inside the region), and the errors of ``copy``.
    """
    images = _images(copy, region)
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=records_folder(folder)) as temporary:
        records = Path(temporary) / "records"
        room = room_for_records(records.parent)
        capacity = _share(region, min(cap, room), len(images), for_room=records.parent.parent if room < cap else None)
        mappings = copy.mappings()
        members = _run(copy, region, images, records, capacity)
        present = [number for number, member in enumerate(members) if member.entered]
        after = copy.live_blocks()
        untaken = frozenset.intersection(*(not_run(copy, images[number]) for number in present)) if present else frozenset()
        taken = [members[number].records for number in present]
        streams, orders = _folded(records, present, taken, len(images[0].references))
    left = any(member.truncated and left_copy(member.records, capacity) for member in members)
    total, truncated = sum(member.records for member in members), any(member.truncated for member in members)
    return replace(
        clone_trace(program, region, call, images, after),
        references=_references(images[0], present),
        streams=streams,
        accesses=total,
        truncated=truncated,
        team_control=orders,
        limits=(cut_by_jump(total),) if left else (cut_for_room(total, records),) if truncated and room < cap else (),
        untaken=() if truncated else tuple(sorted(untaken)),
        threads=tuple(_thread(number, members[number], mappings) for number in present),
    )


def _run(
    copy: AgentProcess, region: Region, images: Sequence[CloneImage], records: Path, capacity: int
) -> tuple[TeamMember, ...]:
    """Every thread has run its clone, with room for ``capacity`` records each."""
    try:
        members, stray = copy.trace_team(images, records, capacity)
    except SnapshotError as error:
        if is_full(records.parent):
            raise disk_full(region.symbol, records.parent) from error
        raise
    if stray:
        why = f"its body was entered {stray} times more than the team has threads"
        raise TraceError(f"no trace of {region.symbol}", why, "regions inside regions are not handled")
    return members


def _folded(
    records: Path, present: Sequence[int], taken: Sequence[int], count: int
) -> tuple[tuple[Stream | None, ...], tuple[Control, ...]]:
    """The streams of ``count`` references and the order of execution of every thread that is ``present``; its file of
    records is removed."""
    streams: list[Stream | None] = []
    orders: list[Control] = []
    for position, (number, some) in enumerate(zip(present, taken, strict=True)):
        part = Path(f"{records}.{number}")
        streams += fold_records(part, count, BITMAP_BUDGET // len(present)) if some else [None] * count
        order = fold_control(part, count) if some else Control((), ((0, count - 1),))
        orders.append(renumbered(order, position * count))
        part.unlink()
    return tuple(streams), tuple(orders)


def _share(region: Region, records: int, threads: int, *, for_room: Path | None) -> int:
    """Records that each thread may take. ``for_room`` is the folder whose room bounds ``records``, ``None`` where the user
    does. Raises :class:`TraceError` where there is none for each."""
    if records >= threads:
        return records // threads
    what = f"no trace of {region.symbol}"
    if for_room is not None:
        raise TraceError(what, f"no room for records in {for_room}", "free some space there")
    raise TraceError(
        what, f"fewer records are allowed ({records}) than there are threads ({threads})", "raise --max-refs or --max-bytes"
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


def _thread(number: int, member: TeamMember, mappings: Sequence[Mapping]) -> Thread:
    # a thread that the region itself started has its stack in no mapping of before: the page of its frame must do
    page = member.rsp // os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PAGE_SIZE")
    stack = next((m.start for m in mappings if m.start <= member.rsp < m.end), page)
    data, *more = member.arguments
    # clang's bodies: the thread's number lies in the frame of the runtime that calls the body, above arguments on the stack
    near = (p for p in (data, *more[:1]) if more and member.rsp < p < member.rsp + _NUMBER_WITHIN)
    top = max((8 + p // 8 * 8 for p in near), default=0)
    return Thread(number, data, member.rsp, member.fs_base, stack, tuple(more), top)
