"""Programs whose short calls are not the same in each run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.observe.case import arguments_of
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.command import advise

PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
static double a[4096];
__attribute__((noipa)) double some(const double *from, long unused, long n)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += from[i];
    return s;
}
__attribute__((noipa)) double those(const double *from, long which, long n) { return some(from + which % 7, which, n); }
int main(void)
{
    double total = 0;
    for (long i = 0; i < 4096; i++)
        a[i] = i;
    for (long k = 0; k < 400000; k++)
        total += those(a + k % 64, getpid() * 977L, 500 + k % 100);
    return total < 0;
}
"""


def built(folder: Path, *flags: str) -> Path:
    (folder / "pids.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", *flags, "-o", folder / "pids", folder / "pids.c"], check=True)
    return folder / "pids"


def test_registers_that_the_code_does_not_read_are_no_arguments(tmp_path: Path) -> None:
    binary = ElfBinary.open_module(built(tmp_path))
    arguments = {name: arguments_of(binary.region(binary.find(name), 0, callees=True)) for name in ("some", "those")}
    assert arguments["some"] == (7, 2)
    assert set(arguments["those"]) >= {7, 6, 2}


@pytest.mark.slow
def test_calls_that_differ_from_run_to_run_leave_a_report(tmp_path: Path) -> None:
    """The argument that differs is read: what was recorded of the calls cannot be replayed."""
    (hotspot,) = advise([built(tmp_path)], "--hotspot", "those", folder=tmp_path).hotspots
    assert hotspot.batch is None
    assert hotspot.verdict.reason == "short-calls"
    assert "differs from run to run" in hotspot.verdict.text
