"""The folders that runs share with their programs: what a killed run leaves is cleared by the next one."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from layout_advise.tracer.offspring.processes import start_time
from layout_advise.tracer.process import channel, disk_space
from layout_advise.tracer.process.channel import RunFolder


def test_empty_folders_of_killed_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the lock was there, or while the program still wrote into the folder that another run removed."""
    monkeypatch.setattr(channel, "_tmpfs", lambda: tmp_path)
    gone = subprocess.Popen(["true"])
    gone.wait()
    own = f"{os.getpid()}-{start_time(os.getpid())}"
    left, mine, nobodys = (tmp_path / f"layout-advise-{name}" for name in (f"{gone.pid}-1-abc", f"{own}-abc", "abc"))
    for folder in (left, mine, nobodys):
        folder.mkdir()
    (left / "status").write_bytes(b"late")
    run, beside = RunFolder(), RunFolder()
    try:
        assert not left.exists()
        assert mine.exists()  # it is just being made
        assert nobodys.exists()  # not one of these folders
        assert run.path.exists()
        assert run.path.name.startswith(f"layout-advise-{own}-")
    finally:
        run.close()
        beside.close()
    assert set(tmp_path.iterdir()) == {mine, nobodys}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_folders_of_other_users_are_left_alone(tmp_path: Path) -> None:
    """They cannot be looked into; before, that ended the run."""
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    theirs = tmp_path / "layout-advise-1-1-abc"
    theirs.mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            channel._remove_stale(tmp_path)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert theirs.exists()


def test_a_full_tmpfs_is_passed_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    free = 1 << 20
    monkeypatch.setattr(disk_space, "free_bytes", lambda folder: free if folder == Path("/dev/shm") else 1 << 40)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert channel._tmpfs() == tmp_path
    assert disk_space.memory_folder(1 << 20) == Path("/dev/shm")
    assert disk_space.memory_folder((1 << 20) + 1) is None


def test_folders_of_killed_runs_are_removed_wherever_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The killed one may have found no room where this one does."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"{channel._PREFIX}999999999-1-x"
    left.mkdir()
    folder = RunFolder()
    try:
        assert folder.path.parent == Path("/dev/shm")
        assert not left.exists()
    finally:
        folder.close()
