"""Pointers that are loaded again and again from where the call leaves them: their index is made once in a call."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.remap.kept_pointers import kept_pointers
from layout_advise.mockup.remap.plan import plan
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

COUNT = 60
SOURCE = """
struct cell {{ double x, y, rest; }};
struct grid {{ struct cell *volatile cells; volatile long others[3]; }};
void scale(struct grid *g, const int *order, long n, long other) {{
    {before}
    for (long i = 0; i < n; i++) {{
        {inside}
        g->cells[order[i]].x = 0.5 * g->cells[order[i]].x + g->cells[order[i]].y;
    }}
}}"""


def prepared(before: str, inside: str, folder: Path, source: str = SOURCE) -> tuple[Case, Structure]:
    case = Case(source.format(before=before, inside=inside), "scale", ("-O2",), folder)
    cells, order = np.arange(COUNT * 3, dtype=np.float64), np.random.default_rng(1).permutation(COUNT).astype(np.int32)
    grid = np.array([cells.ctypes.data, 1, 2, 3], dtype=np.int64)
    case.arrays = [cells, order, grid]
    case.integers = [grid.ctypes.data, order.ctypes.data, COUNT, 1]
    shape = Structure("s0", "cells", cells.ctypes.data, COUNT * 24, (Dim(COUNT, 24),), f64_fields(("x", 0), ("y", 8)))
    case.structures = (shape,)
    return case, shape


@pytest.mark.parametrize("layout", ["soa", "aosoa"])
@pytest.mark.parametrize("variant", ["plain", "restrict"])
def test_the_index_is_made_once(layout: str, variant: str, tmp_path: Path) -> None:
    case, shape = prepared("", "g->others[other] = i;", tmp_path)
    chosen = candidate(relayout(shape, layout))
    verify(case, chosen)
    source = emit_mockup(case.lifted, chosen, case.trace, case.structures, variant=variant)
    kernel = source.partition("scale_mockup(")[2]
    before, _, loop = kernel.partition("for (int64_t i")
    assert "/ 24" in before
    assert "/ 24" not in loop
    # as the old pointer is: but not where the compiler is told that nothing overlaps
    assert (re.search(r"\bkept\[", loop) is not None) == (variant == "plain")


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", "g->cells = g->cells;"),
        ("", "g->others[other - 2] += 0;"),
        ("g->others[other - 2] += 0;", ""),
        ("", "if (order[i] > n) g->cells = 0;"),
    ],
    ids=["in-the-loop", "by-another-address", "before-it", "on-a-way-not-taken"],
)
def test_what_is_written_is_loaded(before: str, inside: str, tmp_path: Path) -> None:
    case, shape = prepared(before, inside, tmp_path)
    chosen = candidate(relayout(shape, "soa"))
    verify(case, chosen)
    binding = bind(case.lifted, case.trace, case.structures)
    placed = plan(case.lifted, chosen, binding)
    assert any(placed.sites.values())
    assert kept_pointers(placed, case.lifted, binding) == {}


def test_a_global_that_holds_the_pointer(tmp_path: Path) -> None:
    source = """
struct cell {{ double x, y, rest; }};
static struct cell *volatile cells;
struct cell *volatile *holder(void) {{ return &cells; }}
void scale(struct cell **all, const int *order, long n, long other) {{
    for (long i = 0; i < n; i++)
        cells[order[i]].x = 0.5 * cells[order[i]].x + cells[order[i]].y + other;
}}"""
    case, shape = prepared("", "", tmp_path, source)
    case.native.library.holder.restype = ctypes.POINTER(ctypes.c_int64)
    holder = case.native.library.holder().contents
    holder.value = case.arrays[0].ctypes.data
    chosen = candidate(relayout(shape, "soa"))
    verify(case, chosen)
    binding = bind(case.lifted, case.trace, case.structures)
    found = kept_pointers(plan(case.lifted, chosen, binding), case.lifted, binding)
    assert {at.const for at in found.values()} == {ctypes.addressof(holder)}
