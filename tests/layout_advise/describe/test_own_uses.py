"""What a region does itself to the fields of a structure that others use as well."""

from __future__ import annotations

import subprocess

import pytest

from layout_advise.describe.describe import structures
from layout_advise.describe.own_uses import own_uses
from layout_advise.observe.observe import Observation, observe, united
from layout_advise.reports.words.structure_words import shape
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park

PROGRAM = """#include <stdlib.h>
struct cell { double t, flux, source, age; };
__attribute__((noinline)) void warm(struct cell *c, long n) { for (long i = 0; i < n; i++) c[i].t += c[i].source; }
__attribute__((noinline)) void flow(struct cell *c, long n) { for (long i = 0; i < n; i++) c[i].flux = 0.5 * c[i].t; }
int main(void) {
    struct cell *c = calloc(1000, sizeof *c);
    for (int k = 0; k < 9; k++) { warm(c, 1000); flow(c, 1000); }
    return c[7].t > 1e9;
}
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observation, Observation]:
    """A call of each function, as if it were by itself."""
    folder = tmp_path_factory.mktemp("own")
    program = folder / "cells"
    (folder / "cells.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", program, folder / "cells.c"], check=True)
    binary = ElfBinary.open(program)
    seen = []
    for name in ("warm", "flow"):
        function = binary.find(name)
        entry = Entry(program, function.start, binary.read(function.start, function.size), name)
        with park([str(program)], entry, 3, timeout=60) as process:
            region = binary.region(function, process.load_base)
            seen.append(observe(process, binary, region, 3, 1 << 20, folder))
    return seen[0], seen[1]


def test_accesses_of_other_regions_are_not_its_own(both: tuple[Observation, Observation]) -> None:
    warm, flow = both
    together = united(warm, [flow])
    (cell,) = together.structures
    assert [(f.name, f.reads, f.writes) for f in cell.fields] == [
        ("t", 2000, 1000),
        ("flux", 0, 1000),
        ("source", 1000, 0),
    ]
    own = own_uses(cell, together)
    assert own is not None
    assert [(f.reads, f.writes) for f in own] == [(1000, 1000), (0, 0), (1000, 0)]
    (report,) = structures(together)
    assert [(f.name, f.reads, f.writes, f.beside) for f in report.fields] == [
        ("t", 1000, 1000, False),
        ("flux", 0, 0, True),
        ("source", 1000, 0, False),
    ]
    assert shape(report) == "array of structures; the hotspot uses 2 of 4 fields, 16 of 32 bytes of each element"


def test_of_one_region_all_are_its_own(both: tuple[Observation, Observation]) -> None:
    for seen in both:
        (cell,) = seen.structures
        assert own_uses(cell, seen) == cell.fields
        (report,) = structures(seen)
        assert not any(field.beside or field.threads for field in report.fields)
