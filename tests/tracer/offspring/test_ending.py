"""What a start leaves running is found and ended, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout_advise.tracer.offspring.ending import adopting, end_marked, end_started
from layout_advise.tracer.offspring.marks import MARK, fresh_mark, is_abandoned
from layout_advise.tracer.offspring.processes import running

CHILDREN = {
    "in the group": "sleep 1000 & echo $! > pid",
    "in a session": "setsid sleep 1000 & echo $! > pid",
    "orphaned, in a session": "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &)",
    "without the variable, in a session": "(setsid env -i sh -c 'echo $$ > pid; exec sleep 1000' &)",
    "of a child with the variable": "setsid sh -c 'env -i setsid sleep 1000 & echo $! > pid; wait' &",
}
WITHOUT_TRACE = "without the variable, in a session"


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: fresh_mark(spared=True)}, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def started(folder: Path, script: str, mark: str) -> tuple[subprocess.Popen[bytes], int]:
    """A shell that has ended, in a session of its own, and the process that it left."""
    environment = {**os.environ, MARK: mark}
    shell = subprocess.Popen(["sh", "-c", script], cwd=folder, env=environment, start_new_session=True)
    shell.wait()
    deadline = time.monotonic() + 60
    while not ((folder / "pid").exists() and (folder / "pid").read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return shell, int((folder / "pid").read_text())


def lives(pid: int) -> bool:
    return pid in {one.pid for one in running()}


@pytest.mark.parametrize("kind", [kind for kind in CHILDREN if kind != WITHOUT_TRACE])
def test_what_a_start_leaves_is_ended(kind: str, tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    mark = fresh_mark()
    shell, left = started(tmp_path, CHILDREN[kind], mark)
    assert lives(left)
    end_started(shell.pid, mark)
    assert not lives(left)
    assert stranger.poll() is None


def test_one_that_was_to_spare_its_children_ends_its_own_only(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    """All such starts had one mark: a run that was interrupted while it sampled ended the program of the run beside it."""
    mark = fresh_mark(spared=True)
    shell, left = started(tmp_path, CHILDREN["orphaned, in a session"], mark)
    end_started(shell.pid, mark)
    assert not lives(left)
    assert stranger.poll() is None


def test_what_has_changed_everything_is_adopted(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    """It is ended when the adoption ends; what was there before that began, or was orphaned before, is not."""
    with adopting() as begin:
        spared = started(tmp_path, CHILDREN[WITHOUT_TRACE], fresh_mark(spared=True))[1]
        (tmp_path / "pid").unlink()
        begin()
        mark = fresh_mark()
        shell, left = started(tmp_path, CHILDREN[WITHOUT_TRACE], mark)
        end_started(shell.pid, mark)
        assert lives(left)
    try:
        assert not lives(left)
        assert lives(spared)
        assert stranger.poll() is None
    finally:
        os.kill(spared, signal.SIGKILL)


def test_what_a_killed_process_left_is_ended_by_the_next(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    """The mark names the process that made it: as long as that lives nothing is ended."""
    code = "from layout_advise.tracer.offspring.marks import fresh_mark; print(fresh_mark(), flush=True); input()"
    owner = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    mark = owner.stdout.readline().strip()
    left = started(tmp_path, CHILDREN["orphaned, in a session"], mark)[1]
    end_marked(is_abandoned)
    assert lives(left)
    owner.kill()
    owner.communicate()
    end_marked(is_abandoned)
    assert not lives(left)
    assert stranger.poll() is None


def test_marks_are_of_one_length() -> None:
    assert len({len(mark) for mark in (fresh_mark(spared=True), fresh_mark(), fresh_mark())}) == 1
    assert not is_abandoned(fresh_mark(spared=True))
    assert not is_abandoned(fresh_mark())
