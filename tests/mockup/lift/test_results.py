"""The registers that count as the result where the debug information does not say."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.tracer.program.binary import ElfBinary

SOURCE = """
#include <math.h>
#define HERE __attribute__((noinline, used))
HERE void nothing(double *x, long n) { for (long i = 0; i < n; i++) x[i] = erfc(x[i]); }
HERE double real(const double *x) { return x[1]; }
HERE int whole(const double *x) { return x[0] > 1; }
"""


def test_what_a_call_left_behind_on_one_path_is_no_result(tmp_path: Path) -> None:
    """After erfc xmm0 holds its result or, where the loop did not run, what came in; what rax holds only erfc knows."""
    (tmp_path / "r.c").write_text(SOURCE)
    path = tmp_path / "r.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(path), str(tmp_path / "r.c"), "-lm"], check=True)
    file = ElfBinary.open_module(path)
    assert [out.location for out in lift(file.region("nothing", 0)).live_outs] == [Lane(0, 0)]
    assert Lane(0, 0) in [out.location for out in lift(file.region("real", 0)).live_outs]
    assert Gpr(0) in [out.location for out in lift(file.region("whole", 0)).live_outs]


LOOP = """
#include <stdlib.h>
long other(double **x, long n);
long made(double **x, double *y, long n)
{
    for (long i = 0; i < n; i++) {
        y[i] = 2.0 * y[i];
        x[i] = malloc(sizeof *x[i]);
    }
    return other(x, n);
}
"""


def test_what_is_in_vector_registers_after_malloc_is_left_from_the_code_before(tmp_path: Path) -> None:
    """annoy's loop over a queue: "the returned value differs". Nothing is known of the call behind it; it may read them."""
    (tmp_path / "m.c").write_text(LOOP)
    path = tmp_path / "m.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(path), str(tmp_path / "m.c")], check=True)
    function = ElfBinary.open_module(path).region("made", 0)
    heads = Counter(range(function.ranges[0].start, function.ranges[0].start + len(function.ranges[0].code)))
    nest = next(iter(hottest_nests(function, heads)))
    assert isinstance(nest, LoopNest)
    assert Lane(0, 0) in nest.outs
    lifted = lift(nest.region(function), outs=nest.outs, opaque=True)
    assert not any(isinstance(out.location, Lane) for out in lifted.live_outs)
