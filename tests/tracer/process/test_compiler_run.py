"""Compilers that are stopped leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from layout_advise.tracer.process.compiler_run import run_compiler

LINKS = """#!/bin/sh
# as gcc does it: another program works in the temporary folder and outlives its parent
sh -c 'touch "$TMPDIR/begun"; echo $$ > linker; while :; do touch "$TMPDIR/$$.o"; sleep 0.01; done' &
wait
"""


def slow_compiler(folder: Path) -> Path:
    script = folder / "slow-cc"
    script.write_text(LINKS)
    script.chmod(0o755)
    return script


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check_gone(folder: Path) -> None:
    linker = int((folder / "linker").read_text())
    deadline = time.monotonic() + 5
    while is_there(linker) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_there(linker)
    assert sorted(path.name for path in folder.iterdir()) == ["linker", "slow-cc"]


def test_a_compiler_is_told_its_time_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        run_compiler([slow_compiler(tmp_path)], tmp_path, 0.5)
    check_gone(tmp_path)


QUICK = """#!/bin/sh
echo $$ > linker
sleep 0.1
"""


@pytest.mark.parametrize("script", [LINKS, QUICK], ids=["runs on", "just ends"])
def test_an_interrupted_compiler_leaves_nothing(script: str, tmp_path: Path) -> None:
    compiler = slow_compiler(tmp_path)
    compiler.write_text(script)
    text = f"""
from pathlib import Path
from layout_advise.tracer.process.compiler_run import run_compiler
try:
    run_compiler([{str(compiler)!r}], Path({str(tmp_path)!r}))
except KeyboardInterrupt:
    raise SystemExit(130)
"""
    command = ["env", "--default-signal=INT", sys.executable, "-c", text]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        deadline = time.monotonic() + 20
        while not (tmp_path / "linker").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
    assert process.returncode == 130
    check_gone(tmp_path)


def test_what_a_compiler_says(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("int f( {")
    done = run_compiler(["gcc", "-c", tmp_path / "wrong.c", "-o", tmp_path / "wrong.o"], tmp_path)
    assert done.returncode == 1
    assert "error" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.c"]
