"""The command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from layout_advise.reports.model.contract import Report, read_report


def run_command(*words: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """``layout-advise`` with these words; how it ends is for the caller to look at."""
    command = [sys.executable, "-m", "layout_advise", *map(str, words)]
    variables = {**os.environ, "GITHUB_ACTIONS": "", **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=variables, check=False)


def advise(program: Sequence[str | Path], *options: str, folder: Path, **environment: str) -> Report:
    """The report of ``trace`` on a program with its arguments, which must succeed, in the directory ``folder/run``. Unless
    ``options`` say so, no layout is tried in the running program: whether one would be hangs on times."""
    live = () if "--live" in options or "--no-live" in options else ("--no-live",)
    done = run_command("trace", "-q", *live, *options, "-o", folder / "run", "--", *program, cwd=folder, **environment)
    assert done.returncode == 0, done.stderr
    return read_report(folder / "run")
