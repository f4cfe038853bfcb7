"""Tracing one call of a stopped program with the clone: fork, copy the code, run it, fold what it recorded."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from layout_advise.errors import TraceError
from layout_advise.tracer.clone.image import build_clone
from layout_advise.tracer.clone.place import choose_address
from layout_advise.tracer.code import Region
from layout_advise.tracer.folding import fold_records
from layout_advise.tracer.snapshot.protocol import StoppedProgram
from layout_advise.tracer.trace import Trace

DEFAULT_CAP = 64 << 20
"""Records of one trace at most: 512 MB on tmpfs."""

_KEEP_FREE = 64 << 20  # bytes of tmpfs that are left to others


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

    ``cap`` is the most records taken; it shrinks to what the tmpfs has room for. The raw records go to a temporary folder in
    ``folder`` (default /dev/shm, where it exists), which is removed in any case. With ``fork=False`` the clone runs in
    ``program`` itself, which must not be used afterwards. Parallel regions: :mod:`layout_advise.tracer.team_record`.
    Raises :class:`TraceError` and the errors of ``program``.
    """
    image = build_clone(region, choose_address(program.mappings(), region.entry))
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=records_folder(folder)) as temporary:
        records = Path(temporary) / "records"
        capacity = min(cap, room_for_records(Path(temporary)))
        if capacity <= 0:
            raise TraceError("no trace was taken", f"no room for records in {temporary}", "free some space there")
        if fork:
            with program.fork() as child:
                taken, truncated = child.trace(image, records, capacity)
        else:
            taken, truncated = program.trace(image, records, capacity)
        streams = fold_records(records, len(image.references)) if taken else [None] * len(image.references)
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
        allocations=program.allocations(),
    )


def records_folder(wanted: Path | None) -> Path | None:
    """Where a temporary folder for records goes: ``wanted``, else tmpfs where there is one (None: the system's default)."""
    return wanted if wanted is not None else Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None


def room_for_records(folder: Path) -> int:
    """How many records fit there, others' room left free."""
    room = os.statvfs(folder)
    return (room.f_bavail * room.f_frsize - _KEEP_FREE) // 8
