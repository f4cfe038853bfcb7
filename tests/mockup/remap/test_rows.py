"""RowsSeen of a matrix whose length is in a register: steps over them, and code that does not tell in which row it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.remap.indices.rows_seen import RowsSeen, rows_of
from layout_advise.mockup.remap.rows_told import tells_rows
from layout_advise.observe.linear_index import linearise
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import blocks_of
from layout_advise.tracer.code.region import Region
from tests.support.mockups.case import FLAGS, Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout
from tests.support.streams import stream

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


CARRIED = """
void forward(float *m, int rows, int columns, const float *score) {
    int here = 0, up = -3 * columns, left = -3, corner = -3 * columns - 3;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            if (i > 0 && j > 0) m[here] = m[corner] + score[i];
            if (i > 0) for (int k = 0; k < 2; k++) m[here + k] += 0.5f * m[up + k];
            if (j > 0) m[here + 2] = 0.25f * m[left + 1] + m[left + 2];
            here += 3; up += 3; left += 3; corner += 3;
        }
}"""


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("order", [(0, 2, 1), (2, 0, 1), (1, 0, 2)])
def test_an_index_that_is_carried_from_row_to_row_may_begin_before_one(
    order: tuple[int, ...], flags: tuple[str, ...], tmp_path: Path
) -> None:
    """probcons: of a matrix of cells, gone over by indices that start at -1, every layout died or was not the same."""
    case = Case(CARRIED, "forward", flags, tmp_path)
    random = np.random.default_rng(3)
    data, score = random.random(7 * 11 * 3).astype(np.float32), random.random(7).astype(np.float32)
    case.arrays, case.integers = [data, score], [data.ctypes.data, 7, 11, score.ctypes.data]
    dims = (Dim(7, 132), Dim(11, 12), Dim(3, 4))
    shape = Structure("s0", "cells", data.ctypes.data, data.nbytes, dims, (Field("value", 0, 4, "float"),))
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, "soa", order=order)))


@pytest.mark.parametrize(
    ("levels", "first", "ahead"),
    [
        (((132, 6), (12, 10)), 0, (0, 10, 0)),
        (((132, 6), (12, 10)), 12, (0, 9, 0)),
        (((132, 6), (-12, 10)), 120, (0, -10, 0)),
        (((132, 6), (-12, 11)), 120, (0, -10, 0)),
        (((132, 6), (12, 11), (4, 2)), 4, (0, 10, 1)),
        (((132, 6), (0, 11)), 24, ()),
        (((132, 6),), 24, ()),
    ],
    ids=["from the left", "from the second", "from the right", "all of it", "in cells too", "in one place", "down a column"],
)
def test_rows_are_told_apart_by_where_accesses_begin(
    levels: tuple[tuple[int, int], ...], first: int, ahead: tuple[int, ...]
) -> None:
    dims = (Dim(7, 132), Dim(11, 12), Dim(3, 4))
    shape = Structure("s0", "cells", 1 << 20, 924, dims, (Field("value", 0, 4, "float"),))
    assert rows_of(stream((1 << 20) + first, *levels), shape).ahead == ahead


def test_one_row_is_not_told_apart() -> None:
    shape = Structure("s0", "cells", 1 << 20, 924, (Dim(231, 4),), (Field("value", 0, 4, "float"),))
    assert rows_of(stream(1 << 20, (4, 200)), shape) == RowsSeen()
    assert rows_of(None, shape) == RowsSeen()


def test_an_index_that_stays_is_known() -> None:
    shape = Structure("s0", "cells", 1 << 20, 924, (Dim(7, 132), Dim(11, 12), Dim(3, 4)), (Field("value", 0, 4, "float"),))
    assert rows_of(stream((1 << 20) + 8, (132, 6), (12, 10)), shape).still == (None, None, 2)
    assert rows_of(stream((1 << 20) + 132, (12, 10), (4, 3)), shape).still == (1, None, None)
