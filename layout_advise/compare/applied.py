"""A note in a run's folder of the layout that ``apply`` wrote from it, and whether a program has it.

What ``apply`` writes leaves no record of the elements in the debug information: an element's members are groups in one
block, which functions find. The record that stands for a pointer is there, and the run knows of which layout it is.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from layout_advise.rundir import write_atomically
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.records.find import find_records

NOTE = "applied.json"


class AppliedLayout(msgspec.Struct, frozen=True):
    """``candidate`` is the layout; ``references`` has of each record the names of what stands for a pointer to it."""

    candidate: str
    references: tuple[tuple[str, ...], ...]


def note(run: Path, applied: AppliedLayout) -> None:
    """Leaves the note in a run's folder, in the place of an earlier one; a folder that cannot be written stays as it is."""
    if run.is_dir() and applied.references:
        with contextlib.suppress(OSError):
            write_atomically(run / NOTE, msgspec.json.encode(applied))


def applied_in(binary: ElfBinary, run: Path) -> str | None:
    """The id of the layout that ``apply`` wrote from the run, where the program has it; None for other programs."""
    try:
        noted = msgspec.json.decode((run / NOTE).read_bytes(), type=AppliedLayout)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    found = find_records(binary.debug, {name for names in noted.references for name in names})
    has = bool(noted.references) and all(any(found.get(name) for name in names) for names in noted.references)
    return noted.candidate if has else None
