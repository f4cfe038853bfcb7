"""The run directory: never overwritten by accident, never shared by two runs, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise import rundir
from layout_advise.errors import RunDirError
from layout_advise.rundir import LOCK, MARKER, open_run, scratch, write_atomically
from layout_advise.tracer.snapshot import dump_folder


def test_a_complete_run_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "app.layout"
    with open_run(path, force=False) as run:
        run.report.write_text("{}")
        run.mark(complete=True)
    with pytest.raises(RunDirError, match="complete run; use -f"), open_run(path, force=False):
        pass
    with open_run(path, force=True) as run:
        assert not run.report.exists()


def test_an_interrupted_run_is_taken_over(tmp_path: Path) -> None:
    with open_run(tmp_path / "x", force=False):
        pass
    with open_run(tmp_path / "x", force=False):
        pass


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    with pytest.raises(RunDirError, match="not a run directory"), open_run(tmp_path, force=True):
        pass
    assert (tmp_path / "precious").read_text() == "data"
    with pytest.raises(RunDirError, match="is a file"), open_run(tmp_path / "precious", force=True):
        pass


def test_another_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with open_run(path, force=False):
        pass
    (path / MARKER).write_text('{"format": "layout-advise.run/7", "version": "7.0", "complete": false}')
    with pytest.raises(RunDirError, match=r"another version \(7.0"), open_run(path, force=False):
        pass
    (path / MARKER).write_text("garbage")
    with pytest.raises(RunDirError, match="damaged"), open_run(path, force=False):
        pass


def test_two_runs_at_once(tmp_path: Path) -> None:
    with (
        open_run(tmp_path / "x", force=False),
        pytest.raises(RunDirError, match="in use by another run"),
        open_run(tmp_path / "x", force=True),
    ):
        pass


def test_disk_full_is_one_line_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "f"
    target.write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunDirError, match="No space left on device; free some space"):
        write_atomically(target, b"new")
    assert target.read_text() == "old"


def test_scratch_is_gone_and_that_of_killed_runs_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rundir, "scratch_parent", lambda: tmp_path)
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal, sys; from pathlib import Path; from layout_advise import rundir\n"
            "rundir.scratch_parent = lambda: Path(sys.argv[1])\n"
            "with rundir.scratch(): os.kill(os.getpid(), signal.SIGKILL)",
            str(tmp_path),
        ],
        check=False,
    )
    assert killed.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    with scratch() as mine:
        assert list(tmp_path.iterdir()) == [mine]
        assert str(os.getpid()) in mine.name
        with scratch():  # a living run's folder stays
            assert mine.exists()
    assert list(tmp_path.iterdir()) == []


def test_dumps_of_killed_runs_are_swept_without_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends before it makes a snapshot clears them, too."""
    monkeypatch.setattr(rundir, "scratch_parent", lambda: tmp_path)
    monkeypatch.setattr(dump_folder, "_TMPFS", tmp_path)
    script = (
        "import os, signal, sys; from pathlib import Path; from layout_advise.tracer.snapshot import dump_folder\n"
        "dump_folder._TMPFS = Path(sys.argv[1]); print(dump_folder.make_dump_folder(1, Path(sys.argv[1])), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    dump, living = Path(killed.stdout.strip()), dump_folder.make_dump_folder(1, tmp_path)
    assert killed.returncode == -9
    assert dump.exists()
    with scratch():
        assert not dump.exists()
        assert living.exists()


def filled(path: Path) -> dict[str, bytes]:
    """A complete run with some files."""
    with open_run(path, force=False) as run:
        run.report.write_text("{}")
        run.html.write_text("old")
        run.region("f").candidates.write_text("[]")
        run.mark(complete=True)
    return contents(path)


def contents(path: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file() and each.name != LOCK
    }


def test_a_run_that_fails_gives_the_complete_one_back(tmp_path: Path) -> None:
    path = tmp_path / "app.layout"
    old = filled(path)
    with contextlib.suppress(KeyboardInterrupt), open_run(path, force=True) as run:
        run.report.write_text("new")
        run.region("g").candidates.write_text("[1]")
        assert not run.html.exists()
        raise KeyboardInterrupt
    assert contents(path) == old
    with open_run(path, force=True) as run:
        run.mark(complete=True)
    assert set(contents(path)) == {MARKER}


@pytest.mark.parametrize("renames", range(16))
def test_a_run_killed_at_any_rename_leaves_the_complete_one_to_the_next(renames: int, tmp_path: Path) -> None:
    """Killed while the old run is set aside, while the new one is written, or while the old one is given back."""
    path = tmp_path / "app.layout"
    old = filled(path)
    code = f"""
import os, sys
from pathlib import Path
from layout_advise import rundir
real, left = os.replace, [{renames}]
def replace(one, other):
    if not left[0]:
        os._exit(9)
    left[0] -= 1
    real(one, other)
os.replace = replace
with rundir.open_run(Path({str(path)!r}), True) as run:
    run.report.write_text("new")
    (run.path / ".report.html.123").write_text("ha")
    raise KeyboardInterrupt
"""
    subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL)
    with pytest.raises(RunDirError, match="complete run; use -f"), open_run(path, force=False):
        pass
    assert contents(path) == old


IN_A_NAMESPACE = """
import subprocess, sys
from layout_advise.errors import RunDirError
from layout_advise.rundir import scratch_parent
subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=200m", "none", "/dev/shm"], check=True)
print(scratch_parent())
subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=200m", "none", sys.argv[1]], check=True)
try:
    scratch_parent()
except RunDirError as error:
    print(error.line())
"""


def test_mock_ups_are_loaded_from_where_code_runs(tmp_path: Path) -> None:
    """Docker and podman mount /dev/shm noexec."""
    command = ["unshare", "--mount", sys.executable, "-c", IN_A_NAMESPACE, str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("file systems cannot be mounted here")
    first, second = done.stdout.splitlines()
    assert first == str(tmp_path)
    assert second.startswith(f"no folder to load mock-ups from: /dev/shm cannot be used, and {tmp_path} is mounted noexec")
