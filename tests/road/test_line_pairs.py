"""Haine, Aumage and Barthou's Fig. 2 from compiled programs: even lines use the first two of four numbers, odd lines the
last two, in memory of which only ``double *`` is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise.layoutalgebra import explore, parse
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.observe.observe import observe
from layout_advise.reports.model.contract import read_report
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park
from tests.support.clone_programs import region_of

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#define WIDTH 256
static double total;
__attribute__((noipa)) void relax(double *u, const int *index, long lines, double w)
{
    %s
}
int main(void)
{
    long lines = 2 * 100;
    double *u = malloc(4 * WIDTH * lines * sizeof *u), s = 0;
    int *index = malloc(WIDTH * lines * sizeof *index);
    for (long l = 0; l < lines; l++) for (long j = 0; j < WIDTH; j++) { long k = WIDTH * l + j; index[%s; }
    for (long k = 0; k < 4 * WIDTH * lines; k++) u[k] = k %% 7;
    for (int call = 0; call < 900; call++) relax(u, index, lines, 1e-3);
    for (long k = 0; k < 4 * WIDTH * lines; k++) s += u[k];
    printf("%%g %%g\n", s, total);
}
"""
LINES, SITES = "for (long l = 0; l < lines; l++)", "for (long j = 0; j < WIDTH; j++)"
LOOPS = {
    "first field of a line": (
        f"{LINES} {SITES} {{ double *at = u + 4 * (WIDTH * l + j) + index[l]; at[0] += w; at[1] += w * j; }}",
        "l] = 2 * (l % 2)",
    ),
    "place of a site": (f"{LINES} {SITES} {{ double *at = u + index[WIDTH * l + j]; at[0] += w; at[1] += w * j; }}",
                        "k] = 4 * k + 2 * (l % 2)"),
    "read only": (
        f"double s = 0; {LINES} {SITES} {{ double *at = u + index[WIDTH * l + j]; s += at[0] * at[1]; }} total += w * s;",
        "k] = 4 * k + 2 * (l % 2)",
    ),
    "two loops": (
        "for (long l = 0; l < lines; l += 2) { double *even = u + 4 * WIDTH * index[l], *odd = u + 4 * WIDTH * index[l + 1];"
        f" {SITES} {{ even[4 * j] += w; even[4 * j + 1] += w * j; }}"
        f" {SITES} {{ odd[4 * j + 2] += w; odd[4 * j + 3] -= w * j; }} }}",
        "l] = l",
    ),
}  # fmt: skip
EXAMPLE = "(A_100 ⊗ S_{0;2} ⊗ A_256 ⊗ S_{0,1;4}) ⊕ (A_100 ⊗ S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})"


def compiled(folder: Path, loops: str, *flags: str) -> Path:
    source, program = folder / "lines.c", folder / "lines"
    source.write_text(PROGRAM % LOOPS[loops])
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    return program


def line_pairs(program: Path, folder: Path) -> Derived:
    """What is derived of ``u`` from a traced call."""
    binary = ElfBinary.open(program)
    function = binary.find("relax")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "relax")
    with park([str(program)], entry, 3, timeout=60) as process:
        seen = observe(process, binary, region_of(program, process.load_base, "relax"), 3, 1 << 24, folder)
    (found,) = (d for d in seen.derived if d.structure.bytes >= 8 * 4 * 256 * 200)
    return found


@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-g"), ("-O3", "-march=haswell")], ids="_".join)
@pytest.mark.parametrize("loops", LOOPS)
def test_the_papers_example_is_found_in_a_program(tmp_path: Path, loops: str, flags: tuple[str, ...]) -> None:
    found = line_pairs(compiled(tmp_path, loops, *flags), tmp_path)
    assert found.term == parse(EXAMPLE)
    assert (found.unit_bytes, found.structure.element_bytes) == (8, 32)
    assert [d.count for d in found.structure.dims] == [100, 2, 256]
    if loops == "two loops":
        assert found.one_field_each is None
    else:  # one instruction goes to the first and to the third number
        assert found.one_field_each is not None
        assert found.one_field_each.structure.element_bytes == 16
    assert {f for c in explore([found.structure]) for f in c.families} >= {"soa", "aosoa"}


@pytest.mark.slow
@pytest.mark.parametrize("loops", ["first field of a line", "two loops"])
def test_layouts_of_it_are_verified(tmp_path: Path, loops: str) -> None:
    """In the first program one instruction goes to other fields in odd lines."""
    program, run = compiled(tmp_path, loops, "-O2"), tmp_path / "run"
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", "--restores", "3", "-o", str(run), "--", str(program)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (hotspot,) = read_report(run).hotspots
    structure = next(s for s in hotspot.structures if s.bytes >= 8 * 4 * 256 * 200)
    assert structure.layout == EXAMPLE
    verified = [c for c in hotspot.candidates if c.evidence == "verified" and c.structures == (structure.id,)]
    assert {f for c in verified for f in c.families} >= {"soa", "aosoa"}
    assert json.loads((run / "report.json").read_text())["status"] == "complete"
