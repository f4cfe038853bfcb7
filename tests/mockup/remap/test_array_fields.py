"""Arrays in the elements of a structure that are one field each: loops over them, indices that pick one of their numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.remap.picked_fields import array_field
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case, compare
from tests.support.mockups.native import candidate, relayout

NUMBERS, COUNT = 100, 23
RECORD = f"struct side {{ int used, from; float coef[{NUMBERS}]; double sum; int place[{NUMBERS}]; }};"
SUMS = """
void sums(struct side *sides, long n) {
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (int k = sides[i].from; k < sides[i].used; k++) sum += sides[i].coef[k];
        sides[i].sum = sum;
    }
}"""
PICKED = """
void picked(struct side *sides, long n, const int *which) {
    for (long i = 0; i < n; i++) {
        int at = sides[i].place[which[i]];
        sides[i].coef[at] += sides[i].coef[which[i]];
        sides[i].sum += at;
    }
}"""
INSIDE = """
double inside(const float *coef, long n, struct side *sides) {
    double sum = 0;
    for (long k = 0; k < n; k++) sum += coef[k] * coef[-k];
    sides->sum = sum;
    return sum;
}"""
KINDS = [("soa", 0), ("compact", 0), *slower(("blocks", 4)), ("aosoa", 4), *slower(("split", 0))]


def sides(source: str, symbol: str, flags: tuple[str, ...], folder: Path) -> tuple[Case, Structure]:
    """Records of 816 bytes with two arrays of 100 numbers."""
    case = Case(RECORD + source, symbol, flags, folder)
    random = np.random.default_rng(5)
    data = random.random((COUNT, 204)).astype(np.float32)
    numbers = data.view(np.int32)
    numbers[:, 0] = random.integers(80, NUMBERS + 1, COUNT)
    numbers[:, 1] = random.integers(0, 20, COUNT)
    numbers[:, 104:204] = random.integers(0, NUMBERS, (COUNT, NUMBERS))
    data[:, 102:104] = 0
    fields = (
        Field("used", 0, 4),
        Field("from", 4, 4),
        Field("coef", 8, 400, "float[100]"),
        Field("sum", 408, 8),
        Field("place", 416, 400, "int[100]"),
    )
    shape = Structure("s0", "sides", data.ctypes.data, data.nbytes, (Dim(COUNT, 816),), fields)
    case.arrays, case.integers, case.structures = [data], [data.ctypes.data, COUNT], (shape,)
    return case, shape


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(("kind", "block"), KINDS)
def test_a_loop_over_an_array_goes_on_in_it(kind: str, block: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape = sides(SUMS, "sums", flags, tmp_path)
    case.prepare()
    compare(case, candidate(relayout(shape, kind, block)), "plain", "restrict")


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(("kind", "block"), KINDS)
def test_an_index_picks_a_number_of_an_array(kind: str, block: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape = sides(PICKED, "picked", flags, tmp_path)
    which = np.random.default_rng(7).integers(0, NUMBERS, COUNT).astype(np.int32)
    case.arrays.append(which)
    case.integers.append(which.ctypes.data)
    case.prepare()
    compare(case, candidate(relayout(shape, kind, block)), "plain", "restrict")


@pytest.mark.parametrize(("kind", "block"), KINDS)
def test_a_pointer_leads_into_an_array(kind: str, block: int, tmp_path: Path) -> None:
    case, shape = sides(INSIDE, "inside", FLAGS["O2"], tmp_path)
    first = case.arrays[0].ctypes.data
    case.integers = [first + 5 * 816 + 8 + 4 * 45, 40, first + 7 * 816]
    case.prepare()
    compare(case, candidate(relayout(shape, kind, block)), "plain")


def test_only_places_of_one_array_are_in_it() -> None:
    fields = (Field("n", 0, 4), Field("coef", 4, 400), Field("place", 404, 400))
    shape = Structure("s0", "sides", 0, 8040, (Dim(10, 804),), fields)
    assert array_field(shape, frozenset({4, 400})) == fields[1]
    assert array_field(shape, frozenset({404})) is None
    assert array_field(shape, frozenset({400, 404})) is None
    assert array_field(shape, None) is None
