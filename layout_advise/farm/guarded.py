"""Processes that end when they should: a time limit, a request to stop, and nothing left behind.

Every process gets an environment variable with the process that started it, which its descendants inherit however they
detach themselves. They are found by it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from layout_advise.farm.policy import FARM

MARK = "LAYOUT_ADVISE_FARM"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: ``how`` is ``done`` with its exit ``status`` (negative: a signal), or why it was ended."""

    how: Literal["done", "timed-out", "stopped"]
    status: int | None
    seconds: float


def run_guarded(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    seconds: float,
    stopped: Callable[[], bool],
    stdin: Path | None = None,
    output: Path | None = None,
) -> Ended:
    """Runs ``command`` in ``folder``; messages go to ``log``, its output to ``output`` (None: nowhere). However it ends, no
    process that it started is left. Raises OSError where it cannot be started."""
    mark = _mark()
    began = time.monotonic()
    with contextlib.ExitStack() as files:
        source = files.enter_context(open(stdin or os.devnull, "rb"))
        target = files.enter_context(open(output or os.devnull, "wb"))
        messages = files.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, MARK: mark},
            stdin=source,
            stdout=target,
            stderr=messages,
            start_new_session=True,  # Ctrl-C in the terminal is for the farm, which ends its runs in order
        )
        try:
            how = _watch(process, began + seconds, stopped)
        finally:
            end_marked(lambda found: found == mark)
            process.wait()
    return Ended(how, process.returncode if how == "done" else None, time.monotonic() - began)


def _watch(
    process: subprocess.Popen[bytes], deadline: float, stopped: Callable[[], bool]
) -> Literal["done", "timed-out", "stopped"]:
    """Waits for the end; one that takes too long, or has to stop, is told to, so that it can clean up."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=FARM.poll_seconds)
            return "done"
        asked = stopped()
        if asked or time.monotonic() > deadline:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=FARM.grace_seconds)
            return "stopped" if asked else "timed-out"


def end_abandoned() -> None:
    """Ends what a farm that was itself killed has left running."""
    end_marked(lambda mark: not _is_alive(mark))


def end_marked(wanted: Callable[[str], bool]) -> None:
    """Kills all processes whose mark is ``wanted``, and those that they start meanwhile."""
    for _ in range(FARM.sweeps):
        found = [pid for pid, mark in _marked() if wanted(mark)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _marked() -> Iterator[tuple[int, str]]:
    """The processes that have a mark, but for this one and those that it is itself started by."""
    own, prefix = os.environ.get(MARK), f"{MARK}=".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = Path(entry.path, "environ").read_bytes().split(b"\0")
            mark = next((word.removeprefix(prefix).decode() for word in words if word.startswith(prefix)), None)
            if mark is not None and mark != own:
                yield int(entry.name), mark


def _mark() -> str:
    """Always as long: the environment lies on the program's stack, and its length moves what is below."""
    return f"{os.getpid():010d}-{_start_time(os.getpid()).rjust(16, '0')}-{next(_numbers):06d}"


def _is_alive(mark: str) -> bool:
    pid, _, rest = mark.partition("-")
    return not pid.isdigit() or _start_time(int(pid)).rjust(16, "0") == rest.partition("-")[0]


def _start_time(pid: int) -> str:
    """The start of a process in clock ticks: a number alone may have been given again. Empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""
