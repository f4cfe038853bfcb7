"""Tracing one call of a stopped program with the clone: fork, copy the code, run it, fold what it recorded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from layout_advise.errors import SnapshotError, TraceError
from layout_advise.tracer.clone.image import build_clone
from layout_advise.tracer.clone.place import choose_address
from layout_advise.tracer.code import Region
from layout_advise.tracer.control import fold_control
from layout_advise.tracer.folding import fold_records
from layout_advise.tracer.snapshot.protocol import CloneImage, StoppedProgram
from layout_advise.tracer.space import KEEP_FREE, RECORDS_ROOM, free_bytes, is_full, require
from layout_advise.tracer.trace import Allocation, Trace

DEFAULT_CAP = 64 << 20
"""Records of one trace at most: 512 MB on tmpfs."""


def trace_call(
    program: StoppedProgram,
    region: Region,
    call: int,
    cap: int = DEFAULT_CAP,
    *,
    folder: Path | None = None,
    fork: bool = True,
) -> Trace:
    """The folded trace of the call that ``program`` is about to make; ``program`` itself stays as it is.

    ``cap`` is the most records taken; it shrinks to what the tmpfs has room for (``limits`` tells where that cut the trace).
    The raw records go to a temporary folder in ``folder`` (default /dev/shm, where it exists), which is removed in any case.
    With ``fork=False`` the clone runs in ``program`` itself, which must not be used afterwards. Parallel regions:
    :mod:`layout_advise.tracer.team_record`.
    Raises :class:`TraceError` and the errors of ``program``.
    """
    image = build_clone(region, choose_address(program.mappings(), region.entry))
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=records_folder(folder)) as temporary:
        records = Path(temporary) / "records"
        require(Path(temporary), RECORDS_ROOM, "the records of one call", "free some space there")
        capacity = min(cap, room_for_records(Path(temporary)))
        if fork:
            taken, truncated, after, capacity = _in_fork(program, image, records, capacity, region.symbol)
        else:
            taken, truncated = program.trace(image, records, capacity)
            after = program.live_blocks()
        streams = fold_records(records, len(image.references)) if taken else [None] * len(image.references)
        control = fold_control(records, len(image.references)) if taken else None
    before = program.allocations()
    born, freed = _changes(before, after, image)
    return Trace(
        symbol=region.symbol,
        call=call,
        backend="clone",
        references=image.references,
        streams=tuple(streams),
        accesses=taken,
        truncated=truncated,
        registers=program.registers(),
        mappings=program.mappings(),
        allocations=before,
        limits=(f"cut after {taken:,} accesses: no room for more in {records_folder(folder)}",)
        if truncated and capacity < cap
        else (),
        control=control,
        watched=True,
        born=born,
        freed=freed,
    )


def _changes(
    before: Sequence[Allocation], after: Sequence[Allocation], image: CloneImage
) -> tuple[tuple[Allocation, ...], tuple[int, ...]]:
    """The blocks that are there after the call only, and the orders of those that are not there any more. A site in the
    clone is no place of the program: it is 0."""
    earlier, later = {a.order for a in before}, {a.order for a in after}
    ours = range(image.address, image.address + len(image.code))
    born = [replace(a, site=0, stack=()) if a.site in ours else a for a in after if a.order not in earlier]
    return tuple(sorted(born, key=lambda a: a.order)), tuple(sorted(earlier - later))


def records_folder(wanted: Path | None) -> Path | None:
    """Where a temporary folder for records goes: ``wanted``, else tmpfs where there is one (None: the system's default)."""
    return wanted if wanted is not None else Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None


def room_for_records(folder: Path) -> int:
    """How many records fit there, others' room left free."""
    return (free_bytes(folder) - KEEP_FREE) // 8


def _in_fork(
    program: StoppedProgram, image: CloneImage, records: Path, capacity: int, symbol: str
) -> tuple[int, bool, tuple[Allocation, ...], int]:
    """Records, whether that is not all, the blocks after the call, and how many records there was room for: once more with
    what room is left where others filled the disk in the meantime."""
    for last in (False, True):
        try:
            with program.fork() as child:
                return *child.trace(image, records, capacity), child.live_blocks(), capacity
        except SnapshotError as error:
            full = is_full(records.parent)  # a store to a page that it has no room for ends the fork
            if not full:
                why = f"{error.what} in the traced call ({error.why}): it ends there, or leaves by an exception or longjmp"
                raise TraceError(f"no clone of {symbol}", why, "use --backend valgrind") from error
            records.unlink(missing_ok=True)
            capacity = min(capacity, room_for_records(records.parent))
            if last or capacity <= 0:
                raise disk_full(symbol, records.parent) from error
    raise AssertionError


def disk_full(symbol: str, folder: Path) -> TraceError:
    """What to say where the disk of the records was filled while the call ran."""
    why = f"{folder.parent} was filled while its call was recorded"
    return TraceError(f"no trace of {symbol}", why, "free some space there, or lower --max-refs")
