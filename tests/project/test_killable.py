"""Work in a process that can be killed, and tests of native code that are run in one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.killable import EndedError, FailedError, in_child
from tests.support.paths import ROOT

NEVER_ENDS = """
import ctypes

import pytest


@pytest.mark.timeout(3)
def test_it_never_ends(tmp_path):
    libc = ctypes.CDLL(None)
    libc.pthread_mutex_lock(mutex := ctypes.create_string_buffer(64))
    libc.pthread_mutex_lock(mutex)


def test_it_crashes():
    ctypes.string_at(8)


def test_it_differs():
    assert ctypes.sizeof(ctypes.c_int) == 5


def test_it_is_as_it_should_be(tmp_path):
    assert not list(tmp_path.iterdir())
"""


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_an_answer_and_an_error_come_back() -> None:
    assert in_child(lambda: ["x" * 200_000, os.getpid()])[0] == "x" * 200_000
    with pytest.raises(FailedError, match="ZeroDivisionError"):
        in_child(lambda: 1 // 0)
    with pytest.raises(KeyError, match="7"):
        in_child(lambda: dict[int, int]()[7], passed_on=(KeyError,))


def test_what_crashes_or_does_not_end_is_ended() -> None:
    before = children()
    with pytest.raises(EndedError, match="SIGKILL"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(EndedError, match="did not end"):
        in_child(lambda: signal.pause(), 0.2)
    assert children() == before


@pytest.mark.slow
def test_native_code_that_never_ends_fails_its_test_only(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "mockup" / "conftest.py").read_text())
    (tmp_path / "test_native.py").write_text(NEVER_ENDS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    done = subprocess.run([*command, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "Timeout" in done.stdout
    assert "SIGSEGV" in done.stdout
    assert "c_int) == 5" in done.stdout
