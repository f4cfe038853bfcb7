"""Where code rounds addresses on its stack, the stacks of two runs must begin alike."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.code.frame_alignment import frame_alignment
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park
from tests.support.clone_programs import region_of
from tests.support.tracing.trace_requests import request

SOURCE = """
#include <string.h>
__attribute__((noinline)) void fill(volatile long *p, long n) { for (long i = 0; i < n; i++) p[i] = i * n; }
__attribute__((noinline)) long hot(long n)
{
    _Alignas(%d) volatile long local[64];
    long total = 0;
    fill(local, n);
    for (long i = 0; i < n; i++) total += local[i];
    return total;
}
int main(void) { volatile long n = 60; long t = 0; for (int call = 0; call < 5; call++) t += hot(n); return t == 7; }
"""


def built(folder: Path, alignment: int) -> Path:
    (folder / "p.c").write_text(SOURCE % alignment)
    subprocess.run(["gcc", "-O1", "-g", "-o", folder / "p", folder / "p.c"], check=True)
    return folder / "p"


@pytest.mark.parametrize("alignment", [8, 16, 32, 64, 1024])
def test_the_greatest_rounding_is_found(alignment: int, tmp_path: Path) -> None:
    binary = ElfBinary.open(built(tmp_path, alignment))
    assert frame_alignment(binary.region("hot", 0)) == max(alignment, 16)
    assert frame_alignment(binary.region("fill", 0)) == 16


@pytest.mark.parametrize("more", [0, 16, 32, 48])
def test_the_run_under_valgrind_has_the_variables_where_the_parked_program_has_them(
    more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``more`` bytes of environment move the stack of the run under Valgrind alone."""
    program = built(tmp_path, 64)
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "hot")
    monkeypatch.setenv("MOVED", "")
    with park([str(program)], entry, 2, timeout=60) as process:
        region = region_of(program, process.load_base)
        clone = trace_call(process, region, 2, folder=tmp_path)
        monkeypatch.setenv("MOVED", "x" * more)
        found = ValgrindBackend().trace(request(process, region, Rerun([str(program)], entry, 2, 1 << 40, folder=tmp_path)))
    assert found.notes == ()
    assert found.trace.references[: len(clone.references)] == clone.references
    assert found.trace.streams[: len(clone.references)] == clone.streams
