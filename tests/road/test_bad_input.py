"""Bad input through the real command: one clear line, the right exit code, and nothing left behind.

Each test runs ``python -m layout_advise trace`` on ``victim.c``, which misbehaves as its first argument says.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

SOURCE = Path(__file__).with_name("victim.c")
STAGES = ("sample", "trace", "explore", "measure")
CONFIG = struct.Struct("<3Q")
PLAIN = "sum 53999100000\n"  # what the victim prints when it is left alone
LITTLE = ("--restores", "3", "--candidates", "1", "--budget", "1")
"""Options of runs whose times say nothing: what they find is looked at."""


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    code: int
    out: str
    err: str
    run: Path

    @property
    def error(self) -> str:
        """The one line that says what went wrong."""
        lines = [line for line in self.err.splitlines() if line.startswith("layout-advise: ")]
        assert len(lines) == 1, self.err
        return lines[0]

    @property
    def report(self) -> dict[str, Any]:
        """report.json."""
        found: dict[str, Any] = json.loads((self.run / "report.json").read_text())
        return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("victim") / "victim"
    compile_victim(path)
    return path


@pytest.fixture
def victim(built: Path, tmp_path: Path) -> Path:
    """A copy of its own, so that its processes can be told from those of other tests."""
    return Path(shutil.copy(built, tmp_path / "victim"))


def compile_victim(out: Path, *flags: str) -> None:
    subprocess.run(["gcc", "-g", "-O2", "-Wall", "-Wextra", "-Werror", *flags, "-o", out, SOURCE], check=True)


def start(
    folder: Path,
    *words: str,
    stdin: int = subprocess.DEVNULL,
    output: Path | None = None,
    stdout: int | TextIO = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """Start ``trace`` in ``folder`` with a temporary folder of its own. It heeds Ctrl-C also where the tests themselves run
    in the background of a shell, which ignores it."""
    (folder / "tmp").mkdir(exist_ok=True)
    run = output or folder / "run"
    command = [
        "env",
        "--default-signal=INT,TERM",
        sys.executable,
        "-m",
        "layout_advise",
        "trace",
        "--restores",
        "5",
        "--candidates",
        "2",
        "-o",
        str(run),
        *words,
    ]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True
    )


def advise(folder: Path, *words: str, stdin: str | None = None, output: Path | None = None) -> Outcome:
    """Run ``trace`` to its end; nothing of it may be left afterwards."""
    process = start(folder, *words, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, output=output)
    out, err = process.communicate(stdin, timeout=120)
    check_clean(folder, process.pid)
    assert "Traceback" not in err
    return Outcome(process.returncode, out, err, output or folder / "run")


def refused(folder: Path, *words: str, code: int = 1) -> Outcome:
    """A run that must end with one line on stderr and no report."""
    outcome = advise(folder, "-q", *words)
    assert outcome.code == code, outcome.err
    assert outcome.err == outcome.error + "\n"
    assert not (outcome.run / "report.json").exists()
    return outcome


def undecided(folder: Path, *words: str) -> dict[str, Any]:
    """The hotspot of a run that ends with the verdict undecided."""
    outcome = advise(folder, "-q", *words)
    assert outcome.code == 0, outcome.err
    (hotspot,) = outcome.report["hotspots"]
    assert hotspot["verdict"]["action"] == "undecided"
    found: dict[str, Any] = hotspot
    return found


def running(folder: Path) -> list[str]:
    """Processes whose program lies in ``folder``."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "exe").startswith(f"{folder}/"):
                found.append(entry.name)
    return found


def leftovers(pid: int) -> list[str]:
    """What a run with process id ``pid`` left in /dev/shm: folders that carry the id in their name or in their orders."""
    found = []
    for folder in Path("/dev/shm").glob("la*"):
        named = str(pid) in folder.name.split("-")
        with contextlib.suppress(OSError, struct.error):
            named = named or CONFIG.unpack_from((folder / "config").read_bytes())[2] == pid
        if named:
            found.append(folder.name)
    return found


def check_clean(folder: Path, pid: int) -> None:
    """No process (the kernel may take a moment), nothing in /dev/shm, nothing in the temporary folder."""
    deadline = time.monotonic() + 5
    while running(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running(folder) == []
    assert leftovers(pid) == []
    assert list((folder / "tmp").iterdir()) == []


# --- files that cannot be analysed ---------------------------------------------------------------------------------------


def test_not_an_elf(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "text").chmod(0o755)
    assert "not an ELF file" in refused(tmp_path, "--", "./text").error


@pytest.mark.slow
def test_32_bit_and_arm(victim: Path, tmp_path: Path) -> None:
    data = bytearray(victim.read_bytes())
    data[18:20] = (0x28).to_bytes(2, "little")
    victim.write_bytes(data)
    assert "built for ARM" in refused(tmp_path, "--", "./victim").error
    data[18:20] = (3).to_bytes(2, "little")
    victim.write_bytes(data)
    assert "32-bit" in refused(tmp_path, "--", "./victim").error


@pytest.mark.slow
def test_setuid(victim: Path, tmp_path: Path) -> None:
    victim.chmod(0o4755)
    assert "setuid" in refused(tmp_path, "--", "./victim").error


def test_static_names_what_can_be_had(tmp_path: Path) -> None:
    compile_victim(tmp_path / "static", "-static")
    assert "--backend valgrind --until trace" in refused(tmp_path, "--", "./static").error


@pytest.mark.slow
def test_no_program(tmp_path: Path) -> None:
    assert "no program given" in refused(tmp_path, code=2).error


@pytest.mark.slow
def test_stripped_goes_on_with_offsets(tmp_path: Path) -> None:
    compile_victim(tmp_path / "victim", "-s", "-rdynamic")
    outcome = advise(tmp_path, "--hotspot", "work", *LITTLE, "--", "./victim", "plain", "100", "1000")
    assert outcome.code == 0
    assert "rebuild with -g" in outcome.error
    (hotspot,) = outcome.report["hotspots"]
    assert hotspot["symbol"] == "work"
    assert hotspot["file"] is None
    assert [f["offset"] for f in hotspot["structures"][0]["fields"]] == [0, 8]


# --- hotspots that are not there -----------------------------------------------------------------------------------------


def test_no_such_symbol_names_near_ones(victim: Path, tmp_path: Path) -> None:
    assert "did you mean work?" in refused(tmp_path, "--hotspot", "wrok", "--", "./victim").error


def test_hotspot_never_reached(victim: Path, tmp_path: Path) -> None:
    outcome = refused(tmp_path, "--hotspot", "never", "--", "./victim")
    assert "never called" in outcome.error
    assert outcome.out == PLAIN


@pytest.mark.slow
def test_fewer_calls_than_asked_for(victim: Path, tmp_path: Path) -> None:
    outcome = refused(tmp_path, "--hotspot", "work", "--call", "99", "--", "./victim", code=2)
    assert "called 60 times only" in outcome.error


def test_a_file_that_the_program_writes_is_its_own(victim: Path, tmp_path: Path) -> None:
    words = ("--hotspot", "work", *LITTLE, "--", "./victim", "plain", "100", "1000")
    with (tmp_path / "written").open("w") as written:
        process = start(tmp_path, *words, stdout=written)
        _, err = process.communicate(timeout=120)
    plain = subprocess.run([victim, "plain", "100", "1000"], capture_output=True, text=True, check=True)
    assert (tmp_path / "written").read_text() == plain.stdout
    assert process.returncode == 0
    assert "hotspot work" in err


# --- programs that misbehave ---------------------------------------------------------------------------------------------


def test_crash(victim: Path, tmp_path: Path) -> None:
    assert "ended by SIGABRT" in refused(tmp_path, "--hotspot", "work", "--", "./victim", "crash").error


def test_hang(victim: Path, tmp_path: Path) -> None:
    outcome = refused(tmp_path, "--timeout", "1", "--hotspot", "work", "--", "./victim", "hang")
    assert "still running after 1 s" in outcome.error


@pytest.mark.slow
def test_exec_is_explained(victim: Path, tmp_path: Path) -> None:
    work = ("60000", "5000")
    outcome = refused(tmp_path, "--", "./victim", "exec", *work)
    assert "starts another program or process, in which most of the" in outcome.error
    assert outcome.out == subprocess.run([victim, "plain", *work], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_env_and_a_shell_are_followed(victim: Path, tmp_path: Path) -> None:
    wrapped = ("env", "X=1", "sh", "-c", "./victim status 100 1000")
    outcome = advise(tmp_path, "--until", "sample", "--hotspot", "work", "--", *wrapped)
    assert outcome.out.startswith("sum ")
    assert "hotspot: work" in outcome.err


@pytest.mark.slow
def test_work_in_other_processes_is_told(victim: Path, tmp_path: Path) -> None:
    outcome = refused(tmp_path, "--", "./victim", "children", "60000", "30000")
    assert "starts another program or process, in which most of the" in outcome.error


@pytest.mark.slow
def test_exit_status_is_recorded(victim: Path, tmp_path: Path) -> None:
    outcome = advise(tmp_path, "--hotspot", "work", *LITTLE, "--", "./victim", "status", "100", "1000")
    assert outcome.code == 0
    assert outcome.out.startswith("sum ")
    assert outcome.report["program"]["exit_status"] == 3


@pytest.mark.slow
def test_stdin_is_the_same_at_each_start(victim: Path, tmp_path: Path) -> None:
    outcome = advise(tmp_path, "-q", "--hotspot", "work", "--", "./victim", "stdin", stdin="5\n")
    assert outcome.code == 0
    assert outcome.out.startswith("sum 54008100000\n")
    # the second run counts the calls: without its input the program would have ended before the first one
    assert outcome.report["program"] == {"exit_status": 0, "signal": None, "deterministic": True}
    assert outcome.report["hotspots"][0]["calls"] == 60


def test_a_terminal_is_not_read(victim: Path, tmp_path: Path) -> None:
    """Each start must read the same: what is typed is left to whoever reads the terminal next, and that is told."""
    keyboard, screen = os.openpty()
    try:
        os.write(keyboard, b"5\n")
        words = ("--until", "sample", "--hotspot", "work", "--", "./victim", "plain", "60000", "300")
        process = start(tmp_path, *words, stdin=screen)
        out, err = process.communicate(timeout=120)
        assert os.read(screen, 10) == b"5\n"
    finally:
        os.close(keyboard)
        os.close(screen)
    check_clean(tmp_path, process.pid)
    assert (process.returncode, out) == (0, "sum 269995500000\n")
    assert err.count("standard input is a terminal, which is not read") == 1


@pytest.mark.slow
def test_calls_in_forked_children_do_not_count(victim: Path, tmp_path: Path) -> None:
    outcome = advise(tmp_path, "-q", "--hotspot", "work", "--", "./victim", "forks")
    assert outcome.code == 0
    assert outcome.report["hotspots"][0]["calls"] == 60


# --- hotspots that cannot be measured ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 2])
def test_few_calls_are_enough(victim: Path, tmp_path: Path, calls: int) -> None:
    """The report goes to standard output, and nothing else: what the program prints is in its log."""
    words = ("-q", "--json", "-", "--hotspot", "work", *LITTLE, "--", "./victim", "plain", "120000", str(calls))
    outcome = advise(tmp_path, *words)
    assert outcome.code == 0
    assert json.loads(outcome.out) == outcome.report
    assert (outcome.run / "program.log").read_text().startswith("sum ")
    (hotspot,) = outcome.report["hotspots"]
    assert hotspot["calls"] == calls
    assert hotspot["identity"]["evidence"] == "verified"
    assert any(one["speedup"] for one in hotspot["candidates"])
    (compared,) = (check for check in outcome.report["quality"]["checks"] if check["id"] == "calls-verified")
    assert compared["text"] == f"compared at {calls} call{'s' * (calls > 1)} (3 wanted)"
    assert not compared["ok"]


@pytest.mark.slow
def test_short_calls(victim: Path, tmp_path: Path) -> None:
    verdict = undecided(tmp_path, "--hotspot", "work", "--", "./victim", "plain", "100", "20")["verdict"]
    assert verdict["reason"] == "short-calls"
    assert "µs" in verdict["text"]


@pytest.mark.slow
def test_calls_that_do_output(victim: Path, tmp_path: Path) -> None:
    hotspot = undecided(tmp_path, "--hotspot", "talks", "--", "./victim", "talks", "60000", "10")
    assert hotspot["verdict"]["reason"] == "not-lifted"
    assert "printf" in hotspot["not_lifted"][0]["reason"]


@pytest.mark.slow
def test_avx512_on_a_way_that_is_not_taken(victim: Path, tmp_path: Path) -> None:
    """It costs nothing: the mock-ups end there, and the report lists the way."""
    outcome = advise(tmp_path, "-q", "--hotspot", "wide", *LITTLE, "--", "./victim", "wide")
    (hotspot,) = outcome.report["hotspots"]
    assert not hotspot["not_lifted"]
    (way,) = hotspot["ended_ways"]
    assert way["file"].endswith("victim.c")
    assert "verified" in {c["evidence"] for c in hotspot["candidates"]}


# --- the run directory ---------------------------------------------------------------------------------------------------


def test_run_directory_from_another_version(victim: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    marker = tmp_path / "run" / "run.json"
    marker.write_text('{"format": "layout-advise.run/0", "version": "0.0.1", "complete": false}')
    assert "from another version (0.0.1" in refused(tmp_path, "--", "./victim").error
    assert "run/0" in marker.read_text()  # untouched


@pytest.mark.slow
def test_two_runs_at_once(victim: Path, tmp_path: Path) -> None:
    first = start(tmp_path, "-v", "--timeout", "60", "--hotspot", "work", "--", "./victim", "hang")
    try:
        wait_for(first, "sample")
        for _ in range(2):  # the loser must not remove the winner's lock
            second = start(tmp_path, "-q", "--hotspot", "work", "--", "./victim")
            out, err = second.communicate(timeout=60)
            assert second.returncode == 1
            assert "in use by another run" in err
            assert out == ""
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    check_clean(tmp_path, first.pid)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 18 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=18m", "none", place], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system may be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_disk_full(victim: Path, tmp_path: Path, full_disk: Path) -> None:
    """It has room when the run begins, and is full by the time the trace is written."""
    started = full_disk / "run" / "run.json"

    def fill() -> None:
        deadline = time.monotonic() + 60
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        with contextlib.suppress(OSError), (full_disk / "filler").open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()

    filler = threading.Thread(target=fill)
    filler.start()
    outcome = advise(tmp_path, "-q", "--hotspot", "work", "--", "./victim", output=full_disk / "run")
    filler.join()
    assert outcome.code == 1
    assert "No space left on device; free some space" in outcome.error
    assert outcome.out.startswith(PLAIN)
    assert not (outcome.run / "report.json").exists()


@pytest.mark.slow
def test_disk_full_before_the_run(victim: Path, tmp_path: Path, full_disk: Path) -> None:
    (full_disk / "filler").write_bytes(bytes(4 << 20))
    outcome = advise(tmp_path, "-q", "--hotspot", "work", "--", "./victim", output=full_disk / "run")
    assert outcome.code == 1
    assert "16,777,216 bytes are needed in" in outcome.error
    assert outcome.out == ""
    assert not outcome.run.exists()


# --- being stopped -------------------------------------------------------------------------------------------------------


def wait_for(process: subprocess.Popen[str], stage: str) -> None:
    """Read what ``-v`` says until ``stage`` begins."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{stage}: "):
            return
    raise AssertionError(f"{stage} never began")


def stop(folder: Path, stage: str, number: int) -> tuple[subprocess.Popen[str], str]:
    """Send a signal shortly after ``stage`` began; what the run said afterwards."""
    process = start(folder, "-v", "-f", "--hotspot", "work", "--", "./victim", "plain", "60000", "3000")
    wait_for(process, stage)
    time.sleep(0.2)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process, err


@pytest.mark.parametrize("stage", [*(pytest.param(s, marks=pytest.mark.slow) for s in STAGES[:-1]), STAGES[-1]])
def test_ctrl_c(victim: Path, tmp_path: Path, stage: str) -> None:
    process, err = stop(tmp_path, stage, signal.SIGINT)
    assert process.returncode == 130, err
    assert "interrupted: everything it started is stopped" in err.splitlines()[-1]
    assert "Traceback" not in err
    check_clean(tmp_path, process.pid)


@pytest.mark.slow
def test_sigterm(victim: Path, tmp_path: Path) -> None:
    process, err = stop(tmp_path, "measure", signal.SIGTERM)
    assert process.returncode == 143
    assert "interrupted" in err
    check_clean(tmp_path, process.pid)


def test_second_ctrl_c_does_not_cut_the_clean_up_short(victim: Path, tmp_path: Path) -> None:
    process = start(tmp_path, "-v", "--hotspot", "work", "--", "./victim", "plain", "60000", "3000")
    wait_for(process, "measure")
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    check_clean(tmp_path, process.pid)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["sample", "measure"])
def test_killed_outright(victim: Path, tmp_path: Path, stage: str) -> None:
    process = start(tmp_path, "-v", "-f", "--hotspot", "work", "--", "./victim", "plain", "60000", "3000")
    wait_for(process, stage)
    time.sleep(0.2)
    assert leftovers(process.pid) != []  # else there is nothing to clean up, and the rest shows nothing
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 10
    while running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running(tmp_path) == []
    # another test's run may clean up before this one does
    advise(tmp_path, "-q", "-f", "--hotspot", "work", *LITTLE, "--", "./victim", "plain", "60000", "3")
    assert leftovers(process.pid) == []
