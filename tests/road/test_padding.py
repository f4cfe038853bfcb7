"""False sharing: elements, or rows of them, on lines of their own, as a term, verified by threads."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.build.mockups import make_all
from layout_advise.layoutalgebra.derive.structure import Axis, Candidate, Dim, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.families import SMALL_PADDED, can_pad
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.terms.text import parse
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.timing.variants import Variant
from layout_advise.observe.observe import observed
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.proposals import propose
from layout_advise.propose.recipes import Recipe
from layout_advise.propose.source import Source, code_of
from layout_advise.propose.stage import attempt
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.verify.copies import in_copies
from layout_advise.verify.verify import Subject, verify
from tests.support.algebra_structures import is_injective
from tests.support.openmp.road import build_bodies, trace_and_compare
from tests.support.tracing.openmp_traces import parked_team

ZEROS = r"""
#include <omp.h>
#include <stdio.h>
struct own { long sum, calls; } own[32];
long n = 5;
__attribute__((noinline)) void move(double dt)
{
#pragma omp parallel
    { volatile long *mine = &own[omp_get_thread_num()].sum; *mine = 0; *mine += n; }
}
int main(void) { for (int call = 0; call < 6; call++) { n++; move(1); } printf("%ld\n", own[0].sum); }
"""

READS, WRITES = Variant("c1", form="wrong"), Variant("c1", form="wrong-writes")


def counters(count: int, size: int = 8, inner: int = 1, fields: int = 1) -> Structure:
    """``count`` rows of ``inner`` elements of ``size`` bytes, of which as many 8-byte fields are used."""
    used = tuple(Field(f"f{k}", 8 * k, 8, "long", 100, 100) for k in range(fields))
    dims = (Dim(count, size * inner), *((Dim(inner, size),) if inner > 1 else ()))
    return Structure("s0", "counters", 0x1008, count * inner * size, dims, used)


def padded(structure: Structure) -> list[Candidate]:
    """The candidates whose records have lines of their own."""
    found = explore([structure], walks={"s0": Walk(len(structure.dims) - 1, shared=True)})
    return [c for c in found if c.families == ("pad",) and all(a.stride % LINE == 0 for a in outer(c.relayouts[0]))]


def outer(layout: Relayout) -> list[Axis]:
    return [m.axes[0] for m in layout.fields]


def lines(layout: Relayout, row: int) -> set[int]:
    """The lines that the elements of one outermost index lie on."""
    rest = [range(dim.count) for dim in layout.structure.dims[1:]]
    starts = [
        (m.place((row, *index)), layout.structure.fields[m.field].bytes) for m in layout.fields for index in product(*rest)
    ]
    return {line for start, size in starts for line in range(start // LINE, (start + size - 1) // LINE + 1)}


@given(st.integers(2, 20), st.integers(1, 4), st.integers(0, 3), st.integers(1, 9))
def test_rows_meet_in_no_line(count: int, fields: int, unused: int, inner: int) -> None:
    structure = counters(count, 8 * (fields + unused), inner, fields)
    for candidate in padded(structure):
        (layout,) = candidate.relayouts
        assert is_injective(layout)
        seen = [lines(layout, row) for row in range(count)]
        assert sum(map(len, seen)) == len(set().union(*seen))
        assert candidate.derivation[0] == "8"
        (part,) = layout.parts
        assert parse(part.term).size * part.unit_bytes == layout.bytes


def test_counters_get_a_line_each_and_come_first() -> None:
    structure = counters(16)
    assert explore([structure]) == ()
    found = explore([structure], walks={"s0": Walk(0, shared=True)})
    assert [c.relayouts[0].term for c in found] == ["A_16 ⊗ S_{0;8}"]
    two = explore([counters(16, fields=2, size=16)], walks={"s0": Walk(0, shared=True)})
    assert two[0].relayouts[0].term == "A_16 ⊗ S_{0,1;8}"


def test_rows_are_padded_as_a_whole() -> None:
    (whole, *_) = padded(counters(4, inner=9))
    assert whole.relayouts[0].term == "A_4 ⊗ S_{0:9;16}"


def test_large_arrays_and_whole_lines_are_left_alone() -> None:
    assert not can_pad(counters(SMALL_PADDED))
    assert not can_pad(counters(100, size=64))
    assert not can_pad(counters(1))


def test_a_padded_layout_is_verified_by_two_threads(tmp_path: Path) -> None:
    seen, found = trace_and_compare(build_bodies(tmp_path, "-DCOUNT"), 2, tmp_path)
    (structure,) = (s for s in seen.structures if s.name == "own")
    assert structure.count == 32
    assert found.pop("c1-wrong").reason is not None
    assert found["c1"].reason is None
    assert found["identity"].reason is None
    text = (tmp_path / "c1.c").read_text()
    assert "2048" in text


def test_where_all_that_is_read_is_alike_wrong_writes_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "zeros.c").write_text(ZEROS)
    program = tmp_path / "zeros"
    subprocess.run(["gcc", "-g", "-O2", "-fopenmp", "-o", program, tmp_path / "zeros.c"], check=True)
    with parked_team(program, 3, 2, "move") as (process, binary, function):
        region = binary.region(function, process.load_base, callees=True)
        with process.fork() as copy:
            seen = observed(process, binary, region, trace_region(process, copy, region, 3))
        lifted = attempt(region, "none")
        assert isinstance(lifted, Lifted)
        best = propose(seen, 1)[0]
        wanted = [
            Recipe(READS, best, checked=False),
            Recipe(WRITES, best, checked=False),
        ]
        code, compiler = code_of(seen, lifted), Compiled("gcc", ("-O2",))
        source = Source(code, lifted, seen.trace, seen.structures, compiler)
        made = make_all(wanted, source, compiler, tmp_path)
        subjects = [Subject(variant, m.path, None, (), None) for variant, m in made.items() if m.path is not None]
        assert seen.team is not None
        with in_copies(process, subjects, lifted, seen.team) as runner:
            found = verify(runner, subjects, tmp_path)
    assert found[READS].reason is None
    assert "the written bytes differ" in (found[WRITES].reason or "")
