"""Mock-ups whose structures are reached through loaded indices and pointers: gathers, reloaded pointers, lists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.emit import emit
from layout_advise.mockup.run.build import build
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout, run_mockup

GATHER = """
struct m { double re, im, unused[2]; };
struct v { double re, im; };
void times(struct v *out, const struct m *u, const int *sites, long n) {
    for (long i = 0; i < n; i++) {
        int s = sites[i];
        double re = out[s].re * u[s].re - out[s].im * u[s].im;
        out[s].im = out[s].re * u[s].im + out[s].im * u[s].re;
        out[s].re = re;
    }
}"""


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("kind", ["soa", "aosoa", "compact"])
def test_two_structures_through_an_index_array(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(GATHER, "times", flags, tmp_path)
    random = np.random.default_rng(3)
    out, matrix = random.random((50, 2)), random.random((50, 4))
    sites = random.permutation(50)[:31].astype(np.int32)
    case.arrays, case.integers = [out, matrix, sites], [out.ctypes.data, matrix.ctypes.data, sites.ctypes.data, 31]
    pair = f64_fields(("re", 0), ("im", 8))
    first = Structure("s0", "out", out.ctypes.data, out.nbytes, (Dim(50, 16),), pair)
    second = Structure("s1", "matrix", matrix.ctypes.data, matrix.nbytes, (Dim(50, 32),), pair)
    case.structures = (first, second)
    verify(case, candidate(relayout(first, kind), relayout(second, kind)))


AGAIN = """
struct cell { double ex, ey, unused[2]; };
struct sim { struct cell *cells; long count; };
struct body { double x, y, vx; int cell; unsigned char alive; };
void push(const struct sim *const *held, struct body *b, long n)
{
    for (long i = 0; i < n; i++) {
        if (!b[i].alive) continue;
        const struct cell *c = &(*held)->cells[b[i].cell];
        b[i].x += b[i].vx * c->ex;
        b[i].y += c->ey;
    }
}
"""


@pytest.mark.parametrize("kind", ["soa", "aosoa", "compact"])
@pytest.mark.parametrize("flags", [FLAGS["O3-avx2"], *slower((FLAGS["O2"],))], ids=["O3-avx2", "O2"])
def test_a_pointer_that_the_loop_loads_anew(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """gcc does not load it before a loop that may go on without it; `s.cell` of a particle code could not be re-laid."""
    case = Case(AGAIN, "push", flags, tmp_path)
    random = np.random.default_rng(5)
    cells, bodies = random.random((12, 4)), random.random((29, 4))
    bodies.view(np.int32)[:, 6] = random.integers(0, 12, 29)
    bodies.view(np.int32)[:, 7] = random.integers(0, 2, 29)
    sim = np.array([cells.ctypes.data, 12])
    held = np.array([sim.ctypes.data])
    case.arrays, case.integers = [cells, bodies, sim, held], [held.ctypes.data, bodies.ctypes.data, 29]
    first = Structure("s0", "cells", cells.ctypes.data, cells.nbytes, (Dim(12, 32),), f64_fields(("ex", 0), ("ey", 8)))
    case.structures = (first,)
    verify(case, candidate(relayout(first, kind)))


NODES = """
struct node { double rank, next, share, x, y, weight; long label, community; };
void gather(struct node *v, const int *edges, long n, double damping)
{
    for (long i = 0; i < n; i++) {
        double sum = 0.0;
        for (long k = 0; k < 2; k++) {
            const struct node *u = &v[edges[2 * i + k]];
            sum += u->rank * u->share;
        }
        v[i].next = damping * sum;
    }
}
"""


def nodes(flags: tuple[str, ...], where: Path) -> tuple[Case, Structure]:
    case = Case(NODES, "gather", (*flags, "-ffp-contract=off"), where)
    random = np.random.default_rng(4)
    data, edges = random.random((48, 8)), random.integers(0, 48, 2 * 48).astype(np.int32)
    case.arrays, case.integers, case.floats = [data, edges], [data.ctypes.data, edges.ctypes.data, 48], [0.5]
    fields = f64_fields(("rank", 0), ("next", 8), ("share", 16))
    shape = Structure("s0", "v", data.ctypes.data, data.nbytes, (Dim(48, 64),), fields)
    case.structures = (shape,)
    return case, shape


@pytest.mark.parametrize(("kind", "known"), [*slower(("compact", True)), ("blocks", True), *slower(("soa", False))])
def test_iterations_that_ran_side_by_side_over_gathered_records_do_so_again(kind: str, known: bool, tmp_path: Path) -> None:
    """gcc sees that the fields of one structure are apart, and no check at run time could tell of gathered ones: the
    identity of examples/graph took 0.7 times the original's time for not being as clumsy."""
    case, shape = nodes(("-O3", "-march=haswell"), tmp_path)
    chosen = candidate(relayout(shape, kind))
    verify(case, chosen)
    same = emit_mockup(case.lifted, None, case.trace, case.structures)
    assert "LA_INDEPENDENT" in same
    assert "LA_MEMBER(la_f64, e0, 16)" in same
    assert ("LA_INDEPENDENT" in emit_mockup(case.lifted, chosen, case.trace, case.structures)) == known
    assert "LA_INDEPENDENT" in emit_mockup(case.lifted, chosen, case.trace, case.structures, variant="simd")
    flags = ("-O3", "-march=haswell", "-ffp-contract=off", "-fno-strict-aliasing")
    assert build(same, tmp_path / "same.so", flags=flags).path
    code = subprocess.run(["objdump", "-d", str(tmp_path / "same.so")], capture_output=True, text=True, check=True).stdout
    assert "vmulpd" in code


def test_iterations_that_ran_one_by_one_are_not_said_to_be_independent(tmp_path: Path) -> None:
    case, shape = nodes(("-O2",), tmp_path)
    verify(case, candidate(relayout(shape, "compact")))
    assert "LA_INDEPENDENT" not in emit_mockup(case.lifted, None, case.trace, case.structures)


LIST = """
struct node { struct node *next; double key, sum; };
void walk(struct node *p, double by) { for (; p; p = p->next) p->sum += by * p->key; }"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_the_pointers_of_a_list_in_an_array_become_indices(flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(LIST, "walk", flags, tmp_path)
    data = np.zeros((9, 3))
    order = np.random.default_rng(2).permutation(9)
    places = data.ctypes.data + 24 * order
    data.view(np.int64)[order, 0] = [*places[1:], 0]
    case.arrays, case.integers, case.floats = [data], [int(places[0])], [0.5]
    fields = (Field("next", 0, 8), *f64_fields(("key", 8), ("sum", 16)))
    shape = Structure("s0", "nodes", data.ctypes.data, data.nbytes, (Dim(9, 24),), fields)
    case.structures = (shape,)
    case.prepare()
    chosen = candidate(relayout(shape, "soa"))
    assert case.run(chosen, "soa")[0] == case.expected  # no wrong map: it may lead round in circles
    found, done = case.run(chosen, "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)
    assert done.remapped == 4 * 9
    made = emit(case.lifted, chosen, case.trace, case.structures)
    assert not made.translated, "the list's own pointers are numbers in the new arrays"
    assert "LA_WITHIN" not in made.text


TABLE = """
struct node { struct node *next; double key, sum; };
void through(struct node **p, double by) { for (; *p; p++) (*p)->sum += by * (*p)->key; }"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_pointers_in_memory_that_stays_are_divided(flags: tuple[str, ...], tmp_path: Path) -> None:
    """That has no counterpart in a source, which would have indices there: the claim is held against the same."""
    case = Case(TABLE, "through", flags, tmp_path)
    data, table = np.ones((9, 3)), np.zeros(10, np.int64)
    table[:9] = data.ctypes.data + 24 * np.random.default_rng(2).permutation(9)
    case.arrays, case.integers, case.floats = [data, table], [table.ctypes.data], [0.5]
    fields = f64_fields(("key", 8), ("sum", 16))
    shape = Structure("s0", "nodes", data.ctypes.data, data.nbytes, (Dim(9, 24),), fields)
    case.structures = (shape,)
    chosen = candidate(relayout(shape, "soa"))
    verify(case, chosen)
    assert emit(case.lifted, chosen, case.trace, case.structures).translated == {"s0"}


def test_arrays_start_from_pointers_of_their_own(tmp_path: Path) -> None:
    """``graph`` -O2: gcc added what the arrays' starting points have in common at each access (1.25 for 1.38 by hand)."""
    source = """
struct node { double rank, share; long rest[2]; };
void gather(const struct node *v, const int *edges, long n, double *sum)
{
    double s = 0;
    for (long i = 0; i < n; i++) s += v[edges[i]].rank * v[edges[i]].share;
    *sum = s;
}"""
    case = Case(source, "gather", ("-O2",), tmp_path)
    nodes = np.random.default_rng(1).random((50, 4))
    edges = np.random.default_rng(2).integers(0, 50, 64, dtype="i4")
    total = np.zeros(1)
    case.arrays = [nodes, edges, total]
    case.integers = [nodes.ctypes.data, edges.ctypes.data, len(edges), total.ctypes.data]
    fields = f64_fields(("rank", 0), ("share", 8))
    structure = Structure("s0", "v", nodes.ctypes.data, nodes.nbytes, (Dim(50, 32),), fields)
    case.structures = (structure,)
    case.prepare()
    layout = candidate(relayout(structure, "soa"))
    text = emit_mockup(case.lifted, layout, case.trace, case.structures)
    run_mockup(text, tmp_path / "soa.so", case.integers)
    assert case.restore() == case.expected
    code = subprocess.run(["objdump", "-d", tmp_path / "soa.so"], capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"sd\s+\(%r\w+,%r\w+,8\)", code)) == 2  # base and index, no sum of them before
    assert "LA_UNKNOWN(at_" not in emit_mockup(case.lifted, layout, case.trace, case.structures, variant="restrict")
