"""Looking at the command before anything runs: what would fail later fails here, in one line."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from layout_advise.config import Settings
from layout_advise.errors import BinaryError, UsageError
from layout_advise.rundir import scratch_parent
from layout_advise.tracer.process.disk_space import KEEP_FREE, RECORD_BYTES, RECORDS_ROOM, require
from layout_advise.tracer.program.binary import ElfBinary

FIRST = {"libasan": "AddressSanitizer", "libhwasan": "HWAddressSanitizer", "liblsan": "LeakSanitizer"}
"""What ends a program into which another library was loaded before it, by the name of its own library."""
RUN_ROOM = 16 << 20
"""Bytes that a run directory needs without its trace: reports, mock-ups and their logs."""


def check_command(command: Sequence[str], cwd: Path | None = None, *, static: bool = False) -> ElfBinary:
    """The program of ``command``, found as a shell would find it, opened and fit to be analysed.

    ``static``: it may be linked statically.

    Raises :class:`UsageError` where the command is empty or ``cwd`` is no directory, :class:`BinaryError` for everything
    about the file (see ``layout_advise.tracer.program.elf_checks``).
    """
    if not command or not command[0]:
        raise UsageError("no program given", "the command is empty", "layout-advise trace -- ./app its arguments")
    if cwd is not None and not cwd.is_dir():
        raise UsageError(f"cannot run in {cwd}", "it is no directory", "give an existing one")
    binary = ElfBinary.open(find_program(command[0], cwd), static=static)
    first = next((FIRST[stem] for name in binary.libraries if (stem := name.partition(".")[0]) in FIRST), None)
    if first is not None:
        why = f"it is built with {first}, whose library must be loaded first, and its times are those of the checks"
        raise BinaryError(f"cannot analyse {binary.path}", why, "build it without -fsanitize")
    return binary


def find_program(name: str, cwd: Path | None = None) -> Path:
    """The absolute path of the file that ``name`` starts; a name without a slash is looked up in ``PATH``."""
    if "/" in name:
        return (cwd or Path.cwd()) / name
    found = shutil.which(name)
    if found is not None:
        return Path(found).absolute()
    here = (cwd or Path.cwd()) / name
    if here.is_file():  # the usual slip
        raise BinaryError(f"cannot find {name}", "it is not in PATH", f"did you mean ./{name}?")
    raise BinaryError(f"cannot find {name}", "it is not in PATH", _near(cwd or Path.cwd(), name))


def _near(folder: Path, name: str) -> str:
    """Programs of a similar name in the working directory, as a hint."""
    try:
        programs = [e.name for e in os.scandir(folder) if e.is_file() and os.access(e.path, os.X_OK)]
    except OSError:
        programs = []
    close = difflib.get_close_matches(name, programs, n=3)
    return f"did you mean {', '.join('./' + c for c in close)}?" if close else "give the path of the program"


def check_room(settings: Settings) -> None:
    """Raise :class:`TraceError` where the disk of the run directory, or the scratch folder, has no room for what the run
    writes: with ``--max-bytes`` that much has to be free, without it the least that makes a trace."""
    asked = None if settings.max_bytes is None else min(settings.max_bytes, RECORD_BYTES * settings.max_refs)
    hint = "free some space there" if asked is None else "free some space there, or lower --max-bytes"
    require(settings.output.parent, RUN_ROOM + (asked or 0), "the run directory", f"{hint}, or choose another disk with -o")
    require(scratch_parent(), KEEP_FREE + asked if asked else RECORDS_ROOM, "the records of a call", hint)
