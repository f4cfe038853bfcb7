"""Indices of 32 bits that are extended for an address: in it stands what they are sums of, and other layouts can be made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.ir.value_graph import Graph, parts
from layout_advise.mockup.lift.loops.wide_indices import MOST_FACTOR, extended
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout

HIDDEN = '__asm__("" : "+r"(at));'
"""The compiler may not see where the index comes from, as behind a call of another file."""
SOURCE = f"""
void bounds(double *xyz, long n)
{{
    double least = xyz[0], most = xyz[1];
    for (int i = 1; i < (int)n; i++) {{
        int at = 3 * i;
        {HIDDEN}
        const double *v = xyz + at;
        least = v[0] < least ? v[0] : least;
        most = v[1] + v[2] > most ? v[1] + v[2] : most;
    }}
    xyz[0] = least;
    xyz[1] = most;
}}
void grid(double *xyz, long n)
{{
    const int across = 3, rows = (int)n;
    for (int i = 0; i < rows - 1; i++) {{
        int at = (i + 1) * across;
        {HIDDEN}
        xyz[at] += 0.5 * xyz[at - 3];
        xyz[at + 2] -= xyz[at + 1];
    }}
}}
void chosen(double *xyz, long n)
{{
    for (int i = 0, k = 0; i < (int)n; i++) {{
        int at = 3 * k;
        {HIDDEN}
        xyz[at + 1] += xyz[at] * i;
        k = xyz[at + 1] > 2 ? 2 * i % (int)n : i;
    }}
}}
"""
COUNT = 40


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("symbol", ["bounds", "grid", "chosen"])
@pytest.mark.parametrize("kind", ["soa", "compact"])
def test_a_multiple_of_an_int(symbol: str, kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(SOURCE, symbol, (*flags, "-ffp-contract=off"), tmp_path)
    data = np.random.default_rng(5).random((COUNT, 3))
    case.arrays, case.integers = [data], [data.ctypes.data, COUNT]
    fields = f64_fields(("x", 0), ("y", 8), ("z", 16))
    case.structures = (Structure("s0", "xyz", data.ctypes.data, data.nbytes, (Dim(COUNT, 24),), fields),)
    case.prepare()
    moving = [access.address.terms for access in accesses(case.lifted.body) if len(access.address.terms) > 1]
    assert moving
    assert all(24 in (coef for _, coef in terms) for terms in moving)
    verify(case, candidate(relayout(case.structures[0], kind)))


def half(g: Graph, number: int) -> Node:
    """The low half of a register."""
    return g.lo32(g.raw("livein", "i64", (), number))


@pytest.mark.parametrize("extend", ["sext", "zext"])
def test_sums_are_taken_of_what_is_extended(extend: str) -> None:
    g = Graph()
    i, j = half(g, 0), g.raw("load", "i32", ())
    wide = extended(g, g.build(extend, "i64", g.lin("i32", -5, ((i, 3), (j, -2)))), frozenset())
    assert wide is not None
    assert parts(wide) == (-5, [(g.build("sext", "i64", i), 3), (g.build("sext", "i64", j), -2)])


def test_counters_are_taken_whole() -> None:
    g = Graph()
    counter = g.raw("counter", "i64", ())
    wide = extended(g, g.build("sext", "i64", g.lin("i32", 1, ((g.lo32(counter), 3),))), frozenset((counter,)))
    assert wide is not None
    assert parts(wide) == (1, [(counter, 3)])


def test_what_may_overflow_on_purpose_stays() -> None:
    """Hash functions; and distances of pointers, whose low halves may lie on both sides of a border."""
    g = Graph()
    i, j = half(g, 0), half(g, 1)
    for inner in (g.lin("i32", 0, ((i, MOST_FACTOR + 1),)), g.lin("i32", 0, ((i, 1), (j, -1))), i):
        assert extended(g, g.build("sext", "i64", inner), frozenset()) is None
