"""Programs that each do one thing which breaks tools, through the real command.

Whatever a program does, ``trace`` ends with a report or with one line and leaves nothing behind, and the first run of it has
its own output and exit status. ``programs.toml`` says what is special about one; each source here is a program.
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.building import NAMES, TABLE, alone, build, command_line, end_all, lacking, left, run

OPTIONS = ("--candidates", "1", "--budget", "2", "--no-live")
PATIENCE = 150.0
"""Seconds beyond what the program needs by itself, many times over, as the machine may be busy."""


def status_in(report: dict[str, Any]) -> int:
    """The exit status as Python's subprocess has it."""
    program = report["program"]
    return program["exit_status"] if program["signal"] is None else -signal.Signals[program["signal"]].value


def case(name: str) -> Any:
    """A program as a parameter, with its marks."""
    row = TABLE.get(name, {})
    marks = [] if row.get("fast") else [pytest.mark.slow]
    return pytest.param(name, marks=marks)


def children_seconds() -> float:
    """CPU time of all processes that were waited for, theirs included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("name", [case(name) for name in NAMES])
def test_ends_well(name: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Its times are recorded with the result (``--junitxml FILE -o junit_family=xunit1``); no test looks at them."""
    row = TABLE.get(name, {})
    if lacking(name):
        pytest.skip(lacking(name))
    program = build(name, tmp_path)
    began, used = time.monotonic(), children_seconds()
    status, out, behind = alone(program, tmp_path / "alone", name)
    middle, used_by_then = time.monotonic(), children_seconds()
    folder = tmp_path / "traced"
    folder.mkdir()
    shutil.copy(program, folder / "hostile")
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", *OPTIONS, *row.get("options", [])]
    command += [] if row.get("whole") else ["--hotspot", row.get("hotspot", "work")]
    command += ["-o", "run", "--json", "report.json", "--", *command_line(name, tmp_path)]
    try:
        code, said, err, pid = run(command, folder, name, PATIENCE, row.get("terminal", False))
        record_property("seconds", round(time.monotonic() - middle - (middle - began), 2))
        record_property("cpu_seconds", round(children_seconds() - used_by_then - (used_by_then - used), 2))
        assert code != -signal.SIGKILL, f"still running: {err[-2000:]!r}"
        assert left(folder, pid, behind) == []
    finally:
        end_all(folder)
    lines = [line for line in err.decode(errors="replace").splitlines() if line.startswith("layout-advise: ")]
    assert b"Traceback" not in err, err[-3000:].decode(errors="replace")
    assert code in (0, 1, 2, 4), err[-2000:]
    if code == 0:
        assert "says" not in row
        assert status_in(json.loads((folder / "report.json").read_text())) == status
        assert said.startswith(b"sum " if row.get("varies") else out)
    else:
        assert len(lines) == 1, err[-2000:]
        assert not row.get("answers"), lines[0]
        assert row.get("says", "") in lines[0]
        assert said in (out, b"") or out.startswith(said) or row.get("says"), (said[-300:], out[-300:])
