"""Timed parts take turns, and a turn dies with its holder."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise.tracer.sampling import turns
from layout_advise.tracer.sampling.turns import VARIABLE, own_time, own_turn, set_apart

HOLDER = """
import sys
from layout_advise.tracer.sampling.turns import own_turn
with own_turn():
    print("has it", flush=True)
    sys.stdin.readline()
    with open(sys.argv[1], "a") as log:
        log.write("first\\n")
"""


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    monkeypatch.setenv(VARIABLE, str(tmp_path.name))
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "log")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "has it\n"
    return process


def test_one_waits_for_the_other(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    second = subprocess.Popen(
        [sys.executable, "-c", HOLDER.replace("first", "second"), str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert second.stdin is not None
    second.stdin.write("\n")
    second.stdin.flush()
    holder.communicate("\n")
    second.communicate()
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


def test_a_turn_dies_with_its_holder_and_waiting_takes_no_time(holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    before = own_time()
    with own_turn(), own_turn():
        assert own_time() >= before


def test_what_is_set_apart_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with set_apart():
        now[0] = 130.0
        with set_apart(), own_turn():  # another one within it counts once
            now[0] = 160.0
    now[0] = 161.0
    assert own_time() == 101.0


def test_time_stands_still_already_while_a_turn_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that ends a study by its time may come then."""
    now, seen = [100.0], list[float]()
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def taken(_deadline: float) -> None:
        now[0] += 200.0
        seen.append(own_time())

    monkeypatch.setattr(turns, "_taken", taken)
    before = own_time()
    with own_turn():
        assert own_time() == before
    assert seen == [before]


def test_others_do_not_wait(holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "others")
    with own_turn():
        assert holder.poll() is None
    holder.communicate("\n")
