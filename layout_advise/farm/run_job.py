"""One run on this machine: prepare the program, trace it in a process of its own, and make a row of the report."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from layout_advise.errors import RunDirError
from layout_advise.farm.guarded import Ended, end_abandoned, run_guarded
from layout_advise.farm.listing import Job
from layout_advise.farm.policy import FARM
from layout_advise.farm.prepare import Prepared, StepError, StoppedError, last_line, locked, machine_lock, prepare
from layout_advise.farm.rows import ended, of_report, row_of
from layout_advise.machine import cpu_fields
from layout_advise.reports.model.contract import decode
from layout_advise.reports.model.farm import FarmRow


@dataclass(frozen=True, slots=True)
class Order:
    """What a farm asks of a machine beside the job. ``session`` names the farm's run; ``output`` and ``work`` are folders,
    the same on every machine; ``options`` are of ``trace``. ``native``: run the program without tracing it, twice."""

    session: str
    output: Path
    work: Path
    options: tuple[str, ...]
    version: str
    native: bool


@dataclass(frozen=True, slots=True)
class FarmOutcome:
    """A row with the report that it is of; no row where the farm was stopped meanwhile."""

    row: FarmRow | None
    report: bytes | None = None


@dataclass(frozen=True, slots=True)
class _ReadyRun:
    """A prepared run: its command's ``words`` and its input's file; ``stopped`` tells whether the farm is to stop. ``blank``
    is the row so far."""

    job: Job
    order: Order
    prepared: Prepared
    words: tuple[str, ...]
    source: Path | None
    stopped: Callable[[], bool]
    blank: FarmRow

    @property
    def folder(self) -> Path:
        """The run directory."""
        return run_folder(self.order.output, machine_name(), self.job)

    def guarded(self, words: Sequence[str], log: Path, output: Path | None = None) -> Ended:
        """A command in the folder of the inputs. Raises StoppedError where the farm is to stop."""
        done = run_guarded(
            words,
            folder=self.prepared.input,
            environment=self.prepared.environment,
            log=log,
            seconds=self.job.entry.limit,
            stopped=self.stopped,
            stdin=self.source,
            output=output,
        )
        if done.how == "stopped":
            raise StoppedError("stopped")
        return done


_stopped: set[str] = set()
_running: dict[str, int] = {}


async def stop_session(session: str) -> None:
    """Ends the runs of a farm on this machine, and returns when they have ended."""
    _stopped.add(session)
    deadline = time.monotonic() + 2 * FARM.grace_seconds
    while _running.get(session) and time.monotonic() < deadline:
        await asyncio.sleep(FARM.poll_seconds)


def machine_name() -> str:
    """The name of this machine, fit for a file: ``LAYOUT_ADVISE_MACHINE``, else the host's."""
    name = os.environ.get("LAYOUT_ADVISE_MACHINE") or socket.gethostname()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "machine"


def run_folder(output: Path, machine: str, job: Job) -> Path:
    """The run directory."""
    return output / "runs" / machine / job.id


def carry_out(job: Job, order: Order) -> FarmOutcome:
    """Runs one job; whatever happens to the program is told in the row. One thing at a time happens on a machine: a build
    beside a timed run would disturb it."""
    stopped = partial(_stopped.__contains__, order.session)
    _running[order.session] = _running.get(order.session, 0) + 1
    try:
        with locked(machine_lock(), stopped):
            if stopped():
                return FarmOutcome(None)
            end_abandoned()
            return _run(job, order, stopped)
    except StoppedError:
        return FarmOutcome(None)
    finally:
        _running[order.session] -= 1


def _run(job: Job, order: Order, stopped: Callable[[], bool]) -> FarmOutcome:
    began = time.monotonic()
    blank = row_of(
        job,
        machine=machine_name(),
        cpu=cpu_fields().get("model name", ""),
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        digest=job.digest((*order.options, str(order.native)), order.version),
    )
    try:
        prepared = prepare(job, order.work, stopped)
        words = job.words(job.entry.run, prepared.variables)
        program = Path(words[0]) if "/" in words[0] else Path(shutil.which(words[0]) or words[0])
        if not (prepared.input / program).is_file():
            raise StepError("missing", f"no program {words[0]}", "correct `run` or `build` in the list")
        spent = time.monotonic() - began
        stdin = job.words(job.entry.stdin, prepared.variables)
        if stdin and not (prepared.input / stdin[0]).is_file():
            raise StepError("input-failed", f"no file {stdin[0]}", "correct `stdin` or `input` in the list")
    except StepError as error:
        return FarmOutcome(ended(blank, error.status, error.line(), prepare_seconds=time.monotonic() - began))
    source = prepared.input / stdin[0] if stdin else None
    spent_row = ended(blank, blank.status, prepare_seconds=spent)
    ready = _ReadyRun(job, order, prepared, (str(program), *words[1:]), source, stopped, spent_row)
    return FarmOutcome(*(_native(ready) if order.native else _traced(ready)))


def _native(ready: _ReadyRun) -> tuple[FarmRow, None]:
    """The program by itself, twice: how long it takes, how it ends, and whether it prints the same."""
    folder, words, blank = ready.folder, ready.words, ready.blank
    folder.mkdir(parents=True, exist_ok=True)
    sums, times = [], []
    for number in (1, 2):
        printed, log = folder / f"native-{number}.out", folder / f"native-{number}.log"
        try:
            done = ready.guarded(words, log, printed)
        except OSError as error:
            return ended(blank, "failed", f"cannot start {words[0]}: {error.strerror}"), None
        with printed.open("rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
        printed.unlink()
        times.append(done)
        if done.how != "done":
            return ended(blank, "timed-out", f"took more than {ready.job.entry.limit:g} s", seconds=done.seconds), None
    shortest = min(times, key=lambda one: one.seconds)
    why = "" if shortest.status == 0 else last_line(folder / "native-1.log")
    same = sums[0] == sums[1]
    return ended(blank, "native", why, seconds=shortest.seconds, exit_status=shortest.status, same_output=same), None


def _traced(ready: _ReadyRun) -> tuple[FarmRow, bytes | None]:
    """The program under ``trace``."""
    folder, blank, entry = ready.folder, ready.blank, ready.job.entry
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    options = (*ready.order.options, *ready.job.words(entry.options, ready.prepared.variables))
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", "-f", *options, "-o", str(folder), "--", *ready.words]
    done = ready.guarded(command, log)
    told = last_line(log, "layout-advise:").removeprefix("layout-advise:").strip()
    facts: dict[str, float | int | None] = {"seconds": done.seconds, "exit_status": done.status}
    if done.how == "timed-out":
        return ended(blank, "timed-out", f"took more than {entry.limit:g} s", **facts), None
    try:
        data = (folder / "report.json").read_bytes()
        row = of_report(ended(blank, "done", "", **facts), decode(data))
    except (OSError, RunDirError):
        return ended(blank, "failed", told or last_line(log) or f"no report, exit status {done.status}", **facts), None
    return row, data
