"""Registers saved in memory before a loop and loaded in it: the index is cut before it, unless something writes there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.ir.lifted import LiftedLoop
from layout_advise.mockup.remap.indices.saved_registers import spilled_values
from layout_advise.mockup.remap.plan import plan
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout

ROWS, COLUMNS = 6, 10
SOURCE = """
struct cell {{ double x, y, rest; }};
void scale(struct cell *a, volatile long *saved, long rows, long columns, long other) {{
    for (long i = 0; i < rows; i++) {{
        saved[0] = i * columns * (long)sizeof *a;
        {before}
        for (long k = 0; k < columns; k++) {{
            struct cell *row = (struct cell *)((char *)a + saved[0]);
            row[k].x = 0.5 * row[k].x + row[k].y;
            {inside}
        }}
    }}
}}"""


def prepared(before: str, inside: str, folder: Path) -> tuple[Case, Structure]:
    case = Case(SOURCE.format(before=before, inside=inside), "scale", ("-O2",), folder)
    cells = np.arange(ROWS * COLUMNS * 3, dtype=np.float64)
    saved = np.zeros(4, np.int64)
    case.arrays = [cells, saved]
    case.integers = [cells.ctypes.data, saved.ctypes.data, ROWS, COLUMNS, 1]
    count = ROWS * COLUMNS
    shape = Structure("s0", "cells", cells.ctypes.data, count * 24, (Dim(count, 24),), f64_fields(("x", 0), ("y", 8)))
    case.structures = (shape,)
    return case, shape


def test_the_index_is_cut_before_the_loop(tmp_path: Path) -> None:
    case, shape = prepared("saved[1] = i;", "saved[other] = k;", tmp_path)
    chosen = candidate(relayout(shape, "soa"))
    verify(case, chosen)
    binding = bind(case.lifted, case.trace, case.structures)
    (rows,) = (item for item in case.lifted.body if isinstance(item, LiftedLoop))
    (cells,) = (item for item in rows.body if isinstance(item, LiftedLoop))
    assert spilled_values(case.lifted, binding)
    assert {site for site, found in plan(case.lifted, chosen, binding).sites.items() if found} == {cells.uid}


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("", "saved[0] += 0;"),
        ("", "saved[other - 1] = saved[0];"),
        ("saved[other - 1] += 0;", ""),
        ("if (i != other) saved[0] = i * columns * (long)sizeof *a;", ""),
    ],
    ids=["in-the-loop", "by-another-address", "before-it", "on-one-way-only"],
)
def test_what_may_have_changed_meanwhile_is_loaded(before: str, inside: str, tmp_path: Path) -> None:
    case, shape = prepared(before, inside, tmp_path)
    verify(case, candidate(relayout(shape, "soa")))
    binding = bind(case.lifted, case.trace, case.structures)
    assert spilled_values(case.lifted, binding) == {}
