"""The backends as the user meets them: the same structures whichever is used, and one clear line where one cannot be."""

from __future__ import annotations

import functools
import json
import re
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import MachineError, RefusedError, TraceError
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.observe.backends import relevant
from layout_advise.rundir import find_trace
from layout_advise.tracer.backends import registry
from layout_advise.tracer.backends.clone.backend import CloneBackend
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Backend, Rerun, TracedCall, TraceRequest
from layout_advise.tracer.backends.step.record import StepBackend
from layout_advise.tracer.backends.valgrind.install import find_valgrind
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.backends.valgrind.run import check_instructions
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace import Allocation, Reference, Registers, Trace
from layout_advise.tracer.trace.trace_file import read_trace
from tests.support.clone_programs import build, region_of
from tests.support.paths import ROOT
from tests.support.run_folders import studied_region
from tests.support.tracing.trace_requests import request

EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Done:
    """How one run of the command ended."""

    returncode: int
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """``layout-advise trace`` in this process, in ``tmp_path``."""

    def call(*arguments: str) -> Done:
        monkeypatch.chdir(tmp_path)
        code = main(["trace", "-f", "-o", "run", *arguments])
        return Done(code, capfd.readouterr().err)

    return call


def line(done: Done) -> str:
    found = [text for text in done.stderr.splitlines() if text.startswith("layout-advise: ")]
    assert len(found) == 1, done.stderr
    return found[0]


@pytest.fixture(scope="module")
def particles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("particles") / "particles"
    subprocess.run(["gcc", "-O2", "-g", "-o", str(program), str(EXAMPLES / "particles" / "particles.c")], check=True)
    return program


def candidates(run: Run, folder: Path, program: Path, backend: str, *arguments: str) -> bytes:
    done = run("--backend", backend, "--until", "explore", "--hotspot", "update_pressure", "--", str(program), *arguments)
    assert done.returncode == 0, done.stderr
    assert read_trace(find_trace(folder / "run")).backend == backend
    return (studied_region(folder / "run") / "candidates.json").read_bytes()


@pytest.mark.slow
def test_every_backend_leads_to_the_same_candidates(run: Run, tmp_path: Path, particles: Path) -> None:
    size = ("1000", "20", "1")  # 4,000 accesses a call
    clone = candidates(run, tmp_path, particles, "clone", *size)
    assert len(json.loads(clone)) > 1
    assert candidates(run, tmp_path, particles, "valgrind", *size) == clone
    assert candidates(run, tmp_path, particles, "step", *size) == clone


@dataclass(frozen=True)
class ReplayBackend(Backend):
    """Replays the trace of a file, which must be of the same call."""

    file: Path

    name = "replay"
    manner = "from a file"

    def check(self) -> None:
        if not self.file.exists():
            raise MachineError("cannot replay a trace", f"no {self.file}")

    def trace(self, request: TraceRequest) -> TracedCall:
        trace = read_trace(self.file)
        if trace.call != request.rerun.call:
            raise RefusedError("no trace in the file", f"it is of call {trace.call}")
        return TracedCall(replace(trace, backend=self.name), ("replayed",))


@pytest.mark.slow
def test_a_new_backend_is_one_entry(run: Run, tmp_path: Path, particles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--until", "trace", "--hotspot", "update_pressure", "--call", "3", "--", str(particles), "1000", "20", "1")
    assert run(*asked).returncode == 0
    file = find_trace(tmp_path / "run").rename(tmp_path / "kept.lat")
    monkeypatch.setattr(registry, "BACKENDS", (ReplayBackend(file), *registry.BACKENDS))
    for chosen in (("--backend", "replay"), ("--backend", "auto")):
        done = run(*chosen, *asked)
        assert done.returncode == 0, done.stderr
        assert "replayed" in done.stderr
        mine, kept = read_trace(find_trace(tmp_path / "run")), read_trace(file)
        assert mine == replace(kept, backend="replay")
    file.rename(tmp_path / "moved.lat")
    assert "cannot replay a trace: no " in line(run("--backend", "replay", *asked))


@pytest.mark.slow
def test_a_backend_that_refuses_is_replaced_by_the_next_one(
    run: Run, tmp_path: Path, particles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (str(particles), "1000", "20", "1")
    asked = ("--until", "trace", "--hotspot", "update_pressure", "--call")
    assert run(*asked, "3", "--", *size).returncode == 0
    file = find_trace(tmp_path / "run").rename(tmp_path / "kept.lat")
    monkeypatch.setattr(registry, "BACKENDS", (ReplayBackend(file), *registry.BACKENDS))
    done = run(*asked, "4", "--", *size)
    assert "no trace in the file: it is of call 3; traced by the clone instead" in done.stderr
    assert read_trace(find_trace(tmp_path / "run")).backend == "clone"


@pytest.mark.slow
def test_a_report_from_a_trace_under_valgrind(run: Run, tmp_path: Path, particles: Path) -> None:
    done = run("--backend", "valgrind", "--restores", "3", "--candidates", "1", "--", str(particles), "300000", "60")
    assert done.returncode == 0, done.stderr
    (hotspot,) = json.loads((tmp_path / "run" / "report.json").read_text())["hotspots"]
    assert hotspot["trace"]["backend"] == "valgrind"
    assert hotspot["identity"]["evidence"] == "verified"


REFUSED = """
#include <stdlib.h>
struct s { long a, b, c, d; };
__attribute__((noipa)) void hot(struct s *p, long n) {
    for (long i = 0; i < n; i++) { p[i].a += i; __asm__ volatile("btsq %1, %0" : "+m"(p[i].c) : "r"(i & 31)); } }
int main(void) {
    struct s *p = calloc(9000, sizeof *p);
    for (int k = 0; k < 300; k++) hot(p, 9000);
    return 0; }
"""


@pytest.fixture
def refused(tmp_path: Path) -> tuple[str, ...]:
    """A program that the clone refuses, and the arguments that trace it."""
    (tmp_path / "p.c").write_text(REFUSED)
    subprocess.run(["gcc", "-O2", "-g", "-o", str(tmp_path / "p"), str(tmp_path / "p.c")], check=True)
    return ("--until", "trace", "--hotspot", "hot", "--", "./p")


def addresses(trace: Trace, count: int) -> list[int]:
    """Those of all streams of ``count`` accesses, in order."""
    found: list[int] = []
    for stream in trace.streams:
        if stream is not None and stream.count == count:
            assert isinstance(stream, FoldedStream)
            found += stream.expand()
    return found


def test_what_the_clone_refuses_is_traced_under_valgrind(run: Run, tmp_path: Path, refused: tuple[str, ...]) -> None:
    without = run("--backend", "clone", *refused)
    assert without.returncode == 1
    assert "bts" in line(without)
    done = run(*refused)
    assert done.returncode == 0, done.stderr
    assert re.search(r"no clone of `bts.*; traced under Valgrind instead", done.stderr)
    trace = read_trace(find_trace(tmp_path / "run"))
    assert (trace.backend, trace.truncated) == ("valgrind", False)
    (block,) = trace.allocations
    assert block.bytes == 9000 * 32
    places = set(addresses(trace, 9000))
    expected = {block.address + 32 * i for i in range(9000)}  # in the parked program, not in that under Valgrind
    assert places == expected | {a + 16 + (i & 31) // 8 for i, a in enumerate(sorted(expected))}


@pytest.fixture
def no_valgrind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_VALGRIND", str(tmp_path / "none"))


@pytest.mark.usefixtures("no_valgrind")
def test_without_valgrind_the_clones_reason_is_told(run: Run, refused: tuple[str, ...]) -> None:
    done = run(*refused)
    assert done.returncode == 1
    assert line(done).startswith("layout-advise: no clone of `bts")
    assert re.search("; under Valgrind: .* was not found.*; step by step: the same; ", line(done))


LEFT = """
#include <setjmp.h>
#include <stdlib.h>
static jmp_buf out;
__attribute__((noipa)) void hot(long *p, long n) { for (long i = 0; i < n; i++) p[i] += i; longjmp(out, 1); }
int main(int argc, char **argv) {
    long n = atol(argv[1]), *p = calloc(n, sizeof *p);
    for (volatile int k = 0; k < 3000000 / n; k++) if (!setjmp(out)) hot(p, n);
    return 0; }
"""


@pytest.fixture
def left(tmp_path: Path) -> tuple[str, ...]:
    """A program whose hotspot is left by longjmp, and the arguments that trace it but for the number of elements."""
    (tmp_path / "p.c").write_text(LEFT)
    subprocess.run(["gcc", "-O1", "-g", "-o", str(tmp_path / "p"), str(tmp_path / "p.c")], check=True)
    return ("--until", "trace", "--hotspot", "hot", "--call", "2", "--", "./p")


@pytest.mark.usefixtures("no_valgrind")
def test_what_neither_clone_nor_valgrind_takes_is_stepped(run: Run, tmp_path: Path, left: tuple[str, ...]) -> None:
    done = run(*left, "300")
    assert done.returncode == 0, done.stderr
    reasons = "no clone of hot: .*longjmp.*; under Valgrind: .* was not found.*; traced step by step instead"
    assert re.search(reasons, done.stderr)
    trace = read_trace(find_trace(tmp_path / "run"))
    assert (trace.backend, trace.truncated) == ("step", False)
    (block,) = (a for a in trace.allocations if a.bytes == 8 * 300)
    assert addresses(trace, 300) == [block.address + 8 * i for i in range(300)]


@pytest.mark.usefixtures("no_valgrind")
def test_too_long_for_steps_tells_all_reasons(run: Run, left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    backends = (CloneBackend(), ValgrindBackend(), StepBackend(500))  # as with 100,000, but soon
    monkeypatch.setattr(registry, "BACKENDS", backends)
    done = run(*left, "501")
    assert done.returncode == 1
    assert line(done).startswith("layout-advise: no clone of hot: ")
    assert re.search("longjmp; under Valgrind: .* was not found.*; step by step: .*more than 500 accesses; ", line(done))


def test_when_nothing_works_no_other_backend_is_recommended(
    run: Run, refused: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise TraceError("hot cannot be traced under Valgrind", "it has AVX-512 code", "use --backend clone")

    monkeypatch.setattr(ValgrindBackend, "trace", fails)
    done = run(*refused)
    assert "AVX-512 code; step by step: the same; ask for another call or hotspot" in line(done)
    assert "use --backend" not in line(done)


@pytest.mark.slow
def test_single_steps_have_a_time_limit(run: Run, tmp_path: Path) -> None:
    source = LEFT.replace("long n =", 'if (getenv("LD_BIND_NOW")) sleep(1000); long n =')
    (tmp_path / "p.c").write_text("#include <unistd.h>\n" + source)
    subprocess.run(["gcc", "-O1", "-g", "-o", str(tmp_path / "p"), str(tmp_path / "p.c")], check=True)
    limited = ("--backend", "step", "--timeout", "6", "--until", "trace", "--hotspot", "hot", "--call", "2")
    done = run(*limited, "--", "./p", "30000")
    assert done.returncode == 1
    assert re.search("call 2 of hot was not reached step by step: .*not done after 6 s; raise --timeout", line(done))


def test_a_static_program_is_traced_alone(run: Run, tmp_path: Path) -> None:
    program = build(tmp_path, "triangle", "-O2", "-static")
    expected = 21 * 22 // 2
    done = run("--backend", "valgrind", "--until", "trace", "--hotspot", "hot", "--call", "2", "--", "./triangle")
    assert done.returncode == 0, done.stderr
    trace = read_trace(find_trace(tmp_path / "run"))
    assert (trace.backend, trace.call, trace.allocations) == ("valgrind", 2, ())
    region = region_of(program, 0)
    counts = sorted(
        s.count for r, s in zip(trace.references, trace.streams, strict=True) if s and region.contains(r.pc) and r.bytes == 8
    )
    assert counts[-2:] == [expected, expected]  # m[i][j] is read, m[j][i] written


def test_a_static_program_goes_no_further(run: Run, tmp_path: Path) -> None:
    build(tmp_path, "triangle", "-O2", "-static")
    assert "--backend valgrind --until trace --hotspot" in line(run("--", "./triangle"))
    assert "linked statically" in line(run("--backend", "valgrind", "--", "./triangle"))
    unnamed = run("--backend", "valgrind", "--until", "trace", "--", "./triangle")
    assert unnamed.returncode == 2
    assert "name it with --hotspot" in line(unnamed)
    never = run("--backend", "valgrind", "--until", "trace", "--hotspot", "hot", "--call", "9", "--", "./triangle")
    assert "hot was entered 3 times" in line(never)


def test_too_many_accesses_for_single_steps(tmp_path: Path) -> None:
    program = build(tmp_path, "particles", "-O2")
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "hot")
    with park([str(program)], entry, 2, timeout=60) as parked:

        def steps(limit: int) -> Trace:
            region = functools.partial(region_of, program)
            return StepBackend(limit).trace(request(parked, region, Rerun([str(program)], entry, 2, 100_000))).trace

        whole = steps(100_000)
        clone = trace_call(parked, region_of(program, parked.load_base), 2, folder=tmp_path)
        assert (whole.references, whole.streams, whole.backend) == (clone.references, clone.streams, "step")
        assert (whole.others, clone.others) == (False, False)
        assert whole.control is not None
        assert whole.control.nodes is not None
        assert whole.control == clone.control
        with pytest.raises(TraceError, match="hot cannot be stepped: more than 500 accesses"):
            steps(500)


def test_pin_needs_a_kit(run: Run, tmp_path: Path, particles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIN_ROOT", "")
    without = run("--backend", "pin", "--", str(particles))
    assert without.returncode == 4
    assert "PIN_ROOT names no kit" in line(without)
    monkeypatch.setenv("PIN_ROOT", str(tmp_path))
    wrong = run("--backend", "pin", "--", str(particles))
    assert wrong.returncode == 4
    assert "is no Pin kit: it has no pin" in line(wrong)


def fake(folder: Path, version: str, *files: str) -> Path:
    """An installation of Valgrind that consists of a version."""
    program = folder / "bin" / "valgrind"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return program


HEADER, CORE = "include/valgrind/pub_tool_tooliface.h", "lib/valgrind/libcoregrind-amd64-linux.a"
PRELOAD = "libexec/valgrind/vgpreload_core-amd64-linux.so"


def test_the_installed_valgrind_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_VALGRIND", str(fake(tmp_path / "whole", "valgrind-3.24.0", HEADER, CORE, PRELOAD)))
    found = find_valgrind()
    assert (found.version, found.support) == ("3.24.0", tmp_path / "whole" / "libexec" / "valgrind")


@pytest.mark.parametrize(
    ("version", "files", "why"),
    [
        ("valgrind-3.15.0", (HEADER, CORE, PRELOAD), "version 3.15.0 is too old: 3.19 is needed"),
        ("valgrind-3.19.0", (CORE, PRELOAD), "came without its headers"),
        ("valgrind-3.19.0", (HEADER, PRELOAD), "came without its libraries"),
        ("valgrind-3.19.0", (HEADER, CORE), "does not run 64-bit programs"),
        ("nonsense", (HEADER, CORE, PRELOAD), "does not tell its version"),
    ],
)
def test_an_unfit_valgrind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, files: tuple[str, ...], why: str
) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_VALGRIND", str(fake(tmp_path, version, *files)))
    with pytest.raises(MachineError, match=why):
        find_valgrind()


def test_without_valgrind_nothing_runs(run: Run, tmp_path: Path, particles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_VALGRIND", str(tmp_path / "valgrind"))
    done = run("--backend", "valgrind", "--", str(particles))
    assert done.returncode == 4
    assert "was not found" in line(done)
    assert not (tmp_path / "run").exists()


def test_avx512_is_found_before_the_run(run: Run, tmp_path: Path) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text("void hot(double *p) { for (int i = 0; i < 64; i++) p[i] *= 3; }\nint main(void) { return 0; }\n")
    wide = ("-O3", "-march=skylake-avx512", "-mprefer-vector-width=512")
    subprocess.run(["gcc", *wide, "-o", str(program), str(source)], check=True)
    binary = ElfBinary.open(program)
    with pytest.raises(TraceError, match=r"hot cannot be traced under Valgrind: it has AVX-512 code \(`v.*zmm"):
        check_instructions(binary.region("hot", 0))
    subprocess.run(["gcc", "-O3", "-march=haswell", "-o", str(program), str(source)], check=True)
    check_instructions(ElfBinary.open(program).region("hot", 0))


def test_other_code_counts_where_it_touches_the_same_memory() -> None:
    region = Region("hot", "function", 0x1000, (CodeRange(0x1000, bytes(64)),), "app", 0)
    pcs = {0x1000: [0x9000_0010], 0x5000: [0x9000_0080], 0x5010: [0xA000_0000], 0x5020: [0x7FFF_0000]}
    trace = Trace(
        "hot", 1, "valgrind",
        tuple(Reference(n, pc, 0, "read", 8) for n, pc in enumerate(pcs)),
        tuple(fold(addresses) for addresses in pcs.values()),
        4, False, Registers((0,) * 16, 0x1000, 0, 0, 0), (),
        (Allocation(0x9000_0000, 256, 0, 0x1000),),
    )  # fmt: skip
    found = relevant(trace, region)
    # the second reference is in the same heap block as the first
    assert [(r.id, r.pc) for r in found.references] == [(0, 0x1000), (1, 0x5000)]
    assert (len(found.streams), found.accesses) == (2, 2)
