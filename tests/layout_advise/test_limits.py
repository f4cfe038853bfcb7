"""``--max-refs``, ``--max-bytes``, room on the disks: what is cut is told everywhere, what has no room is refused first."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from layout_advise.checks import RUN_ROOM
from layout_advise.cli import main
from layout_advise.commands.trace import size
from layout_advise.errors import TraceError
from layout_advise.rundir import find_trace, scratch_parent
from layout_advise.tracer.process import disk_space
from layout_advise.tracer.trace.trace_file import read_trace, write_trace

SOURCE = """
#include <stdlib.h>
struct s { double a, b, c, d; };
__attribute__((noipa)) void hot(struct s *p, const int *at, long n) { for (long i = 0; i < n; i++) p[at[i]].c += p[i].a; }
int main(void) { long n = 20000; struct s *p = calloc(n, sizeof *p); int *at = malloc(n * sizeof *at);
  for (long i = 0; i < n; i++) at[i] = rand() % n;
  for (int k = 0; k < 500; k++) hot(p, at, n); return 0; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "p.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-o", "p", "p.c"], cwd=folder, check=True)
    return folder / "p"


Trace = Callable[..., tuple[int, str]]


@pytest.fixture
def trace(program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Trace:
    """Exit code and stderr of ``layout-advise trace`` with these options."""

    def call(*options: str, until: str = "trace", output: Path = tmp_path / "run") -> tuple[int, str]:
        code = main(["trace", "-f", "-o", str(output), "--hotspot", "hot", "--until", until, *options, "--", str(program)])
        return code, capfd.readouterr().err

    return call


def shown(folder: Path, capfd: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["show", str(folder), *options]) == 0
    return capfd.readouterr().out


def test_what_max_refs_cuts_is_told(trace: Trace, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = trace("--max-refs", "1000", until="report")
    assert code == 0
    found = read_trace(find_trace(tmp_path / "run"))
    assert 1000 - 48 <= found.accesses <= 1000
    assert found.truncated
    limit = f"cut after {found.accesses:,} accesses (--max-refs 1000)"
    assert found.limits == (limit,)
    assert f"the trace was {limit}" in said
    hotspot = json.loads((tmp_path / "run" / "report.json").read_text())["hotspots"][0]
    assert hotspot["trace"]["limits"] == [limit]
    assert hotspot["trace"]["truncated"]
    assert limit in hotspot["verdict"]["text"]
    assert limit in (tmp_path / "run" / "report.html").read_text()
    text = shown(tmp_path / "run", capfd)
    assert f"not whole: {limit}" in text
    assert "truncated" in text.splitlines()[0]
    assert json.loads(shown(tmp_path / "run", capfd, "--json", "-"))["limits"] == [limit]
    assert limit in shown_report(tmp_path / "run", capfd)


def shown_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    assert main(["report", str(folder)]) == 0
    return capfd.readouterr().out


def test_what_max_bytes_cuts_of_the_records_is_told(trace: Trace, tmp_path: Path) -> None:
    code, said = trace("--max-bytes", "80K")
    assert code == 0
    found = read_trace(find_trace(tmp_path / "run"))
    assert 10_240 - 48 <= found.accesses <= 10_240
    assert found.limits[0] == f"cut after {found.accesses:,} accesses (--max-bytes 81920, 8 a record)"
    assert found.limits[0] in said
    assert find_trace(tmp_path / "run").stat().st_size <= 81_920


BATCH = """
#include <stdlib.h>
struct s { double a, b, c, d; };
__attribute__((noipa)) void hot(struct s *p, long n) { for (long i = 0; i < n; i++) p[i].c += p[i].a; }
int main(void) { long n = 3000; struct s *p = calloc(n, sizeof *p);
  for (long k = 0; k < 40000; k++) hot(p + k % 2000, 900); return 0; }
"""
NEST = """
#include <stdlib.h>
struct s { double a, b, c, d; };
int main(void) { long n = 500000; struct s *p = calloc(n, sizeof *p);
  for (long k = 0; k < 100; k++) for (long i = 0; i < n; i++) p[i].c += p[i].a;
  return p[7].c != 0; }
"""
TEAM = """
#include <stdlib.h>
struct s { double a, b, c, d; };
__attribute__((noinline)) void hot(struct s *p, long n) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i++) p[i].c += p[i].a; }
int main(void) { long n = 1000000; struct s *p = calloc(n, sizeof *p);
  for (int k = 0; k < 40; k++) hot(p, n); return p[7].c != 0; }
"""
OTHERS = [("batch", BATCH, "hot", 1), ("nest", NEST, "main", 1), ("team", TEAM, "hot._omp_fn.0", 2)]
"""Name, source, hotspot and threads of what is traced in other ways than one call of a function."""


@dataclass(frozen=True)
class Other:
    """One of ``OTHERS``, compiled in ``folder``."""

    folder: Path
    name: str
    hotspot: str
    threads: int

    def advised(self, *options: str) -> int:
        """The exit code of a run in ``run``."""
        program, run = str(self.folder / "p"), str(self.folder / "run")
        return main(["trace", "-o", run, "--hotspot", self.hotspot, *options, "--", program])


@pytest.fixture(
    params=[pytest.param(one, id=one[0], marks=() if one[0] == "batch" else pytest.mark.slow) for one in OTHERS],
)
def other(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Other:
    name, source, hotspot, threads = request.param
    (tmp_path / "p.c").write_text(source)
    subprocess.run(["gcc", "-O2", "-g", "-fopenmp", "-o", "p", "p.c"], cwd=tmp_path, check=True)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    return Other(tmp_path, name, hotspot, threads)


def test_what_max_refs_cuts_of_others_is_told(other: Other, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name, threads = other.name, other.threads
    assert other.advised("--max-refs", "1000") == 0
    said = capfd.readouterr().err
    found = read_trace(find_trace(tmp_path / "run"))
    assert 1000 - 48 * threads <= found.accesses <= 1000
    assert len(found.threads) == (threads if name == "team" else 0)
    share = ", an equal share for each thread" if name == "team" else ""
    limit = f"cut after {found.accesses:,} accesses (--max-refs 1000{share})"
    assert found.limits == (limit,)
    assert f"the trace was {limit}" in said
    counts = [found.of_thread(thread).accesses for thread in found.threads]
    assert all(500 - 48 <= count <= 500 for count in counts)
    assert f"not whole: {limit}" in shown(tmp_path / "run", capfd)
    title = f"calls {found.call} to {found.call + found.calls - 1}" if name == "batch" else f"call {found.call}"
    assert f", {title}: {found.accesses:,} accesses by " in shown(tmp_path / "run", capfd)
    report = json.loads((tmp_path / "run" / "report.json").read_text())["hotspots"][0]
    assert (report["batch"] is not None, report["region"]) == (name == "batch", "loop" if name == "nest" else "function")
    assert found.calls == (report["batch"]["calls"] if name == "batch" else 1)
    assert report["trace"]["limits"] == [limit]
    assert report["verdict"]["text"] == f"Undecided: the trace is not whole ({limit}), so no layout is claimed."


def test_what_max_bytes_cuts_of_others_is_told(other: Other, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert other.advised("--max-bytes", "80K", "--until", "trace") == 0
    found = read_trace(find_trace(tmp_path / "run"))
    assert 10_240 - 48 * other.threads <= found.accesses <= 10_240
    share = ", an equal share for each thread" if other.name == "team" else ""
    assert found.limits[0] == f"cut after {found.accesses:,} accesses (--max-bytes 81920, 8 a record{share})"
    assert f"the trace was {found.limits[0]}" in capfd.readouterr().err


def test_a_whole_trace_tells_no_limit(trace: Trace, tmp_path: Path) -> None:
    assert trace("--max-bytes", "400M")[0] == 0
    found = read_trace(find_trace(tmp_path / "run"))
    assert not found.truncated
    assert found.limits == ()


def test_a_file_without_room_is_cut_and_told(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = "layout_advise.observe.stage.write_trace"
    monkeypatch.setattr(limited, lambda found, path, _limit: write_trace(found, path, 3500))
    code, said = trace(until="report")
    assert code == 0
    assert find_trace(tmp_path / "run").stat().st_size <= 3500
    limits = read_trace(find_trace(tmp_path / "run")).limits
    assert "keeps bounds and count only" in limits[0]
    assert limits[0] in said
    hotspot = json.loads((tmp_path / "run" / "report.json").read_text())["hotspots"][0]
    assert hotspot["trace"]["limits"] == list(limits)
    assert hotspot["verdict"]["reason"] == "trace-truncated"
    assert hotspot["candidates"] == []  # layouts are not looked for in a part of a trace


def refusal(said: str) -> str:
    found = [text for text in said.splitlines() if text.startswith("layout-advise: ")]
    assert len(found) == 1
    assert said.count("\n") == 1
    return found[0]


def test_a_disk_without_room_is_refused_before_anything_runs(trace: Trace, small_disk: Path) -> None:
    code, said = trace(output=small_disk / "run")
    assert code == 1
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    text = refusal(said)
    assert "no room for the run directory" in text
    assert f"{RUN_ROOM:,} bytes are needed in {small_disk}, {free:,} are free" in text
    assert list(small_disk.iterdir()) == []


def full(free: int) -> Callable[[object], SimpleNamespace]:
    return lambda _folder: SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_flag=0)


def test_what_the_user_allows_must_be_free(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", full(400 << 20))
    assert trace("--max-bytes", "300M", "--max-refs", "9")[0] == 0  # nine records need less
    code, said = trace("--max-bytes", "390M")
    assert code == 1
    assert f"{(390 + 16) << 20:,} bytes are needed in " in refusal(said)
    assert f"{400 << 20:,} are free; free some space there, or lower --max-bytes" in said
    code, said = trace("--max-bytes", "380M")  # the run directory has room for it, the scratch folder keeps 64 MB free
    assert code == 1
    assert f"no room for the records of a call: {(380 + 64) << 20:,} bytes are needed in {scratch_parent()}" in refusal(said)


def test_records_without_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", full(70 << 20))
    with pytest.raises(TraceError, match=f"{72 << 20:,} bytes are needed in /somewhere, {70 << 20:,} are free"):
        disk_space.require(Path("/somewhere"), disk_space.RECORDS_ROOM, "the records", "free some")


def test_a_small_dev_shm_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "statvfs", full(64 << 20))  # what containers get
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert scratch_parent() == tmp_path


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("80K", 81920), ("1.5G", 3 << 29), ("2m", 2 << 20)])
def test_sizes(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["0", "", "K", "-3M", "12Q", "nan"])
def test_no_sizes(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", f"--max-bytes={text}", "--", "true"])
    assert "--max-bytes" in capfd.readouterr().err
