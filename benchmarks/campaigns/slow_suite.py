"""The slow tests in pieces: ``python benchmarks/campaigns/slow_suite.py --seconds 3000``.

They take longer than one sitting. What became of each goes into a file as it ends, a line with the commit; one that passed
at this commit is not run again, nor is one that failed unless ``--again`` asks for that; ``--counts`` names earlier commits
whose results stand as well. Exit code 1 where one run now failed. Times of hostile programs are those beyond what the
program needs by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from which_commit import RESULTS, ROOT, which_commit

KEPT = RESULTS / "slow_suite.jsonl"
FILE, SKIPPED = "SLOW_SUITE_FILE", "SLOW_SUITE_DONE"
"""Variables in which the run is told where results go, and a file with the tests that need not be run."""


@dataclass(frozen=True, slots=True)
class SlowRow:
    """``result``: passed, failed or skipped; ``why`` is the last line of a failure or the reason of a skip."""

    test: str
    commit: str
    result: str
    why: str
    seconds: float


def read(path: Path) -> list[SlowRow]:
    """The rows so far."""
    return [SlowRow(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is done."""
    done = set(Path(os.environ[SKIPPED]).read_text().splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keeps what became of a test, where it is told: in the process that gathers the results."""
    if "PYTEST_XDIST_WORKER" in os.environ or not (report.when == "call" or report.outcome != "passed"):
        return
    lines = [line for line in str(report.longrepr or "").splitlines() if line.startswith("E  ")]
    why = lines[0].removeprefix("E").strip() if lines else ""
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        why = str(report.longrepr[2])
    own = dict(report.user_properties).get("seconds", report.duration)
    row = SlowRow(report.nodeid, which_commit(), report.outcome, why[:300], round(float(str(own)), 1))
    with Path(os.environ[FILE]).open("a") as file:
        file.write(json.dumps(asdict(row)) + "\n")


@contextlib.contextmanager
def running(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command with a process group of its own, all of which is ended."""
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main(words: Sequence[str] | None = None) -> int:
    """Run what is missing, and print the counts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=None, help="stop after so long")
    options.add_argument("--again", action="store_true", help="those that failed at this commit once more")
    options.add_argument("--counts", nargs="+", default=[], metavar="COMMIT", help="results of these commits stand too")
    options.add_argument("--at-once", type=int, default=2, help="so many tests at a time (1: times are of one alone)")
    options.add_argument("--results", type=Path, default=KEPT)
    options.add_argument("where", nargs="*", default=["tests"], help="files or folders of tests (default: all)")
    chosen = options.parse_args(words)
    kept, commit = chosen.results.resolve(), which_commit()
    standing = {commit, *chosen.counts}
    before = [row for row in read(kept) if row.commit in standing and not (chosen.again and row.result == "failed")]
    done = kept.with_suffix(".done")
    done.write_text("".join(f"{row.test}\n" for row in before))
    paths = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, FILE: str(kept), SKIPPED: str(done), "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(chosen.at_once), "--dist", "worksteal"]
    command += ["-m", "slow", "-p", "slow_suite"]
    try:
        with running([*command, *chosen.where], environment) as process, contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chosen.seconds)
    finally:
        done.unlink()
    rows = {row.test: row for row in read(kept) if row.commit in standing}
    told(list(rows.values()))
    return int(any(rows[test].result == "failed" for test in rows.keys() - {row.test for row in before}))


def told(rows: Sequence[SlowRow]) -> None:
    """The counts, and what did not pass."""
    counts = Counter(row.result for row in rows)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    for row in rows:
        if row.result == "failed":
            print(f"  {row.test} {row.why}")


if __name__ == "__main__":
    sys.exit(main())
