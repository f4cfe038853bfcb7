"""Tracing one call of a stopped program with the clone: fork, copy the code, run it, fold what it recorded."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import HungError, RefusedError, SnapshotError, TraceError
from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import MOST_LEFT, build_clone
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.execution_order import fold_control
from layout_advise.tracer.folding.fold import fold_records
from layout_advise.tracer.objects.lifetimes import changes
from layout_advise.tracer.process.disk_space import KEEP_FREE, RECORDS_ROOM, free_bytes, is_full, require
from layout_advise.tracer.process.stopped_program import CloneImage, StoppedProgram
from layout_advise.tracer.trace.trace import Allocation, Trace

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
    :mod:`layout_advise.tracer.backends.clone.record_team`.
    Raises :class:`TraceError` and the errors of ``program``.
    """
    image = build_clone(region, choose_address(program.mappings(), region.entry))
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=records_folder(folder)) as temporary:
        records = Path(temporary) / "records"
        require(Path(temporary), RECORDS_ROOM, "the records of one call", "free some space there")
        capacity = min(cap, room_for_records(Path(temporary)))
        if fork:
            done = _in_fork(program, image, records, capacity, region.symbol)
        else:
            done = _run(program, image, records, capacity)
        taken, capacity = done.taken, done.capacity
        streams = fold_records(records, len(image.references)) if taken else [None] * len(image.references)
        control = fold_control(records, len(image.references)) if taken else None
    before = program.allocations()
    born, freed = changes(before, done.after, (image,))
    return Trace(
        symbol=region.symbol,
        call=call,
        backend="clone",
        references=image.references,
        streams=tuple(streams),
        accesses=taken,
        truncated=done.truncated,
        registers=program.registers(),
        mappings=program.mappings(),
        allocations=before,
        limits=_limits(done, cap, records),
        control=control,
        watched=True,
        born=born,
        freed=freed,
        others=done.others,
    )


def records_folder(wanted: Path | None) -> Path | None:
    """Where a temporary folder for records goes: ``wanted``, else tmpfs where there is one (None: the system's default)."""
    return wanted if wanted is not None else Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None


def room_for_records(folder: Path) -> int:
    """How many records fit there, others' room left free."""
    return (free_bytes(folder) - KEEP_FREE) // 8


def _limits(done: _Done, cap: int, records: Path) -> tuple[str, ...]:
    """What cut the trace, where it was not ``cap``, the caller's limit."""
    if not done.truncated:
        return ()
    if left_copy(done.taken, done.capacity):
        return (cut_by_jump(done.taken),)
    return (cut_for_room(done.taken, records),) if done.capacity < cap else ()


def left_copy(taken: int, capacity: int) -> bool:
    """Whether a clone whose trace was cut had room for more records."""
    return taken <= capacity - MOST_LEFT


def cut_by_jump(taken: int) -> str:
    """The limit of a trace that ends after ``taken`` accesses because control left the clone."""
    return f"cut after {taken:,} accesses: an indirect jump led to where no instruction is known"


def cut_for_room(taken: int, records: Path) -> str:
    """The limit of a trace that ends after ``taken`` accesses because the disk of the file ``records``, which lies in a
    temporary folder, has no room for more."""
    return f"cut after {taken:,} accesses: no room for more in {records.parent.parent}"


@dataclass(frozen=True, slots=True)
class _Done:
    """The clone has run: how many records it wrote, whether that is not all, the blocks after the call, how many records
    there was room for, and whether other threads ran meanwhile."""

    taken: int
    truncated: bool
    after: tuple[Allocation, ...]
    capacity: int
    others: bool


def _run(program: StoppedProgram, image: CloneImage, records: Path, capacity: int) -> _Done:
    taken, truncated = program.trace(image, records, capacity)
    return _Done(taken, truncated, program.live_blocks(), capacity, program.others_ran)


def _in_fork(program: StoppedProgram, image: CloneImage, records: Path, capacity: int, symbol: str) -> _Done:
    """The clone has run in a fork: once more with what room is left where others filled the disk in the meantime."""
    for last in (False, True):
        try:
            with program.fork() as child:
                return _run(child, image, records, capacity)
        except HungError as error:
            why = f"the traced call did not return ({error.why}): it may wait for another thread, and a fork has none"
            raise RefusedError(f"no clone of {symbol}", why, "use --backend valgrind") from error
        except SnapshotError as error:
            full = is_full(records.parent)  # a store to a page that it has no room for ends the fork
            if not full:
                why = f"{error.what} in the traced call ({error.why}): it ends there, or leaves by an exception or longjmp"
                raise RefusedError(f"no clone of {symbol}", why, "use --backend valgrind") from error
            records.unlink(missing_ok=True)
            capacity = min(capacity, room_for_records(records.parent))
            if last or capacity <= 0:
                raise disk_full(symbol, records.parent) from error
    raise AssertionError


def disk_full(symbol: str, folder: Path) -> TraceError:
    """What to say where the disk of the records was filled while the call ran."""
    why = f"{folder.parent} was filled while its call was recorded"
    return TraceError(f"no trace of {symbol}", why, "free some space there, or lower --max-refs")
