"""Loops around loops that a compiler does several iterations of side by side become loops over single iterations, and
compute the same; what is no such loop stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Imm, LetLinear, LiftedLoop, Operand, everything
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.reroll import reroll
from tests.support import slower
from tests.support.mockups.case import Case, verify
from tests.support.mockups.native import candidate, relayout

ROWS, COLUMNS = 12, 16

COLUMN_SUMS = """
void kernel(double (*restrict table)[16], double *restrict weight, double *restrict out)
{
    for (int i = 0; i < 16; i++) {
        double last = 0;
        for (int j = 0; j < 12; j++)
            last = last * 0.5 + table[j][i] * weight[j];
        out[i] = last;
    }
}"""
ABREAST = """
void kernel(double (*restrict table)[16], double *restrict weight, double *restrict out)
{
    for (int i = 0; i < 16; i += 2) {
        double one = 0, two = 0;
        for (int j = 0; j < 12; j++) {
            two = SECOND;
            one = one * 0.5 + table[j][i] * weight[j];
        }
        out[i] = one;
        out[i + 1] = two;
    }
}"""
UPDATES = """
void kernel(double (*restrict table)[16], double *restrict weight, double *restrict out)
{
    for (int i = 0; i < 16; i += 2) {
        for (int j = 0; j < 12; j++) {
            table[j][i] = table[j][i] * weight[j];
            table[j][i + 1] = table[j][i + 1] * weight[j];
        }
        out[i] = weight[0];
        out[i + 1] = weight[0];
    }
}"""
"""Lanes that store what only they load."""
ALONE = "two * 0.5 + table[j][i + 1] * weight[j]"


def case_of(source: str, flags: tuple[str, ...], where: Path) -> Case:
    case = Case(source, "kernel", (*flags, "-ffp-contract=off", "-fno-tree-slp-vectorize"), where)
    random = np.random.default_rng(3)
    table, weight, out = random.random((ROWS, COLUMNS)), random.random(ROWS), random.random(COLUMNS)
    case.arrays, case.integers = [table, weight, out], [array.ctypes.data for array in (table, weight, out)]
    whole = (Field("value", 0, 8, "double"),)
    row, cell = Dim(ROWS, 8 * COLUMNS), Dim(COLUMNS, 8)
    case.structures = (
        Structure("s0", "table", table.ctypes.data, table.nbytes, (row, cell), whole),
        Structure("s1", "weight", weight.ctypes.data, weight.nbytes, (Dim(ROWS, 8),), whole),
        Structure("s2", "out", out.ctypes.data, out.nbytes, (Dim(COLUMNS, 8),), whole),
    )
    case.prepare()
    return case


def outer_trips(case: Case) -> list[int]:
    """How often the outer loops run once they are rerolled."""
    image = open_image(case.native.region.path, case.native.region.load_base)
    found = run_passes(case.lifted, Evidence.of(case.trace, case.structures, image.read), (reroll,), verify=True)
    sums: dict[Operand, int] = {i.value: i.linear.const for i in everything(found.body) if isinstance(i, LetLinear)}
    loops = [item for item in found.body if isinstance(item, LiftedLoop)]
    return [loop.trip.value if isinstance(loop.trip, Imm) else sums[loop.trip] for loop in loops if loop.trip is not None]


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        (COLUMN_SUMS, ("-O2",)),
        *slower((COLUMN_SUMS, ("-O3", "-march=haswell"))),
        (ABREAST.replace("SECOND", ALONE), ("-O1",)),
        (UPDATES, ("-O1",)),
    ],
    ids=["O2", "O3-avx2", "abreast", "updates"],
)
def test_lanes_beside_each_other_are_iterations(source: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = case_of(source, flags, tmp_path)
    assert outer_trips(case) == [COLUMNS]
    verify(case, candidate(relayout(case.structures[0], "permute", order=(1, 0))))


@pytest.mark.parametrize(
    "second",
    [
        "two * 0.25 + table[j][i + 1] * weight[j]",
        "two * 0.5 + table[j][(i + 3) % 16] * weight[j]",
        "two * 0.5 + table[j][i + 1] * weight[j] + one",
        "two * 0.5 + table[j][i + 1] * weight[j] + i",
        "two * 0.5 + table[j][i + 1]",
    ],
    ids=["constant", "place", "each other", "number", "shape"],
)
def test_what_differs_from_lane_to_lane_stays(second: str, tmp_path: Path) -> None:
    case = case_of(ABREAST.replace("SECOND", second), ("-O1",), tmp_path)
    assert outer_trips(case) == [COLUMNS // 2]


def test_what_an_iteration_hands_to_the_next_stays(tmp_path: Path) -> None:
    begin = "double one = 0, two = 0;"
    source = ABREAST.replace("SECOND", ALONE).replace(begin, "").replace("for (int i", f"{begin}\n    for (int i")
    assert outer_trips(case_of(source, ("-O1",), tmp_path)) == [COLUMNS // 2]


def test_lanes_that_load_what_another_one_stores_stay(tmp_path: Path) -> None:
    source = UPDATES.replace("table[j][i] * weight[j]", "table[j][i + 1] * weight[j]", 1)
    assert outer_trips(case_of(source, ("-O1",), tmp_path)) == [COLUMNS // 2]
