"""Debian's small tools under ``layout-advise trace --until explore``: ``python benchmarks/campaigns/debian_tools.py``.

Each command of ``debian_tools.txt`` that this machine has is run twice by itself and once under the tool. As required: no
traceback, an exit code of the documented ones, at most one line of an error, the output that the command has by itself
(where its two runs agree), its exit status in the report (where there is one), and nothing left in the temporary folder.
Results go
into a file, a line each; commands that stand there are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from which_commit import RESULTS, which_commit

COMMANDS = Path(__file__).with_suffix(".txt")
KEPT = RESULTS / "debian_tools.jsonl"
LIMIT = 60
"""Seconds for a command by itself; the tool has ten times as many."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """What became of one command: ``fault`` is empty where all was as required, ``end`` how the tool ended."""

    command: str
    package: str
    code: int
    end: str
    fault: str
    commit: str = ""


def inputs(folder: Path) -> None:
    """The files that the commands read."""
    r = random.Random(28)
    words = ["".join(r.choices("abcdefghij", k=r.randint(2, 9))) for _ in range(2000)]
    (folder / "words").write_text("".join(f"{word}\n" for word in sorted(words)))
    (folder / "numbers").write_text("".join(f"{n}\n" for n in range(2000)))
    (folder / "table").write_text("".join(f"{n} {n * n}\n" for n in range(200)))
    (folder / "data.bin").write_bytes(r.randbytes(1 << 16))
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    (folder / "b.c").write_text("int main(void) { return 1; }\n")


def run(command: list[str], folder: Path, seconds: float) -> tuple[int, bytes, bytes]:
    """Status, output and errors of a command in a folder of its own, whose files are new."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    (folder / "in").mkdir()
    inputs(folder / "in")
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "LC_ALL": "C.UTF-8", "PAGER": "cat"}
    try:
        done = subprocess.run(
            command,
            cwd=folder / "in",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return -1, error.stdout or b"", b"more than the time that it has"
    return done.returncode, done.stdout, done.stderr


def package_of(program: str) -> str:
    """The Debian package of a program; empty where dpkg does not know it."""
    for path in (program, os.path.realpath(program), program.removeprefix("/usr")):
        done = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.partition(":")[0]
    return ""


def tried(words: list[str], work: Path) -> ToolRow | None:
    """One command; ``None`` where this machine does not have it as a compiled program."""
    program = shutil.which(words[0])
    if program is None or Path(program).read_bytes()[:4] != b"\x7fELF":
        return None
    own = [run([program, *words[1:]], work, LIMIT) for _ in range(2)]
    tool = [sys.executable, "-m", "layout_advise", "trace", "-q", "--until", "explore", "--timeout", str(LIMIT)]
    results = work.parent / f"{work.name}.run"
    shutil.rmtree(results, ignore_errors=True)
    given = [*tool, "-f", "-o", str(results), "--json", str(work.parent / "report.json"), "--", program, *words[1:]]
    report = work.parent / "report.json"
    report.unlink(missing_ok=True)
    code, out, err = run(given, work, 10 * LIMIT)
    said = [line for line in err.decode(errors="replace").splitlines() if line.startswith("layout-advise: ")]
    fault = fault_of(own, (code, out, err), report, said)
    left = [path.name for path in (work / "tmp").iterdir()]
    end = said[0].removeprefix("layout-advise: ") if said else "report"
    shown = end.replace(str(work), "").replace(program, words[0])
    return ToolRow(shlex.join(words), package_of(program), code, shown, fault or (f"left {left[0]}" if left else ""))


def fault_of(own: list[tuple[int, bytes, bytes]], traced: tuple[int, bytes, bytes], report: Path, said: list[str]) -> str:
    """What is not as required."""
    code, out, err = traced
    if b"Traceback" in err:
        return f"traceback: {err.decode(errors='replace').strip().splitlines()[-1]}"
    if code not in (0, 1, 2, 4) or len(said) > 1 or (code and not said):
        return f"exit code {code}: {err[-200:].decode(errors='replace')}"
    if own[0][:2] == own[1][:2]:
        if not out.startswith(own[0][1]) and not (code and out == b""):
            return "other output"
        if code == 0 and report.exists():
            program = json.loads(report.read_text())["program"]
            if program["exit_status"] != own[0][0] and program["signal"] is None:
                return f"exit status {program['exit_status']}, by itself {own[0][0]}"
    return ""


def main() -> int:
    """Run what is missing, and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--results", type=Path, default=KEPT)
    options.add_argument("--only", default="", help="commands that contain this")
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no further command after so long")
    chosen = options.parse_args()
    lines = [line for line in COMMANDS.read_text().splitlines() if line and not line.startswith("#")]
    known = (
        [ToolRow(**json.loads(line)) for line in chosen.results.read_text().splitlines()] if chosen.results.exists() else []
    )
    missing, commit, begun = [], which_commit(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="debian-tools-") as work, chosen.results.open("a") as kept:
        for line in lines:
            words = line.split()
            if chosen.only not in line or any(row.command == shlex.join(words) for row in known):
                continue
            if time.monotonic() - begun > chosen.seconds:
                break
            row = tried(words, Path(work) / "work")
            if row is None:
                missing.append(words[0])
                continue
            row = replace(row, commit=commit)
            known.append(row)
            kept.write(json.dumps(asdict(row)) + "\n")
            kept.flush()
            print(f"{row.command}: {row.fault or row.end}", flush=True)
    faults = [row for row in known if row.fault]
    print(f"{len(known)} commands of {len({row.package for row in known})} packages, {len(faults)} not as required")
    print(f"not here, or no compiled programs: {' '.join(missing)}")
    for end, count in Counter("report" if row.end == "report" else f"exit {row.code}" for row in known).most_common():
        print(f"{count:>4}  {end}")
    for row in faults:
        print(f"      {row.command}: {row.fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
