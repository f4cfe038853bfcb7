"""Little room and few rights, through the real command: an answer or one line, nothing left, and ``doctor`` had said so.

A full disk is in ``tests/road/test_bad_input``, a user who is not root in ``tests/project/shipping/test_newcomer``.
ptrace_scope cannot be set where the kernel has no Yama: ``confined.c`` refuses what scope 2 refuses to users without rights;
scope 1 allows a process its own children, and that is all that is traced here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hostile.building import left
from tests.support import slower
from tests.support.paths import ROOT

PLAIN = "sum 269995500000\n"
OPTIONS = ("-q", "--restores", "3", "--candidates", "1", "--budget", "1", "--no-live", "--hotspot", "work")
PROGRAM = ("./victim", "plain", "60000", "300")
OWN_HOME = (
    "mkdir -p home && mount -t tmpfs -o ro none home && unset XDG_CACHE_HOME LAYOUT_ADVISE_CACHE && export HOME=$PWD/home"
)
TOLD_QUICKLY = ("home_read_only", "address_space_of_500_mb", "64_files", "no_tracing")
IN_NAMESPACE = ("unshare", "-m", "sh", "-c")
OWN_SYS = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"


@dataclass(frozen=True, slots=True)
class Little:
    """A condition: ``words`` before a command make it, ``finding`` begins a line of ``doctor`` there, and ``code`` and
    ``says`` are how a run ends (0: with an answer)."""

    words: tuple[str, ...]
    finding: str
    code: int = 0
    says: str = ""

    def of(self, *command: str) -> list[str]:
        """A command under this condition."""
        return [*self.words, *command]


def mounted(line: str) -> tuple[str, ...]:
    return (*IN_NAMESPACE, f'{line} && exec "$@"', "sh")


def limited(line: str) -> tuple[str, ...]:
    return ("sh", "-c", f'{line} && exec "$@"', "sh")


CONDITIONS = {
    "shm_of_64_mb": Little(mounted("mount -t tmpfs -o size=64m none /dev/shm"), "absent  /dev/shm: 0.1 GiB free"),
    "shm_full": Little(
        mounted("mount -t tmpfs -o size=1m none /dev/shm && ! head -c 2M /dev/zero 2>&- > /dev/shm/filler"),
        "absent  /dev/shm: 0.0 GiB free",
    ),
    "shm_read_only": Little(mounted("mount -t tmpfs -o ro none /dev/shm"), "absent  /dev/shm: not writable"),
    "proc_sys_read_only": Little(mounted(OWN_SYS), "absent  criu: "),
    "home_read_only": Little(
        mounted(OWN_HOME),
        "missing cache: ", 4, "Read-only file system",
    ),
    "no_network": Little(("unshare", "-n"), "absent  criu: "),
    "address_space_of_500_mb": Little(limited("ulimit -v 512000"), "absent  memory: 0.5 GiB (ulimit -v)"),
    "64_files": Little(limited("ulimit -n 64"), "absent  open files: 64 at once (ulimit -n), 64 at most"),
    "64_files_that_may_be_more": Little(limited("ulimit -S -n 64"), "ok      open files: 64 at once (ulimit -n), "),
    "no_rights": Little(("setpriv", "--bounding-set=-all", "--inh-caps=-all"), "absent  criu: "),
    "no_criu": Little(("env", "LAYOUT_ADVISE_CRIU=/nonexistent"), "absent  criu: "),
    "no_tracing": Little(("./confined",), "absent  tracing: ptrace: Operation not permitted"),
}  # fmt: skip


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "layout_advise", *words]


def start(folder: Path, words: Sequence[str]) -> tuple[int, str, str, int]:
    """Exit code, output, messages and process id of a command in the folder."""
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, err = process.communicate(timeout=240)
    return process.returncode, out, err, process.pid


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("room")
    victim = ROOT / "tests" / "road" / "victim.c"
    subprocess.run(["gcc", "-g", "-O2", "-o", folder / "victim", victim], check=True)
    source = Path(__file__).with_name("confined.c")
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", folder / "confined", source], check=True)
    return folder


@pytest.fixture
def place(programs: Path, tmp_path: Path) -> Path:
    for name in ("victim", "confined"):
        shutil.copy(programs / name, tmp_path / name)
    return tmp_path


def can_be_made(place: Path, little: Little) -> None:
    """Skips where this machine does not let the condition be made."""
    code, _, err, _ = start(place, little.of("true"))
    if code:
        pytest.skip(f"it cannot be made here: {err.strip()[-200:]}")


def run_under(place: Path, little: Little) -> None:
    code, out, err, pid = start(place, little.of(*command("trace", *OPTIONS, "-o", "run", "--", *PROGRAM)))
    assert left(place, pid, 0) == []
    assert "Traceback" not in err
    assert code == little.code, err
    assert little.says in err
    if code == 0:
        assert out.startswith(PLAIN)
        assert (place / "run" / "report.json").exists()
    else:
        assert out in ("", PLAIN)
        assert len([line for line in err.splitlines() if line.startswith("layout-advise: ")]) == 1, err


@pytest.mark.parametrize("name", ["home_read_only", *slower(*((name,) for name in CONDITIONS if name != "home_read_only"))])
def test_an_answer_or_one_line(name: str, place: Path) -> None:
    can_be_made(place, CONDITIONS[name])
    run_under(place, CONDITIONS[name])


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in TOLD_QUICKLY else pytest.mark.slow) for n in CONDITIONS])
def test_doctor_had_said_so(name: str, place: Path) -> None:
    can_be_made(place, CONDITIONS[name])
    code, out, err, _ = start(place, CONDITIONS[name].of(*command("doctor")))
    assert any(line.startswith(CONDITIONS[name].finding) for line in out.splitlines()), out
    assert code == CONDITIONS[name].code, err


@pytest.mark.parametrize("megabytes", [100, 200, 470])
def test_too_little_to_begin_with_is_one_line(megabytes: int, place: Path) -> None:
    for words in (("doctor",), ("trace", "--", *PROGRAM)):
        code, out, err, _ = start(place, Little(limited(f"ulimit -v {megabytes << 10}"), "").of(*command(*words)))
        assert (code, out) == (4, "")
        assert err == f"layout-advise: too little memory: {megabytes} MB are allowed (ulimit -v); it needs 480 at least\n"


@pytest.fixture
def control_group() -> Iterator[Path]:
    """A group of processes that may have 512 MB."""
    for top, limit in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        group = Path("/sys/fs/cgroup") / top / f"layout-advise-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(512 << 20))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        try:
            yield group
        finally:
            group.rmdir()
        return
    pytest.skip("no control group can be made here")


@pytest.mark.slow
def test_a_control_group_of_512_mb(control_group: Path, place: Path) -> None:
    little = Little(limited(f"echo $$ > {control_group}/cgroup.procs"), "absent  memory: 0.5 GiB (control group ")
    run_under(place, little)
    _, out, _, _ = start(place, little.of(*command("doctor")))
    assert any(line.startswith(little.finding) for line in out.splitlines()), out


def test_no_memory_left_is_one_line(place: Path) -> None:
    code = (
        "import sys; from layout_advise import cli\n"
        "from layout_advise.commands import doctor\n"
        "def none(): raise MemoryError\n"
        "doctor.CHECKS = (none,); sys.exit(cli.main(['doctor']))\n"
    )
    ended, _, err, _ = start(place, [sys.executable, "-c", code])
    assert ended == 1
    assert err.startswith("layout-advise: out of memory: ")
    assert len(err.splitlines()) == 1
