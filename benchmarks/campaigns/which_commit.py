"""The commit that a result is of."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TOOL = ("layout_advise", "layoutalgebra", "mockup", "reports", "tracer")


def which_commit() -> str:
    """The last commit that changed the tool; with ``+`` where it is changed since, ``unknown`` outside of git."""

    def git(*words: str) -> str:
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
        command = ["git", "-C", str(ROOT), *words, "--", *TOOL]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stdout.strip()

    return (git("log", "-1", "--format=%h") or "unknown") + "+" * bool(git("status", "--porcelain"))
