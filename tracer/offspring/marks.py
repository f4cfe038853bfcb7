"""A variable of the environment that tells what started a process: descendants inherit it however they detach themselves."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

from layout_advise.tracer.offspring.processes import start_time

MARK = "LAYOUT_ADVISE_START"
_numbers = itertools.count()


_SPARED = "s"


def fresh_mark(*, spared: bool = False) -> str:
    """A mark that names this process and was not used before. Always as long: the environment lies on the program's stack,
    and its length moves what is below. ``spared``: of a start whose children live on when this process is gone."""
    pid = f"{_SPARED}{os.getpid():09d}" if spared else f"{os.getpid():010d}"
    return f"{pid}-{start_time(os.getpid()).rjust(16, '0')}-{next(_numbers):06d}"


def is_abandoned(mark: str) -> bool:
    """Returns whether the process that made the mark is gone, and what it started is not to live on."""
    pid, _, rest = mark.partition("-")
    return pid.isdigit() and start_time(int(pid)).rjust(16, "0") != rest.partition("-")[0]


def mark_of(pid: int, variable: str = MARK) -> str | None:
    """The value of the variable in the environment that the kernel shows of a process; None where there is none."""
    prefix = f"{variable}=".encode()
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return next((word.removeprefix(prefix).decode(errors="replace") for word in words if word.startswith(prefix)), None)
    return None
