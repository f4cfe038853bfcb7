"""The command line as a process: colours on a terminal, closed pipes, full disks, exit codes, interrupts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tty
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.commands import common, show
from layout_advise.tracer.trace.trace import Trace
from tests.support.command import run_command
from tests.support.run_folders import run_dir, saved


def on_a_terminal(words: list[str], **environment: str) -> str:
    """What the command writes when stdout is a terminal."""
    leader, follower = pty.openpty()
    tty.setraw(follower)
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    command = [sys.executable, "-m", "layout_advise", *words]
    process = subprocess.Popen(
        command, stdout=follower, stderr=subprocess.DEVNULL, env={**kept, "TERM": "xterm", **environment}
    )
    os.close(follower)
    out = b""
    try:
        while block := os.read(leader, 65536):
            out += block
    except OSError:  # EIO: the other end is closed
        pass
    finally:
        os.close(leader)
        process.wait(timeout=60)
    return out.decode()


def test_colours_on_a_terminal_unless_refused(tmp_path: Path) -> None:
    words = ["report", str(saved(tmp_path / "r"))]
    assert "\x1b[" in on_a_terminal(words)
    assert "\x1b[" not in on_a_terminal(words, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal([*words, "--color", "never"])


def test_colours_asked_for_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert common.wants_colour("always")
    assert not common.wants_colour("auto")
    assert not common.wants_colour("never")


@pytest.mark.parametrize(
    ("words", "codes"), [(["show", "RUN", "-n", "0"], {141}), (["layout", "--help"], {0, 141})], ids=["show", "help"]
)
def test_a_closed_pipe_is_no_traceback(words: list[str], codes: set[int], tmp_path: Path) -> None:
    run_dir(tmp_path)
    read, write = os.pipe()
    os.close(read)  # as `| head` does, only surely before the first byte is written
    command = [sys.executable, "-m", "layout_advise", *(str(tmp_path) if w == "RUN" else w for w in words)]
    process = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert process.returncode in codes
    assert process.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["layout", "A_4"], ["layout", "--help"]], ids=" ".join)
def test_a_full_disk_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "layout_advise", *words]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr.startswith("layout-advise: ")
    assert "No space left on device" in process.stderr
    assert process.stderr.count("\n") == 1


def test_exit_codes_reach_the_shell() -> None:
    assert run_command("layout", "A_4").returncode == 0
    assert run_command("layout", "A_").returncode == 1
    assert run_command("layout").returncode == 2


def test_an_interrupt_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(_path: Path) -> Trace:
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "read_what_is_there", stop)
    assert main(["show", str(run_dir(tmp_path))]) == 130
    assert capsys.readouterr().err.startswith("layout-advise: interrupted")
