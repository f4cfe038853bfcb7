"""Snapshots by CRIU: restores are copies of the program, and nothing is left behind."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from layout_advise.errors import SnapshotError
from layout_advise.tracer.snapshot import criu_install, dump_folder
from layout_advise.tracer.snapshot.criu import Criu, CriuDump, find_criu
from layout_advise.tracer.snapshot.open_files import GrownFiles, OpenFile
from layout_advise.tracer.snapshot.pages.huge_pages import huge_ranges

MEGABYTES = 200
SOURCE = Path(__file__).parent / "criu_program.c"


@pytest.fixture(scope="module")
def criu() -> Criu:
    found = find_criu()
    if found is None:
        pytest.skip("no CRIU works on this machine (layout-advise doctor says why)")
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("criu") / "program"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", str(SOURCE), "-o", str(target)], check=True)
    return target


class Parked:
    """The program, parked in ``folder``: its pid, and where its heap is."""

    def __init__(self, program: Path, folder: Path, *arguments: str) -> None:
        self.folder = folder
        (folder / "input").write_text("first line\nsecond line\n")
        with (folder / "input").open() as source, (folder / "output").open("w") as output:
            self.process = subprocess.Popen(
                [str(program), str(folder), *arguments],
                stdin=source,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.pid = self.process.pid
        wait_for(lambda: (folder / "output").read_text().endswith("\n") or self.process.poll() is not None)
        if self.process.poll() == 3:
            pytest.skip(f"this kernel gives no {arguments[-1]} descriptor")
        assert self.process.poll() is None
        address, size = (folder / "output").read_text().split()
        self.heap, self.bytes = int(address, 16), int(size)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def go(self) -> str:
        """Let the (only) living copy run on; its result."""
        (self.folder / "go").touch()
        wait_for((self.folder / "result").exists)
        result = (self.folder / "result").read_text()
        (self.folder / "go").unlink()
        (self.folder / "result").unlink()
        return result


@pytest.fixture
def park(program: Path, tmp_path: Path) -> Iterator[Callable[..., Parked]]:
    alive: list[Parked] = []

    def start(*arguments: str) -> Parked:
        folder = tmp_path / "program folder"
        folder.mkdir(exist_ok=True)
        alive.append(Parked(program, folder, *arguments))
        return alive[-1]

    yield start
    for parked in alive:
        parked.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def memory_digest(pid: int, start: int, size: int) -> str:
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(start)
        digest = hashlib.blake2b()
        for _ in range(0, size, 1 << 20):
            digest.update(memory.read(1 << 20))
        return digest.hexdigest()


def maps(pid: int) -> list[str]:
    return [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "[v" not in line]


@pytest.mark.criu
def test_every_restore_is_the_program(criu: Criu, park: Callable[..., Parked], tmp_path: Path) -> None:
    parked = park(str(MEGABYTES))
    digest, huge, mappings = memory_digest(parked.pid, parked.heap, parked.bytes), huge_ranges(parked.pid), maps(parked.pid)
    with CriuDump(criu, parked.pid, tmp_path) as dump:
        kept = dump.folder
        assert dump.huge == huge
        assert parked.process.poll() is None
        parked.kill()
        results, pids = [], []
        for _ in range(3):
            restored = dump.restore()
            assert memory_digest(restored.pid, parked.heap, parked.bytes) == digest
            assert maps(restored.pid) == mappings
            assert restored.not_collapsed == 0
            assert huge_ranges(restored.pid) == huge
            results.append(parked.go())
            assert (parked.folder / "log").read_text() == "parked\nthe log grows\n"
            restored.close()
            pids.append(restored.pid)
        last = dump.restore()
    assert len(set(results)) == 1
    assert results[0].endswith(" second line\n")
    assert not kept.exists()
    for pid in (*pids, last.pid):
        assert not Path(f"/proc/{pid}").exists()
    assert not list(tmp_path.glob(f"{kept.name}*"))


@pytest.mark.criu
def test_original_gives_the_same_result(criu: Criu, park: Callable[..., Parked], tmp_path: Path) -> None:
    parked = park("8")
    with CriuDump(criu, parked.pid, tmp_path) as dump:
        own = parked.go()
        parked.kill()
        dump.restore()
        assert parked.go() == own


@pytest.mark.criu
def test_how_a_restored_process_ended_is_told(criu: Criu, park: Callable[..., Parked], tmp_path: Path) -> None:
    parked = park("8")
    with CriuDump(criu, parked.pid, tmp_path) as dump:
        restored = dump.restore()
        assert restored.ended() is None
        os.kill(restored.pid, signal.SIGSEGV)
        wait_for(lambda: restored.ended() is not None)
        # the signal is known from Linux 6.15 on
        assert restored.ended() in ("killed by SIGSEGV", "it ended")
        restored.close()
        assert restored.ended() == "closed"


@pytest.mark.criu
@pytest.mark.parametrize(("kind", "said"), [("io_uring", "io_uring"), ("perf", "perf_event"), ("socket", "unix")])
def test_what_cannot_be_snapshotted_is_said(
    criu: Criu, park: Callable[..., Parked], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, said: str
) -> None:
    folder = tmp_path / "program folder"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        if kind == "socket":
            folder.mkdir()
            monkeypatch.chdir(folder)  # the path of a socket has 108 bytes at most
            server.bind("socket")
            server.listen()
        parked = park("8", kind)
        with pytest.raises(
            SnapshotError, match=rf"^cannot (snapshot|restore) the program: .*{said}.*; use --snapshot fork$"
        ):
            dump_and_restore(criu, parked.pid, tmp_path)
        assert parked.process.poll() is None
    assert not [path for path in tmp_path.iterdir() if path != folder]


def dump_and_restore(criu: Criu, pid: int, folder: Path) -> None:
    with CriuDump(criu, pid, folder) as dump:
        dump.restore()


@pytest.mark.criu
def test_killed_controller_leaves_no_process_and_the_next_run_cleans_up(
    criu: Criu, park: Callable[..., Parked], tmp_path: Path
) -> None:
    parked = park("8")
    script = (
        "import sys; from pathlib import Path; from layout_advise.tracer.snapshot.criu import CriuDump, find_criu\n"
        "dump = CriuDump(find_criu(), int(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(dump.restore().pid, dump.folder, flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(parked.pid), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as controller:
        assert controller.stdout is not None
        pid, folder = controller.stdout.readline().split(maxsplit=1)
        dump = Path(folder.strip())
        assert Path(f"/proc/{pid}").exists()
        controller.send_signal(signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert dump.exists()
    dump_folder.remove_stale_dumps(tmp_path)
    assert not dump.exists()


def test_no_room_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"its dump needs \d+ MB, .*use --snapshot fork"):
        dump_folder.make_dump_folder(1 << 60, tmp_path)
    monkeypatch.setattr(dump_folder, "_TMPFS", tmp_path / "none")
    made = dump_folder.make_dump_folder(1, tmp_path)
    assert made.parent == tmp_path
    dump_folder.remove_stale_dumps(tmp_path)
    assert made.exists()  # its owner lives


def test_grown_files_are_cut_and_get_their_tail_back(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("snapshot")
    status = path.stat()
    (tmp_path / "dump").mkdir()
    grown = GrownFiles((OpenFile(path, status.st_dev, status.st_ino, status.st_size),), tmp_path / "dump")
    path.write_text("snapshot and the user's own lines")
    grown.cut()
    assert path.read_text() == "snapshot"
    path.write_text("snapshot, replayed")
    grown.cut()
    assert path.read_text() == "snapshot"
    path.write_text("snapshot, replayed again")
    grown.close()
    assert path.read_text() == "snapshot and the user's own lines"


def test_chosen_criu_is_the_only_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_CRIU", str(tmp_path / "missing"))
    assert find_criu() is None
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'Version: 9.9'\n[ \"$1\" != check ]\n")
    broken.chmod(0o755)
    monkeypatch.setenv("LAYOUT_ADVISE_CRIU", str(broken))
    assert find_criu() is None
    broken.write_text("#!/bin/sh\necho 'Version: 9.9'\n")
    assert criu_install.check(broken) == Criu(broken, "9.9")


@pytest.mark.parametrize(
    ("limits", "raised"),
    [
        ((64, 64), "--nofile=1024:1024"),
        ((64, 20000), "--nofile=1024:"),
        ((64, -1), "--nofile=1024:"),
        ((1024, 1024), ""),
        ((-1, -1), ""),
    ],
)
def test_criu_may_open_more_files_than_we(limits: tuple[int, int], raised: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It numbers its own above those of the program, which gets its limit back."""
    monkeypatch.setattr("resource.getrlimit", lambda _: limits)
    assert criu_install.with_files() == (["prlimit", raised] if raised else [])


def test_criu_that_may_not_open_enough_files_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Raising the limit is not always allowed."""
    works = tmp_path / "criu"
    works.write_text("#!/bin/sh\necho 'Version: 9.9'\n")
    works.chmod(0o755)
    monkeypatch.setattr(criu_install, "with_files", lambda: ["false"])
    assert criu_install.check(works) is None
