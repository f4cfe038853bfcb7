# ruff: noqa: E501  (C source, a line a statement list)
"""When the Valgrind tool records, and when it stops: calls that do not simply return, other threads, forks, signals."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import ProgramError, TraceError
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.run import ToolRun
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park
from tests.support import slower
from tests.support.tracing.trace_requests import request
from tests.support.tracing.window_programs import BODIES, HEAD


def traced(program: Path, call: int, module: Path | None = None) -> tuple[ToolRun, dict[str, int]]:
    """The run, and how often the bytes of ``data`` and of ``other`` were accessed."""
    module = module or program
    binary = ElfBinary.open_module(module)
    function = binary.find("hot")
    entry = Entry(module, function.start, binary.read(function.start, function.size), "hot")
    run = run_tool(Rerun([str(program)], entry, call, 1 << 40, timeout=60))
    base = binary.load_base(run.process.mappings)
    assert base is not None
    counts = {"data": 0, "other": 0}
    for reference in run.references:
        low = reference.stream and getattr(reference.stream, "minimum", None)
        addresses = list(reference.stream.expand()) if reference.stream and low is None else []  # type: ignore[union-attr]
        for address in addresses:
            variable = binary.variable_at(address - base)
            if variable is not None and variable.name in counts:
                counts[variable.name] += 1
    return run, counts


def compiled(folder: Path, name: str) -> Path:
    source, program = folder / "p.cpp", folder / "p"
    source.write_text(HEAD + BODIES[name])
    subprocess.run(["g++", "-O1", "-w", "-g", "-o", str(program), str(source), "-lpthread"], check=True)
    return program


@pytest.mark.parametrize(
    ("name", "call", "data", "foreign"),
    [
        ("plain", 2, 101, False),
        ("exception", 2, 101, False),
        ("longjmp", 2, 101, False),
        ("recursion", 3, 101 + 1 + 2, False),  # calls 1 and 2 are the first one and what it makes; the third is outermost
        *slower(("recursion", 2, 1 + 1, False)),
        *slower(("fork", 2, 101, False)),
        ("threads", 2, 101, True),
        *slower(("starts inside", 2, 101, True)),
        *slower(("worker", 2, 101, False)),
        ("signal", 2, 101 + 1, False),
        *slower(("descriptors", 2, 101, False)),
        ("exit", 2, 101, False),
    ],
)
def test_exactly_the_call_is_recorded(tmp_path: Path, name: str, call: int, data: int, foreign: bool) -> None:
    run, counts = traced(compiled(tmp_path, name), call)
    assert counts == {"data": data, "other": 0}
    assert (bool(run.foreign), run.truncated) == (foreign, False)


def test_a_hotspot_in_a_library_that_is_loaded_late(tmp_path: Path) -> None:
    library, source, program = tmp_path / "libhot.so", tmp_path / "m.c", tmp_path / "m"
    (tmp_path / "hot.c").write_text(
        "volatile long data[1000]; long quiet(void) { return 1; }\nvoid hot(long n) { for (long i = 0; i < n; i++) data[i] = i; }\n"
    )
    source.write_text(
        '#include <dlfcn.h>\nint main(void) { void *l = dlopen("' + str(library) + '", RTLD_NOW);\n'
        'void (*hot)(long) = (void (*)(long))dlsym(l, "hot"); for (int k = 0; k < 3; k++) hot(100 + k); return 0; }\n'
    )
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "hot.c")], check=True)
    subprocess.run(["gcc", "-O1", "-o", str(program), str(source), "-ldl"], check=True)
    _, counts = traced(program, 2, library)
    assert counts["data"] == 101


def test_a_program_that_crashes_before_the_call(tmp_path: Path) -> None:
    program = compiled(tmp_path, "exit")
    with pytest.raises(ProgramError, match="hot was entered 2 times; the program ended with exit status 3"):
        traced(program, 3)


WIDE = '__asm__ volatile("vpxord %%zmm0, %%zmm0, %%zmm0" ::: "xmm0");'


@pytest.mark.parametrize(("before", "within"), [(WIDE, ""), ("", WIDE)])
def test_an_instruction_that_valgrind_does_not_know(tmp_path: Path, before: str, within: str) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text(
        f"__attribute__((noipa)) void hot(void) {{ {within} }}\nint main(void) {{ {before} hot(); return 0; }}\n"
    )
    subprocess.run(["gcc", "-O1", "-mavx512f", "-o", str(program), str(source)], check=True)
    with pytest.raises(
        TraceError, match=r"an instruction that the program executes \(AVX-512\): 0x62 .*; use --backend clone"
    ):
        traced(program, 1)


def test_a_program_that_crashes_within_the_call(tmp_path: Path) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text("__attribute__((noipa)) void hot(int *p) { *p = 1; }\nint main(void) { hot(0); return 0; }\n")
    subprocess.run(["gcc", "-O1", "-o", str(program), str(source)], check=True)
    with pytest.raises(ProgramError, match="the program was killed by SIGSEGV within call 1"):
        traced(program, 1)


def test_a_program_that_allocates_otherwise_under_valgrind(tmp_path: Path) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text(
        "#include <stdlib.h>\n__attribute__((noipa)) void hot(long *p, long *q) { for (int i = 0; i < 100; i++) p[i] = q[i]; }\n"
        'int main(void) { long *p = calloc(200, 8), *q = calloc(getenv("VALGRIND_LIB") ? 300 : 200, 8);\n'
        "for (int k = 0; k < 3; k++) hot(p, q); return 0; }\n"
    )
    subprocess.run(["gcc", "-O1", "-g", "-o", str(program), str(source)], check=True)
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "hot")
    with park([str(program)], entry, 2, timeout=60) as parked:
        region = binary.region(function, parked.load_base)
        found = ValgrindBackend().trace(request(parked, region, Rerun([str(program)], entry, 2, 1 << 40)))
        first, second = parked.allocations()
    assert any("1 of 2 heap blocks have no counterpart" in note for note in found.notes)
    assert any("1 references touch memory that the parked program does not have" in note for note in found.notes)
    write, read = (
        next(
            s
            for r, s in zip(found.trace.references, found.trace.streams, strict=True)
            if r.kind == kind and s and s.count == 100
        )
        for kind in ("write", "read")
    )
    assert isinstance(write, FoldedStream)
    assert isinstance(read, FoldedStream)
    assert list(write.expand()) == [first.address + 8 * k for k in range(100)]
    assert not {a for a in read.expand() if second.address <= a < second.address + second.bytes}


SCATTERED = """
#include <stdlib.h>
static long data[1 << 25]; /* a set of them is a bitmap of 4 MB */
__attribute__((noipa)) void hot(unsigned long x) { for (int i = 0; i < 50000; i++) { x = x * 6364136223846793005 + 1; data[x >> 39]++; } }
int main(void) { for (int k = 0; k < 3; k++) hot(k); return 0; }
"""


def scattered(folder: Path) -> Path:
    source, program = folder / "p.c", folder / "p"
    source.write_text(SCATTERED)
    subprocess.run(["gcc", "-O1", "-g", "-o", str(program), str(source)], check=True)
    return program


def entry_of(program: Path) -> Entry:
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    return Entry(program, function.start, binary.read(function.start, function.size), "hot")


@pytest.mark.parametrize("raw", [False, True])
def test_a_disk_that_is_full_while_the_tool_writes(tmp_path: Path, small_disk: Path, raw: bool) -> None:
    program = scattered(tmp_path)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(700 << 10))
    with pytest.raises(
        TraceError, match=r"cannot write what was traced to .*small-disk: No space left on device; free some"
    ):
        run_tool(Rerun([str(program)], entry_of(program), 2, 1 << 40, folder=small_disk, timeout=60), raw=raw)
    assert list(small_disk.iterdir()) == [filler]


def test_a_disk_that_is_full_when_the_tool_begins(tmp_path: Path, small_disk: Path) -> None:
    program = scattered(tmp_path)
    with contextlib.suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    with pytest.raises(TraceError, match=r"cannot write .* to .*small-disk: No space left on device; free some space"):
        run_tool(Rerun([str(program)], entry_of(program), 2, 1 << 40, folder=small_disk, timeout=60))
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_the_command_says_that_the_disk_is_full(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scattered(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("layout_advise.checks.scratch_parent", lambda: tmp_path)  # there is room when the run begins
    monkeypatch.setattr("layout_advise.rundir.scratch_parent", lambda: small_disk)
    code = main(["trace", "-f", "-o", "run", "--backend", "valgrind", "--until", "trace", "--hotspot", "hot", "--", "./p"])
    lines = [text for text in capfd.readouterr().err.splitlines() if text.startswith("layout-advise: ")]
    assert code == 1
    assert len(lines) == 1, lines
    assert "hot was not traced under Valgrind: the tool cannot write" in lines[0]
    assert "No space left on device; free some space" in lines[0]
    assert not list(small_disk.iterdir())


@pytest.mark.parametrize("calls", [5_000_000, pytest.param(100_000_000, marks=pytest.mark.slow)])
def test_calls_that_are_passed_leave_nothing(tmp_path: Path, calls: int) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text(
        "long data[1000];\n__attribute__((noipa)) void hot(long n) { data[n % 1000] += n; }\n"
        f"int main(void) {{ for (long k = 1; k <= {calls}; k++) hot(k); return data[1] == 0; }}\n"
    )
    subprocess.run(["gcc", "-O1", "-g", "-o", str(program), str(source)], check=True)
    call = calls - 7
    run, counts = traced(program, call)
    assert counts == {"data": 1, "other": 0}  # the read and the write of one instruction
    assert run.process.registers.gpr[7] == call  # rdi
    assert run.accesses < 20
    with pytest.raises(ProgramError, match=f"no call {calls + 1} under Valgrind: hot was entered {calls} times"):
        traced(program, calls + 1)
