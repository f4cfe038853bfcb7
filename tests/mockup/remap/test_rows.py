"""Rows of a matrix whose length is in a register: steps over them, and code that does not tell in which row it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.remap.rows_told import tells_rows
from layout_advise.observe.linear_index import linearise
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import blocks_of
from layout_advise.tracer.code.region import Region
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout

ROWS, COLUMNS = 6, 10
STEPS = """
struct cell {{ double x, y, rest; }};
void step(struct cell *a, long rows, long number) {{
    long at = 0;
    for (long i = 0; i < rows; i++) {{
        a[at].x = 0.5 * a[at].x + a[at].y;
        at += {step};
    }}
}}"""
EVERY = """
struct cell { double x, y, rest; };
void every(struct cell *a) {
    for (long i = 0; i < 20; i++)
        a[3 * i].x = 0.5 * a[3 * i].x + a[3 * i].y;
}"""


def cells(source: str, function: str, integers: tuple[int, ...], folder: Path) -> tuple[Case, Structure]:
    case = Case(source, function, ("-O2",), folder)
    data = np.arange(ROWS * COLUMNS * 3, dtype=np.float64)
    case.arrays, case.integers = [data], [data.ctypes.data, *integers]
    dims = (Dim(ROWS, COLUMNS * 24), Dim(COLUMNS, 24))
    shape = Structure("s0", "cells", data.ctypes.data, data.nbytes, dims, f64_fields(("x", 0), ("y", 8)))
    case.structures = (shape,)
    return case, shape


@pytest.mark.parametrize(
    ("step", "number"),
    [("number", COLUMNS), ("number + 1", COLUMNS - 1), ("number + 2", COLUMNS - 2), ("number + 1", COLUMNS)],
    ids=["row", "last column", "two less", "diagonal"],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_steps_over_rows_are_told_by_what_was_walked(step: str, number: int, order: tuple[int, int], tmp_path: Path) -> None:
    """``i * last + i`` was taken for a step to the next row and one to the right, and every mock-up died."""
    case, shape = cells(STEPS.format(step=step), "step", (ROWS, number), tmp_path)
    verify(case, candidate(relayout(shape, "soa", order=order)))
    assert tells_rows(shape, case.lifted, bind(case.lifted, case.trace, case.structures))


def test_a_grid_whose_rows_are_not_told_is_one_row(tmp_path: Path) -> None:
    case, shape = cells(EVERY, "every", (), tmp_path)
    case.prepare()
    assert not tells_rows(shape, case.lifted, bind(case.lifted, case.trace, case.structures))
    region = Region("every", "function", 0, (), "", 0)
    seen = Observation(region, case.trace, (Derived(shape, None, 8, 1, False),), (), ())
    (flat,) = linearise(seen, case.lifted).structures
    assert flat.dims == (Dim(ROWS * COLUMNS, 24),)
    assert linearise(seen, case.lifted, blocks_of([shape])).structures == (shape,)
    case.structures = (flat,)
    verify(case, candidate(relayout(flat, "aosoa")))


def test_a_grid_with_gaps_keeps_its_dimensions(tmp_path: Path) -> None:
    case, shape = cells(EVERY, "every", (), tmp_path)
    case.prepare()
    apart = replace(shape, dims=(Dim(5, 288), Dim(10, 24)))
    seen = Observation(Region("every", "function", 0, (), "", 0), case.trace, (Derived(apart, None, 8, 1, False),), (), ())
    assert linearise(seen, case.lifted).structures == (apart,)
