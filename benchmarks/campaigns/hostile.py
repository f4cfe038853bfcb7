"""The hostile programs in pieces: ``python benchmarks/campaigns/hostile.py --seconds 600``.

Each program of ``tests/hostile`` is a test, which runs by itself here. What became of it goes into a file, a line with the
commit; a program that was tried at this commit is not tried again, unless it failed and ``--again`` asks for that. Programs
that no commit was tried on come first. Exit code 1 where one of those run now failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from which_commit import RESULTS, ROOT, which_commit

KEPT = RESULTS / "hostile.jsonl"
TEST = "tests/hostile/test_hostile.py::test_ends_well"


@dataclass(frozen=True, slots=True)
class HostileRow:
    """``result``: passed, failed or skipped; ``why`` is the last line of a failure or the reason of a skip."""

    program: str
    commit: str
    result: str
    why: str
    seconds: float


def programs() -> list[str]:
    """The names of all."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", TEST.partition("::")[0]]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line.partition("[")[2].rstrip("]") for line in said.splitlines() if line.startswith(f"{TEST}[")]


def tried(program: str, commit: str) -> HostileRow:
    """One program's test."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"{TEST}[{program}]"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    told = [line for line in lines if line.startswith(("E  ", "SKIPPED"))]
    result = "failed" if done.returncode else "skipped" if lines and "1 skipped" in lines[-1] else "passed"
    why = told[0].removeprefix("E").strip() if told and result != "passed" else ""
    return HostileRow(program, commit, result, why[:300], round(time.monotonic() - begun, 1))


def main(words: Sequence[str] | None = None) -> int:
    """Run what is missing, and print the counts of each commit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no further program after so long")
    options.add_argument("programs", nargs="*", help="only these")
    options.add_argument("--again", action="store_true", help="those that failed at this commit once more")
    options.add_argument("--results", type=Path, default=KEPT)
    chosen = options.parse_args(words)
    kept = chosen.results
    rows = [HostileRow(**json.loads(line)) for line in kept.read_text().splitlines()] if kept.exists() else []
    commit, begun, failed = which_commit(), time.monotonic(), 0
    here = {row.program for row in rows if row.commit == commit and not (chosen.again and row.result == "failed")}
    ever = {row.program for row in rows}
    every = programs()
    names = [name for name in every if not chosen.programs or name in chosen.programs]
    for name in sorted((name for name in names if name not in here), key=lambda name: name in ever):
        if time.monotonic() - begun > chosen.seconds:
            break
        rows.append(tried(name, commit))
        with kept.open("a") as file:
            file.write(json.dumps(asdict(rows[-1])) + "\n")
        failed += rows[-1].result == "failed"
        print(f"{name}: {rows[-1].result} {rows[-1].why}", flush=True)
    told(rows, len(every))
    return int(failed > 0)


def told(rows: Sequence[HostileRow], programs: int) -> None:
    """The counts by commit, and of the last try of each program."""
    for commit in dict.fromkeys(row.commit for row in rows):
        counts = Counter(row.result for row in {row.program: row for row in rows if row.commit == commit}.values())
        print(f"at {commit}: " + ", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    last = {row.program: row for row in rows}
    counts = Counter(row.result for row in last.values())
    print(f"each program's last try, of {programs}: " + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    for row in last.values():
        if row.result != "passed":
            print(f"  {row.program} ({row.commit}): {row.result} {row.why}")


if __name__ == "__main__":
    sys.exit(main())
