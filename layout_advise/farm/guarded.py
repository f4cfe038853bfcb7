"""Processes that end when they should: a time limit, a request to stop, and nothing left behind.

Every process gets an environment variable with the process that started it, which its descendants inherit however they
detach themselves. They are found by it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from layout_advise.farm.policy import FARM
from layout_advise.tracer.offspring.ending import end_marked
from layout_advise.tracer.offspring.marks import fresh_mark, is_abandoned

MARK = "LAYOUT_ADVISE_FARM"


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
    mark = fresh_mark()
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
            end_marked(lambda found: found == mark, MARK)
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
    end_marked(is_abandoned, MARK)
