"""Running a program to its end with some calls of a region as a mock-up."""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.live.orders import LiveCalls, LiveTask
from layout_advise.tracer.live.outcome import TABLE_BYTES, LiveRun, read_table
from layout_advise.tracer.live.output import MOST_BYTES
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import Mode, Orders, State
from layout_advise.tracer.process.launch import Start
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.sampling.turns import own_turn

_HINT = "--no-live leaves the trial out"


def run_live(
    command: Sequence[str],
    entry: Entry,
    task: LiveTask,
    calls: LiveCalls,
    *,
    seed: int = 0,
    quick: bool = False,
    stdin_path: Path | None = None,
    timeout: float | None = None,
    scratch: Path | None = None,
) -> LiveRun:
    """Start ``command``, run ``calls`` of ``entry`` as ``task`` says, and wait for its end. ``quick``: only the time stamp
    counter is read, for calls that a look at the CPU's time would outlast. Its output goes into files in ``scratch`` (None:
    the system's temporary folder), which are removed.

    Raises :class:`ProgramError` where it cannot be started, does not end within ``timeout`` seconds (it is killed then),
    never comes to the region, or prints more than can be compared.
    """
    with tempfile.TemporaryDirectory(prefix="live-", dir=scratch) as folder_of_output:
        out, messages = Path(folder_of_output) / "stdout", Path(folder_of_output) / "stderr"
        start = Start(command, stdin_path, stdout=out, stderr=messages)
        orders = Orders(Mode.LIVE, entry, first=task.first, quick=quick)
        files = {"live": task.packed(calls, seed)}
        before = _children_seconds()
        with own_turn(), agent_run(start, orders, tables={"rows": TABLE_BYTES}, files=files) as (folder, process):
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                slow = f"the program took longer than {timeout:.3g} s while a layout was tried in it"
                raise ProgramError(slow, "it was ended", _HINT) from None
            seconds, cpu_seconds = time.monotonic() - folder.begun, _children_seconds() - before
            status = folder.status()
            if status.state < State.PATCHED:
                raise ProgramError(f"cannot reach {entry.symbol or hex(entry.address)}", status.error or "it was not loaded")
            error, counts, times, copying, roles = read_table((folder.path / "rows").read_bytes(), status.ns_per_tick)
        if max(out.stat().st_size, messages.stat().st_size) > MOST_BYTES:
            raise ProgramError("a layout cannot be tried in the program", f"it prints more than {MOST_BYTES >> 20} MiB")
        made, mockups, conversions, passed, inside, surveyed = counts
        return LiveRun(
            made, mockups, conversions, passed, inside, error or status.error, times, roles, process.returncode, seconds,
            cpu_seconds, out.read_bytes(), messages.read_bytes(), surveyed, copying,
        )  # fmt: skip


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
