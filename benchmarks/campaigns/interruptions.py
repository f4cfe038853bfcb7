"""Runs that are cut short at random moments: ``python benchmarks/campaigns/interruptions.py --moments 300``.

``trace`` of a small program gets SIGINT, SIGTERM or SIGKILL, or one of the program's processes SIGKILL or SIGTERM, at a
moment drawn evenly over the length of a whole run. Afterwards no process, mount, entry of /dev/shm or temporary file may be
left (after SIGKILL of the tool: none after the next run), a complete run directory that was to be replaced is whole, and one
that is not complete says so and is taken up by the next run. Exit code 1 where one of these does not hold; each is told.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from which_commit import RESULTS, ROOT, which_commit

SOURCE = ROOT / "tests" / "road" / "victim.c"
KEPT = RESULTS / "interruptions.jsonl"
KINDS = ("tool SIGINT", "tool SIGTERM", "tool SIGKILL", "program SIGKILL", "program SIGTERM")
OPTIONS = ("-v", "--restores", "3", "--candidates", "1", "--budget", "1", "--hotspot", "work")
PROGRAM = ("./victim", "plain", "60000", "300")
PATIENCE = 10.0
"""Seconds that processes have to be gone."""
LONGEST = 300.0
"""Seconds after which a run is taken to hang."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One run that is cut short: ``kind`` of signal, after the part ``at`` (0..1) of a whole run's time. ``complete``: the
    run directory holds a complete run, which this one is to replace."""

    number: int
    kind: str
    at: float
    complete: bool


def moments(count: int, seed: int) -> list[Moment]:
    """Random moments, the kinds in turn."""
    drawn = random.Random(seed)
    return [Moment(k, KINDS[k % len(KINDS)], drawn.random(), drawn.random() < 0.5) for k in range(count)]


def start(folder: Path, *words: str, force: bool = True) -> subprocess.Popen[bytes]:
    """``trace`` in ``folder``, with a temporary folder of its own."""
    command = ["env", "--default-signal=INT,TERM", sys.executable, "-m", "layout_advise", "trace", *OPTIONS, *words]
    command += ["-f"] * force
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [*command, "-o", "run", "--", *PROGRAM],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def processes(folder: Path) -> list[int]:
    """Those whose program lies in ``folder``, or that work in it, but for the tool itself."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (os.readlink(entry / "exe").startswith(f"{folder}/")):
                found.append(int(entry.name))
    return found


def mounts() -> int:
    """How many file systems are mounted."""
    return len(Path("/proc/self/mounts").read_text().splitlines())


def of_tool(pid: int) -> list[str]:
    """What process ``pid`` has in /dev/shm."""
    return [path.name for path in Path("/dev/shm").glob("layout-advise-*") if str(pid) in path.name.split("-")]


def contents(run: Path) -> dict[str, bytes]:
    """The files of a run directory."""
    return {str(p.relative_to(run)): p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file() and p.name != ".lock"}


def remains(folder: Path, pid: int) -> list[str]:
    """Everything that a run has left."""
    deadline = time.monotonic() + PATIENCE
    while processes(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [f"process {one}" for one in processes(folder)]
    left += [f"/dev/shm/{name}" for name in of_tool(pid)]
    return left + [f"temporary {path.name}" for path in (folder / "tmp").iterdir()]


def strike(moment: Moment, tool: subprocess.Popen[bytes], folder: Path) -> bool:
    """Send the signal; False where there is nobody to send it to."""
    whom, number = moment.kind.split()
    found = [tool.pid] if whom == "tool" else processes(folder)
    if not found or tool.poll() is not None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(random.Random(moment.number).choice(found), signal.Signals[number])
    return True


def faults(moment: Moment, folder: Path, whole: float, complete: Path) -> tuple[bool, list[str]]:
    """Tells whether the signal came before the end, and what does not hold afterwards."""
    (folder / "tmp").mkdir(parents=True)
    shutil.copy(complete.parent / "victim", folder / "victim")
    if moment.complete:
        shutil.copytree(complete, folder / "run", symlinks=True)
    before, found = mounts(), []
    tool = start(folder)
    time.sleep(moment.at * whole)
    came = strike(moment, tool, folder)
    try:
        code = tool.wait(LONGEST)
    except subprocess.TimeoutExpired:
        tool.kill()
        code = tool.wait()
        found.append("it hung")
    said = (folder / "said").read_text(errors="replace")
    if "Traceback" in said:
        found.append("traceback: " + said.strip().splitlines()[-1])
    if came and moment.kind in ("tool SIGINT", "tool SIGTERM"):
        expected = 128 + signal.Signals[moment.kind.split()[1]]
        if code not in (0, expected):
            found.append(f"exit code {code} and not {expected}")
    if moment.kind != "tool SIGKILL":
        found += remains(folder, tool.pid)
    found += run_directory(moment, folder, code, contents(complete))
    if code != 0:
        found += taken_up(moment, folder, tool.pid, complete)
    if mounts() > before:
        found.append("a mount is left")
    return came, found


def is_complete(run: Path) -> bool:
    """What its marker says."""
    with contextlib.suppress(OSError, ValueError):
        return bool(json.loads((run / "run.json").read_bytes())["complete"])
    return False


def is_whole(run: Path, old: dict[str, bytes]) -> bool:
    """Returns whether the old run is there as it was, or a new one that ended before the signal came."""
    return contents(run) == old or (is_complete(run) and contents(run).keys() == old.keys())


def run_directory(moment: Moment, folder: Path, code: int, old: dict[str, bytes]) -> list[str]:
    """What does not hold of the run directory."""
    run = folder / "run"
    if code == 0:
        return [] if is_complete(run) else ["the run ended well and its directory is not complete"]
    if not moment.complete or moment.kind == "tool SIGKILL" or is_whole(run, old):
        return []
    return ["the complete run that was there is not whole"]


def taken_up(moment: Moment, folder: Path, pid: int, complete: Path) -> list[str]:
    """The next run: it takes the directory up (or refuses a complete one), and clears what a killed one left."""
    run, found = folder / "run", []
    if moment.complete:
        again = start(folder, force=False)
        if again.wait(LONGEST) != 1 or not is_whole(run, contents(complete)):
            found.append("the complete run that was there is not whole after the next")
    elif not is_complete(run) and run.exists():
        words = [sys.executable, "-m", "layout_advise", "report", "run"]
        report = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if report.returncode == 0 or len(report.stderr.splitlines()) != 1:
            found.append(f"an incomplete run is reported: {report.stderr[-200:]}")
    following = start(folder, "--until", "sample")
    if following.wait(LONGEST) != 0:
        found.append("the next run failed: " + (folder / "said").read_text(errors="replace")[-200:])
    return found + remains(folder, pid)


def main(words: Sequence[str] | None = None) -> int:
    """The table on stdout; 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further moment after so long")
    parser.add_argument("--results", type=Path, default=KEPT, help="the file of moments, which is added to")
    given = parser.parse_args(words)
    known = rows_of(given.results)
    done = {row["number"] for row in known if row["seed"] == given.seed}
    left = [moment for moment in moments(given.moments, given.seed) if moment.number not in done]
    begun, failed = time.monotonic(), 0
    if not left:
        told(known)
        return 0
    with tempfile.TemporaryDirectory(prefix="interruptions-") as place:
        top = Path(place).resolve()
        (top / "whole" / "tmp").mkdir(parents=True)
        subprocess.run(["gcc", "-g", "-O2", "-o", top / "whole" / "victim", SOURCE], check=True)
        first = time.monotonic()
        if start(top / "whole").wait() != 0:
            print((top / "whole" / "said").read_text(), file=sys.stderr)
            return 1
        whole = time.monotonic() - first
        print(f"a whole run takes {whole:.1f} s", flush=True)
        commit = which_commit()
        for moment in left:
            if time.monotonic() - begun > given.seconds:
                break
            folder = top / str(moment.number)
            came, found = faults(moment, folder, whole, top / "whole" / "run")
            row = {"seed": given.seed, "number": moment.number, "kind": moment.kind, "at": round(moment.at, 4)}
            known.append({**row, "complete": moment.complete, "came": came, "faults": found, "commit": commit})
            with given.results.open("a") as file:
                file.write(json.dumps(known[-1]) + "\n")
            failed += len(found)
            for fault in found:
                print(f"moment {moment.number}, {moment.kind} at {moment.at:.3f}: {fault}", flush=True)
            shutil.rmtree(folder)
    told(known)
    return int(failed > 0)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The moments that were done before."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(rows: Sequence[dict[str, Any]]) -> None:
    """The table, and what was found at which commit."""
    for kind, count in sorted(Counter(row["kind"] + ("" if row["came"] else ", after the end") for row in rows).items()):
        print(f"| {kind} | {count} |")
    for commit in dict.fromkeys(row["commit"] for row in rows):
        at = [row for row in rows if row["commit"] == commit]
        print(f"at {commit}: {len(at)} moments, {sum(len(row['faults']) for row in at)} faults")
    print(f"{len(rows)} moments, {sum(len(row['faults']) for row in rows)} faults")


if __name__ == "__main__":
    sys.exit(main())
