"""Programs that each do one thing which breaks tools, through the real command.

Whatever a program does, ``trace`` ends with a report or with one line and leaves nothing behind, and the first run of it has
its own output and exit status. ``programs.toml`` says what is special about one; each source here is a program.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TABLE: dict[str, dict[str, Any]] = tomllib.loads((HERE / "programs.toml").read_text())
SOURCES = {f"{path.parent.name}/{path.stem}": path for path in sorted(HERE.glob("*/*.c*")) if path.suffix in (".c", ".cpp")}
NAMES = sorted({*SOURCES, *TABLE})
OPTIONS = ("--restores", "3", "--candidates", "1", "--budget", "2", "--no-live")
PATIENCE = 150.0
"""Seconds beyond what the program needs by itself, many times over, as the machine may be busy."""
LIMITED = 20.0
"""Seconds after which a program that does not end by itself is ended, to learn its output."""
AFTERWARDS = 10.0
"""Seconds that processes which a program leaves have to end by themselves."""


def build(name: str, folder: Path) -> Path:
    """The program, in a folder of its own; its processes can be told by where its file lies."""
    source = SOURCES.get(name)
    flags = ["-O2", "-g", "-pthread", f"-I{HERE}", *TABLE.get(name, {}).get("flags", [])]
    frame = [*flags, "-DINSIDE"] if source and "void inside(" in source.read_text() else flags
    subprocess.run(["gcc", *frame, "-c", HERE / "frame.c", "-o", folder / "frame.o"], check=True)
    command = ["g++", "-std=c++20"] if source and source.suffix == ".cpp" else ["gcc"]
    inputs = [folder / "frame.o", *([source] if source else [])]
    subprocess.run([*command, *flags, "-o", folder / "hostile", *inputs, "-lm"], check=True)
    return folder / "hostile"


def processes(folder: Path) -> list[int]:
    """Processes whose program lies, or lay, in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "exe").startswith(f"{folder}/"):
                found.append(int(entry.name))
    return found


def end_all(folder: Path) -> None:
    for one in processes(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def run(command: list[str], folder: Path, name: str, seconds: float) -> tuple[int, bytes, bytes, int]:
    """Status, output, errors and process id of a command, through files: a child of it that lives on may hold them open."""
    given = folder / "input"
    given.write_text(TABLE.get(name, {}).get("input", ""))
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with given.open("rb") as stdin, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdin=stdin, stdout=out, stderr=err, env=environment)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    return status, (folder / "out").read_bytes(), (folder / "err").read_bytes(), process.pid


def alone(program: Path, folder: Path, name: str) -> tuple[int, bytes, int]:
    """Status and output of the program without the tool, on a copy of its own, and how many processes it leaves.

    What a daemon prints after the program has ended is its output too."""
    folder.mkdir()
    copy = shutil.copy(program, folder / "hostile")
    try:
        status, _, _, _ = run([str(copy), *TABLE.get(name, {}).get("arguments", [])], folder, name, LIMITED)
        deadline = time.monotonic() + AFTERWARDS
        while processes(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        out, behind = (folder / "out").read_bytes(), len(processes(folder))
    finally:
        end_all(folder)
    return status, out, behind


def left(folder: Path, pid: int, spared: int) -> list[object]:
    """What is there after the tool has ended; the kernel may need a moment for processes. As many as one run leaves by
    itself are the program's own: those of its first run live on."""
    deadline = time.monotonic() + 10
    while len(processes(folder)) > spared and time.monotonic() < deadline:
        time.sleep(0.05)
    shared = [path.name for path in Path("/dev/shm").glob("la*") if str(pid) in path.name.split("-")]
    return [*processes(folder)[spared:], *(path.name for path in (folder / "tmp").iterdir()), *shared]


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
    program = build(name, tmp_path)
    began, used = time.monotonic(), children_seconds()
    status, out, behind = alone(program, tmp_path / "alone", name)
    middle, used_by_then = time.monotonic(), children_seconds()
    folder = tmp_path / "traced"
    folder.mkdir()
    shutil.copy(program, folder / "hostile")
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", *OPTIONS, *row.get("options", []), "--hotspot", "work"]
    command += ["-o", "run", "--json", "report.json", "--", "./hostile", *row.get("arguments", [])]
    try:
        code, said, err, pid = run(command, folder, name, PATIENCE)
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
