"""Fetching, building and making inputs: each step once, and again only where what it depends on has changed."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import LayoutAdviseError
from layout_advise.farm.guarded import run_guarded
from layout_advise.farm.listing import Job
from layout_advise.farm.policy import FARM
from layout_advise.reports.model.farm import Status

FAILED: Mapping[str, Status] = {"fetch": "fetch-failed", "build": "build-failed", "input": "input-failed"}


class StepError(LayoutAdviseError):
    """A step of a program failed; ``status`` is the word for it in the row."""

    def __init__(self, status: Status, what: str, why: str = "") -> None:
        self.status = status
        super().__init__(what, why)


class StoppedError(LayoutAdviseError):
    """The farm is to stop."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Folders and variables of a program that can be run."""

    build: Path
    input: Path
    variables: dict[str, str]
    environment: dict[str, str]


def prepare(job: Job, work: Path, stopped: Callable[[], bool]) -> Prepared:
    """Carries out the steps of ``job`` in ``work/NAME``. Raises StepError where one fails, StoppedError on a stop."""
    home = work / job.entry.name
    home.mkdir(parents=True, exist_ok=True)
    source, build, made = home / "source", home / job.build_name, home / "input"
    variables = {
        "NAME": job.entry.name,
        "VERSION": job.entry.version,
        "LIST": str(job.folder),
        "SOURCE": str(source),
        "BUILD": str(build),
        "INPUT": str(made),
        "VARIANT": job.flags,
        "FLAGS": job.entry.flags.get(job.flags, ""),
        "CASE": job.entry.inputs.get(job.input, ""),
        "JOBS": str(os.cpu_count() or 1),
        "PYTHON": sys.executable,
        **job.entry.environment,
    }
    environment = {**os.environ, **variables}
    digests = job.step_digests()
    steps = (("fetch", job.entry.fetch, source), ("build", job.entry.build, build), ("input", job.entry.input, made))
    with locked(home / ".lock", stopped):  # other farms may use the same folder
        for name, script, folder in steps:
            stamp = home / f"{folder.name}.done"
            if stamp.is_file() and stamp.read_text() == digests[name] and folder.is_dir():
                continue
            stamp.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            if name == "build" and source.is_dir():
                shutil.copytree(source, folder, symlinks=True)
            folder.mkdir(exist_ok=True)
            if script:
                _carry_out(name, script, folder, environment, job.entry.build_limit, home / f"{folder.name}.log", stopped)
            stamp.write_text(digests[name])
    return Prepared(build, made, variables, environment)


def _carry_out(
    name: str,
    script: str,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    log: Path,
    stopped: Callable[[], bool],
) -> None:
    command = ["sh", "-euc", f"exec 1>&2\n{script}"]
    done = run_guarded(command, folder=folder, environment=environment, log=log, seconds=seconds, stopped=stopped)
    if done.how == "stopped":
        raise StoppedError("stopped")
    if done.how == "timed-out":
        raise StepError(FAILED[name], f"{name} took more than {seconds:g} s", f"see {log}")
    if done.status != 0:
        raise StepError(FAILED[name], f"{name} failed ({last_line(log) or f'exit status {done.status}'})", f"see {log}")


def last_line(log: Path, begins: str = "") -> str:
    """The last line of a log that begins so, cut to a width that fits a table; empty where there is none."""
    try:
        lines = log.read_bytes()[-(1 << 16) :].decode(errors="replace").splitlines()
    except OSError:
        return ""
    found = [line.strip() for line in lines if line.strip().startswith(begins) and line.strip()]
    # make says last that it failed, and before why
    telling = [line for line in found if not line.startswith("make")] or found
    return telling[-1][:300] if telling else ""


@contextmanager
def locked(path: Path, stopped: Callable[[], bool]) -> Iterator[None]:
    """Holds the lock on a file that stays. Raises StoppedError where the farm is to stop while another one has it."""
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stopped():
                    raise StoppedError("stopped") from None
                time.sleep(FARM.poll_seconds)
        yield


def machine_lock() -> Path:
    """The file that is locked while something runs on this machine, by whichever farm of this user:
    ``LAYOUT_ADVISE_FARM_LOCK``, else one in the folder for temporary files."""
    chosen = os.environ.get("LAYOUT_ADVISE_FARM_LOCK")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"layout-advise-farm-{os.getuid()}.lock"
