"""The folders that runs share with their programs: what a killed run leaves is cleared by the next one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from layout_advise.tracer.offspring.processes import start_time
from layout_advise.tracer.process import channel
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
