"""Tracing one call of a stopped program with the clone: fork, copy the code, run it, fold what it recorded."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.errors import HungError, RefusedError, SnapshotError
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
    what_was_called,
)
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.execution_order import fold_control
from layout_advise.tracer.folding.fold import fold_records
from layout_advise.tracer.process.disk_space import RECORDS_ROOM, is_full, require
from layout_advise.tracer.process.stopped_program import CloneImage, StoppedProgram
from layout_advise.tracer.trace.trace import Allocation, Trace


def trace_call(
    program: StoppedProgram,
    region: Region,
    call: int,
    cap: int = DEFAULT_CAP,
    *,
    folder: Path | None = None,
) -> Trace:
    """The folded trace of the call that ``program`` is about to make; ``program`` itself stays as it is.

    ``cap`` is the most records taken; it shrinks to what the tmpfs has room for (``limits`` tells where that cut the trace).
    The raw records go to a temporary folder in ``folder`` (default /dev/shm, where it exists), which is removed in any case.
    Parallel regions: :mod:`layout_advise.tracer.backends.clone.record_team`.
    Raises :class:`TraceError` and the errors of ``program``.
    """
    image = build_clone(region, choose_address(program.mappings(), region.entry))
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=records_folder(folder)) as temporary:
        records = Path(temporary) / "records"
        require(Path(temporary), RECORDS_ROOM, "the records of one call", "free some space there")
        capacity = min(cap, room_for_records(Path(temporary)))
        done = _in_fork(program, image, records, capacity, region.symbol)
        count = len(image.references)
        streams = tuple(fold_records(records, count)) if done.taken else (None,) * count
        control = fold_control(records, count) if done.taken else None
    return replace(
        clone_trace(program, region, call, (image,), done.after),
        streams=streams,
        accesses=done.taken,
        truncated=done.truncated,
        limits=_limits(done, cap, records),
        control=control,
        others=done.others,
        untaken=() if done.truncated else tuple(sorted(done.untaken)),
        called=() if done.truncated else done.called,
    )


def _limits(done: _Done, cap: int, records: Path) -> tuple[str, ...]:
    """The limits that cut the trace, besides ``cap``, the caller's limit."""
    if not done.truncated:
        return ()
    if left_copy(done.taken, done.capacity):
        return (cut_by_jump(done.taken),)
    return (cut_for_room(done.taken, records),) if done.capacity < cap else ()


@dataclass(frozen=True, slots=True)
class _Done:
    """The clone has run: how many records it wrote, whether that is not all, the blocks after the call, how many records
    there was room for, whether other threads ran meanwhile, where code begins that did not run, and what indirect calls
    called."""

    taken: int
    truncated: bool
    after: tuple[Allocation, ...]
    capacity: int
    others: bool
    untaken: frozenset[int]
    called: tuple[tuple[int, tuple[int, ...]], ...]


def _run(program: StoppedProgram, image: CloneImage, records: Path, capacity: int) -> _Done:
    taken, truncated = program.trace(image, records, capacity)
    ways = not_run(program, image), what_was_called(program, image)
    return _Done(taken, truncated, program.live_blocks(), capacity, program.others_ran, *ways)


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
