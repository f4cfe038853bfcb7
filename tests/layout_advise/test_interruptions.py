"""Runs cut short at random moments, by the script of the benchmarks; and runs beside each other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VICTIM = ROOT / "tests" / "road" / "victim.c"


def cut_short(folder: Path, moments: int) -> subprocess.CompletedProcess[str]:
    script = ROOT / "benchmarks" / "campaigns" / "interruptions.py"
    command = [sys.executable, str(script), "--moments", str(moments), "--seed", "28"]
    command += ["--results", str(folder / "moments.jsonl")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_moments_that_were_tried_are_counted_and_not_tried_again(tmp_path: Path) -> None:
    rows = [
        {"seed": 28, "number": k, "kind": "tool SIGINT", "at": 0.5, "complete": False, "came": k < 2,
         "faults": ["one"] * (k == 1),
         "commit": "abc" if k else "old"}
        for k in range(3)
    ]  # fmt: skip
    (tmp_path / "moments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = cut_short(tmp_path, 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "| tool SIGINT | 2 |",
        "| tool SIGINT, after the end | 1 |",
        "at old: 1 moments, 0 faults",
        "at abc: 2 moments, 1 faults",
        "3 moments, 1 faults",
    ]


@pytest.mark.slow
def test_nothing_is_left_by_runs_that_are_cut_short(tmp_path: Path) -> None:
    """Two moments of each kind of signal; other ones each time would not be repeatable."""
    done = cut_short(tmp_path, 10)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 moments, 0 faults" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_tool_is_brought_in(number: signal.Signals, tmp_path: Path) -> None:
    """A library that is imported by then sends it."""
    shim = f"import os, time\nos.kill(os.getpid(), {number.value})\ntime.sleep(60)\n"
    (tmp_path / "rich_argparse.py").write_text(shim)
    command = ["env", "--default-signal=INT,TERM", sys.executable, "-m", "layout_advise", "trace", "--", "true"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + number, "layout-advise: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_when_all_is_done_changes_nothing(number: signal.Signals) -> None:
    """The interpreter ends: what is called then sends it, and so does one that comes even later."""
    lines = [
        "import atexit, os, sys, threading",
        "from layout_advise.__main__ import main",
        f"atexit.register(os.kill, os.getpid(), {number.value})",
        "class Late:",
        f"    def __del__(self, kill=os.kill, me=os.getpid()): kill(me, {number.value})",
        "kept = Late()",
        "sys.argv = ['layout-advise', '--version']",
        "sys.exit(main())",
    ]
    command = ["env", "--default-signal=INT,TERM,HUP", sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("layout-advise ")


def test_an_interruption_while_a_class_is_made_has_its_exit_code(tmp_path: Path) -> None:
    """CPython notes one in code that is text, caught or not, and ended the process by SIGINT instead."""
    lines = [
        "import sys, layout_advise.cli",
        "def interrupted():",
        "    try: exec('raise KeyboardInterrupt')",
        "    except KeyboardInterrupt: return 143",
        "layout_advise.cli.main = interrupted",
        "from layout_advise.__main__ import main",
        "sys.exit(main())",
    ]
    (tmp_path / "interrupted_in_text.py").write_text("\n".join(lines))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-m", "interrupted_in_text"]
    assert subprocess.run(command, env=environment, check=False, capture_output=True).returncode == 143


@pytest.mark.slow
def test_four_runs_beside_each_other(tmp_path: Path) -> None:
    """Two of them on one run directory: one of these is refused. Their timed parts take turns."""
    subprocess.run(["gcc", "-g", "-O2", "-o", tmp_path / "victim", VICTIM], check=True)
    command = [
        sys.executable,
        "-m",
        "layout_advise",
        "trace",
        "-q",
        "--restores",
        "3",
        "--candidates",
        "1",
        "--hotspot",
        "work",
    ]
    environment = {**os.environ, "LAYOUT_ADVISE_TURNS": str(tmp_path)}
    runs = [
        subprocess.Popen(
            [*command, "-o", name, "--", "./victim", "plain", "60000", "300"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "c", "c")
    ]
    ended = [(run.communicate(), run.returncode) for run in runs]
    assert sorted(code for _, code in ended) == [0, 0, 0, 1], ended
    (refused,) = (err for (_, err), code in ended if code)
    assert "in use by another run" in refused
    for name in ("a", "b", "c"):
        (hotspot,) = json.loads((tmp_path / name / "report.json").read_text())["hotspots"]
        assert hotspot["identity"]["evidence"] == "verified"
