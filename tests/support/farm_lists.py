"""Lists for the farm with programs that are there at once, and rows as runs leave them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.reports.model.farm import FarmReport, FarmRow, decode_farm

ROW = FarmRow(
    run="app.O2",
    program="app",
    version="1",
    language="C",
    kind="",
    flags="-O2",
    input="",
    machine="one",
    cpu="",
    created="2026-01-01T00:00:00Z",
    digest="d",
    status="done",
    share=0.8,
    action="change",
    reason="measured-gain",
    gain=1.5,
    lo=1.4,
    hi=1.6,
    measured=3,
    seconds=30.0,
)


def row(**facts: Any) -> FarmRow:
    """A row with a measured gain, but for what is given; ``run`` follows from ``program``."""
    if "program" in facts:
        facts.setdefault("run", f"{facts['program']}.O2")
    return msgspec.structs.replace(ROW, **facts)


def write_list(folder: Path, **programs: str) -> Path:
    """A list with a shell script for each program: ``run`` is what it says."""
    path = folder / "list.toml"
    rows = [f"[[program]]\nname = {name!r}\nrun = {json.dumps(_run(script))}\n" for name, script in programs.items()]
    path.write_text("\n".join(rows))
    return path


def _run(script: str) -> str:
    return f"sh -c {shlex.quote(script)}".replace("$", "$$")  # `$$` in a list is `$` for the program


def farm(listing: Path, *options: str | Path) -> FarmReport:
    """The summary of ``farm`` on a list, natively, with results beside it; the command must succeed."""
    words = ["farm", str(listing), "-o", str(listing.parent / "out"), "-q", *map(str, options)]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in alone(listing.parent).items():
            patch.setenv(name, value)
        assert main(words) == 0
    return summary_of(listing)


HEEDING = ("env", "--default-signal=INT,TERM")
"""Heeds interrupts also where the tests run in the background of a shell, which ignores them."""


def alone(folder: Path) -> dict[str, str]:
    """The environment in which a farm waits for no other one on this machine."""
    return {"LAYOUT_ADVISE_FARM_LOCK": str(folder / "farm.lock")}


def summary_of(listing: Path) -> FarmReport:
    """What the farm wrote beside its list."""
    return decode_farm((listing.parent / "out" / "farm.json").read_bytes())


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits until ``condition`` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def cluster(folder: Path, *machines: str) -> Iterator[str]:
    """The address of a scheduler on this machine, once all its workers are there: one process for each of ``machines``,
    which go by these names."""
    file = folder / "scheduler.json"
    dask = [sys.executable, "-c", "from dask.__main__ import main; main()"]
    log = (folder / "cluster.log").open("wb")
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    started = [_started(scheduler, log, folder)]
    try:
        wait_for(lambda: file.exists() and file.read_text().endswith("}"))
        worker = [*dask, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        started += [
            _started(
                [*worker, "--name", name, "--resources", "timed=1", "--local-directory", folder / name], log, folder, name
            )
            for name in machines
        ]
        wait_for(lambda: (folder / "cluster.log").read_text().count("Registered to:") == len(machines))
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
        log.close()


def _started(command: list[Any], log: Any, folder: Path, machine: str = "scheduler") -> subprocess.Popen[bytes]:
    environment = {**os.environ, **alone(folder), "LAYOUT_ADVISE_MACHINE": machine}
    return subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, env=environment)
