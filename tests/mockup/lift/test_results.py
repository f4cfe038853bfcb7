"""The registers that count as the result where the debug information does not say."""

from __future__ import annotations

import subprocess
from pathlib import Path

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.lift.lift import lift
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
