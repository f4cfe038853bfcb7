"""The command line: every command's help, its usage errors, and ``doctor``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from layout_advise import __version__
from layout_advise.cli import COMMANDS, main
from layout_advise.commands import doctor
from layout_advise.commands.doctoring.diagnosis import Diagnosis
from layout_advise.progress import Interrupted, Progress
from tests.support.command import run_command


class Dropped:
    """A signal comes while this is destructed: Python drops the exception."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            time.sleep(0)


def test_a_signal_whose_exception_is_lost_ends_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C during an import of many modules was ignored: it fell into a callback of the import system."""
    lost, steps = list[object](), list[int]()

    def run(_: object) -> int:
        Dropped()
        with Progress(quiet=True) as progress:
            for number in range(3):
                steps.append(number)
                progress.step("on")
        return 0

    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    monkeypatch.setattr(doctor, "run", run)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    assert main(["doctor"]) == 130
    assert (len(lost), steps) == (1, [0])
    assert "interrupted: everything it started is stopped" in capsys.readouterr().err
    assert Interrupted.number is None
    signal.signal(signal.SIGINT, before)


def test_a_signal_that_came_while_a_class_was_made_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python before 3.12 makes a RuntimeError of whatever comes out of ``__set_name__``: a traceback, and exit code 1."""

    def run(_: object) -> int:
        try:
            raise KeyboardInterrupt(signal.SIGTERM)
        except KeyboardInterrupt as stop:
            raise RuntimeError("Error calling __set_name__ on 'Field' instance 'places' in 'Built'") from stop

    monkeypatch.setattr(doctor, "run", run)
    assert main(["doctor"]) == 128 + signal.SIGTERM
    assert "interrupted: everything it started is stopped" in capsys.readouterr().err


def test_other_errors_are_not_taken_for_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: object) -> int:
        raise RuntimeError("a fault") from ValueError("of ours")

    monkeypatch.setattr(doctor, "run", run)
    with pytest.raises(RuntimeError, match="a fault"):
        main(["doctor"])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"\n  layout-advise {name}" in out
    assert "==SUPPRESS==" not in out


def test_the_whole_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(f"    {name} " in out for name in COMMANDS)


@pytest.mark.parametrize("words", [["-V"], ["layout", "--help"], ["report", "--help"]], ids=" ".join)
def test_only_the_command_that_is_given_is_brought_in(words: list[str]) -> None:
    """All of them took longer to begin than most of them take."""
    code = f"import sys, layout_advise.cli as cli\ntry: cli.main({words})\nexcept SystemExit: print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = {name for name, module in COMMANDS.items() if module in done.stdout.split()}
    assert found == set(COMMANDS) & set(words)


def test_help_keeps_the_brackets_of_terms(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["layout", "--help"])
    assert "'A[256] * S[0,1;4]'" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["-V"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"layout-advise {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["no-such-command"],
        ["trace"],
        ["trace", "--call", "0", "--", "./app"],
        ["trace", "--until", "lunch", "--", "./app"],
        ["report"],
        ["report", "a", "b"],
        ["compare", "a"],
        ["layout"],
        ["layout", "A_4", "--ascii", "--latex"],
        ["layout", "A_4", "--rule", "4"],
        ["layout", "A_4", "--rule", "5@0"],
        ["layout", "A_4", "--rule", "4@0:2"],
        ["layout", "A_4", "--rule", "99@0"],
        ["show", "x", "-n", "many"],
        ["doctor", "--no-such-option"],
        ["report", "/no/such/folder"],
        ["show", "/no/such/folder"],
        ["compare", "/no/such/a", "/no/such/b"],
    ],
    ids=" ".join,
)
def test_usage_errors_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert "layout-advise" in said.err
    assert "Traceback" not in said.err


def findings(*found: Diagnosis) -> tuple[object, ...]:
    return tuple((lambda f=f: f) for f in found)


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        (
            (Diagnosis("gcc", True, True, "12 [ok]"), Diagnosis("perf", False, False, "gone", "get it")),
            0,
            ["12 [ok]", "absent"],
        ),
        ((Diagnosis("gcc", False, True, "not found", "apt-get install gcc"),), 4, ["missing gcc", "apt-get install gcc"]),
    ],
)
def test_doctor_exit_codes(
    found: Sequence[Diagnosis],
    code: int,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "CHECKS", findings(*found))
    assert main(["doctor"]) == code
    said = capsys.readouterr()
    assert all(word in said.out for word in words)
    assert ("missing: gcc" in said.err) == (code == 4)
    assert main(["doctor", "--json"]) == code
    assert [f["ok"] for f in json.loads(capsys.readouterr().out)] == [f.ok for f in found]


def test_doctor_looks_at_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    seen = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert {"platform", "fixed addresses", "gcc", "as", "valgrind", "pin", "criu", "/dev/shm", "vectors"} <= seen.keys()
    assert code == (4 if any(f["needed"] and not f["ok"] for f in seen.values()) else 0)


def test_doctor_needs_no_other_programs_to_look(tmp_path: Path) -> None:
    """It started `sleep` to see whether a child may be looked into."""
    done = run_command("doctor", PATH=str(tmp_path))
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("layout-advise:")]
    assert line.startswith("layout-advise: missing: gcc")
    assert "tracing" in done.stdout
