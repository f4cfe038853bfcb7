"""Running a program to its end with some calls of a region, or of several, as mock-ups."""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from layout_advise.errors import OvertimeError, ProgramError
from layout_advise.tracer.live.orders import LiveCalls, LiveTask, RegionTask
from layout_advise.tracer.live.outcome import TABLE_BYTES, LiveRun, read_table
from layout_advise.tracer.live.output import MOST_BYTES
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import Mode, Orders, State, further_region
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

    Raises :class:`ProgramError` where it cannot be started, never comes to the region, or prints more than can be compared;
    :class:`OvertimeError` where it does not end within ``timeout`` seconds (it is killed then).
    """
    regions = [RegionTask(entry, task, calls, quick)]
    (found,) = run_live_regions(command, regions, seed=seed, stdin_path=stdin_path, timeout=timeout, scratch=scratch)
    return found


def run_live_regions(
    command: Sequence[str],
    regions: Sequence[RegionTask],
    *,
    seed: int = 0,
    stdin_path: Path | None = None,
    timeout: float | None = None,
    scratch: Path | None = None,
) -> tuple[LiveRun, ...]:
    """The same of several regions in one run, of which :func:`~layout_advise.tracer.live.orders.why_not_together` has
    nothing to say: what became of each, all with the end and the output of that run."""
    first, *others = regions
    orders = Orders(Mode.LIVE, first.entry, first=first.task.first, quick=first.quick)
    names = ["", *(str(number) for number in range(1, len(regions)))]
    files = {f"live{name}": one.task.packed(one.calls, seed) for name, one in zip(names, regions, strict=True)}
    if others:
        files["further"] = b"".join(further_region(one.entry, one.task.first, one.quick) for one in others)
    tables = {f"rows{name}": TABLE_BYTES for name in names}
    with tempfile.TemporaryDirectory(prefix="live-", dir=scratch) as folder_of_output:
        out, messages = Path(folder_of_output) / "stdout", Path(folder_of_output) / "stderr"
        start = Start(command, stdin_path, stdout=out, stderr=messages)
        before, faults_before = _of_children()
        with own_turn(), agent_run(start, orders, tables=tables, files=files) as (folder, process):
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                slow = f"the program took longer than {timeout:.3g} s while a layout was tried in it"
                raise OvertimeError(slow, "it was ended", _HINT) from None
            seconds, (cpu_after, faults_after) = time.monotonic() - folder.begun, _of_children()
            status = folder.status()
            if status.state < State.PATCHED:
                name = first.entry.symbol or hex(first.entry.address)
                raise ProgramError(f"cannot reach {name}", status.error or "it was not loaded")
            found = [read_table((folder.path / name).read_bytes(), status.ns_per_tick) for name in tables]
        if max(out.stat().st_size, messages.stat().st_size) > MOST_BYTES:
            raise ProgramError("a layout cannot be tried in the program", f"it prints more than {MOST_BYTES >> 20} MiB")
        printed = out.read_bytes(), messages.read_bytes()
        return tuple(
            LiveRun(
                one.calls, one.mockups, one.conversions, one.passed, one.inside, one.error or status.error, one.times,
                one.roles, process.returncode, seconds, cpu_after - before, *printed, one.surveyed, one.copying,
                one.within, one.aside_s, one.copies_s, faults_after - faults_before, one.aside_faults,
                one.ended,
            )
            for one in found
        )  # fmt: skip


def _of_children() -> tuple[float, int]:
    """CPU seconds and minor page faults of all that has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime, usage.ru_minflt
