"""Running a program to its end with some calls of a region as a mock-up."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.live.orders import LiveCalls, LiveTask
from layout_advise.tracer.live.outcome import TABLE_BYTES, LiveRun, read_table
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import Mode, Orders, State
from layout_advise.tracer.process.launch import Start, wait_for_end
from layout_advise.tracer.process.patching import Entry

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
) -> LiveRun:
    """Start ``command``, run ``calls`` of ``entry`` as ``task`` says, and wait for its end. ``quick``: only the time stamp
    counter is read, for calls that a look at the CPU's time would outlast.

    Raises :class:`ProgramError` where it cannot be started, does not end within ``timeout`` seconds (it is killed then), or
    never comes to the region.
    """
    with tempfile.TemporaryDirectory(prefix="layout-advise-live-") as scratch:
        out, messages = Path(scratch) / "stdout", Path(scratch) / "stderr"
        start = Start(command, stdin_path, stdout=out, stderr=messages)
        orders = Orders(Mode.LIVE, entry, first=task.first, quick=quick)
        files = {"live": task.packed(calls, seed)}
        before = _children_seconds()
        with agent_run(start, orders, tables={"rows": TABLE_BYTES}, files=files) as (folder, process):
            wait_for_end(process, timeout, "a layout was tried in it", _HINT)
            seconds, cpu_seconds = time.monotonic() - folder.begun, _children_seconds() - before
            status = folder.status()
            if status.state < State.PATCHED:
                raise ProgramError(f"cannot reach {entry.symbol or hex(entry.address)}", status.error or "it was not loaded")
            error, counts, times, roles = read_table((folder.path / "rows").read_bytes(), status.ns_per_tick)
        made, mockups, conversions, passed, inside = counts
        return LiveRun(
            made, mockups, conversions, passed, inside, error or status.error, times, roles, process.returncode, seconds,
            cpu_seconds, out.read_bytes(), messages.read_bytes(),
        )  # fmt: skip


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
