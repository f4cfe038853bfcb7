"""The records of a trace by clones: where they lie, how many there is room for, what cut them, and the trace around them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from layout_advise.errors import TraceError
from layout_advise.tracer.backends.clone.header import CALLED, CALLED_BYTES, MARKS, MOST_CALLED
from layout_advise.tracer.backends.clone.image import MOST_LEFT
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.objects.lifetimes import changes
from layout_advise.tracer.process.disk_space import KEEP_FREE, RECORDS_ROOM, free_bytes, memory_folder
from layout_advise.tracer.process.stopped_program import CloneImage, StoppedProgram
from layout_advise.tracer.trace.trace import Allocation, Trace

DEFAULT_CAP = 64 << 20
"""Records of one trace at most: 512 MB on tmpfs."""


def records_folder(wanted: Path | None) -> Path | None:
    """The folder in which a temporary folder for records goes: ``wanted``, else tmpfs where there is one (None: the system's
    default)."""
    return wanted if wanted is not None else memory_folder(RECORDS_ROOM)


def room_for_records(folder: Path) -> int:
    """How many records fit there, others' room left free."""
    return (free_bytes(folder) - KEEP_FREE) // 8


def left_copy(taken: int, capacity: int) -> bool:
    """Returns whether a clone whose trace was cut had room for more records."""
    return taken <= capacity - MOST_LEFT


def cut_by_jump(taken: int) -> str:
    """The limit of a trace that ends after ``taken`` accesses because control left the clone."""
    return f"cut after {taken:,} accesses: an indirect jump led to where no instruction is known"


def cut_for_room(taken: int, records: Path) -> str:
    """The limit of a trace that ends after ``taken`` accesses because the disk of the file ``records``, which lies in a
    temporary folder, has no room for more."""
    return f"cut after {taken:,} accesses: no room for more in {records.parent.parent}"


def disk_full(symbol: str, folder: Path) -> TraceError:
    """The error of a call while which the disk of the records was filled."""
    why = f"{folder.parent} was filled while its call was recorded"
    return TraceError(f"no trace of {symbol}", why, "free some space there, or lower --max-refs")


def not_run(program: StoppedProgram, image: CloneImage) -> frozenset[int]:
    """Where the pieces of code begin that ``program`` has not run in its clone ``image``."""
    marks = program.read(image.address + MARKS, len(image.marks)) if image.marks else b""
    return frozenset(at for at, ran in zip(image.marks, marks, strict=True) if not ran)


def what_was_called(program: StoppedProgram, image: CloneImage) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The indirect calls that ``program`` has made in its clone ``image``, by their addresses, each with what it called,
    ascending; with nothing where that is more than can be noticed."""
    words = program.read(image.address + CALLED, CALLED_BYTES * len(image.called)) if image.called else b""
    found = []
    for number, at in enumerate(image.called):
        *known, others = struct.unpack_from(f"<{MOST_CALLED + 1}Q", words, CALLED_BYTES * number)
        if any(known):
            found.append((at, () if others else tuple(sorted(target for target in known if target))))
    return tuple(found)


def clone_trace(
    program: StoppedProgram, region: Region, call: int, images: Sequence[CloneImage], after: Sequence[Allocation]
) -> Trace:
    """A trace by the clones ``images`` but for their records; ``after`` are the heap's blocks at the end of the call."""
    before = program.allocations()
    born, freed = changes(before, after, images)
    return Trace(
        symbol=region.symbol,
        call=call,
        backend="clone",
        references=images[0].references,
        streams=(),
        accesses=0,
        truncated=False,
        registers=program.registers(),
        mappings=program.mappings(),
        allocations=before,
        watched=True,
        born=born,
        freed=freed,
    )
