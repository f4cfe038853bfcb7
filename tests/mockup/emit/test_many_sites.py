"""Mock-ups in which addresses start from more places than there are registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.emit.scope import RESERVED, Names
from tests.support.mockups.case import Case, compare, f64_fields
from tests.support.mockups.native import candidate, relayout

SUMS = """
struct row { double x, y; };
void sums(struct row *a, long n, const long *restrict at, long spare, long w) {
    for (long i = 0; i < n; i++)
        a[i].x = a[i + at[0]].y + a[i + at[1]].y + a[i + at[2]].y + a[i + at[3]].y + a[i + at[4]].y + a[i + at[5]].y
               + a[i + at[6]].y + a[i + at[7]].y + a[i + at[8]].y + a[i + at[9]].y + (double)(w + spare);
}"""


def test_the_indices_of_many_sites_are_no_registers(tmp_path: Path) -> None:
    """The ninth site's index was called like the register r8, which holds an argument here."""
    case = Case(SUMS, "sums", ("-O2",), tmp_path)
    rows, at = np.random.default_rng(3).random((32, 2)), np.arange(10) * 2 + 1
    case.arrays, case.integers = [rows, at], [rows.ctypes.data, 11, at.ctypes.data, 5, 7]
    fields = f64_fields(("x", 0), ("y", 8))
    case.structures = (Structure("s0", "rows", rows.ctypes.data, rows.nbytes, (Dim(32, 16),), fields),)
    case.prepare()
    compare(case, candidate(relayout(case.structures[0], "soa")), "plain")


def test_fields_are_called_like_nothing_that_is_generated(tmp_path: Path) -> None:
    """The pointer to field x_1 was called as that to field x is at the place numbered 1: no mock-up compiled."""
    case = Case(SUMS, "sums", ("-O2",), tmp_path)
    rows, at = np.random.default_rng(3).random((32, 2)), np.arange(10) * 2 + 1
    case.arrays, case.integers = [rows, at], [rows.ctypes.data, 11, at.ctypes.data, 5, 7]
    for names in (("y", "y_1"), ("y_2", "y")):
        fields = f64_fields((names[0], 0), (names[1], 8))
        case.structures = (Structure("s0", "rows", rows.ctypes.data, rows.nbytes, (Dim(32, 16),), fields),)
        case.prepare()
        compare(case, candidate(relayout(case.structures[0], "soa")), "plain")


@given(
    st.lists(st.tuples(st.sampled_from(("a", "a_1", "a_1_1", "rax", "d0_0", "lane", "i")), st.integers(0, 5)), max_size=40)
)
def test_no_two_keys_share_a_name(wanted: list[tuple[str, int]]) -> None:
    """Whatever is wanted, a key keeps its name, and no other key and no word of the text has it."""
    names, given_to = Names(), dict[tuple[str, int], str]()
    for key in wanted:
        name = names.of(key, key[0])
        assert given_to.setdefault(key, name) == name
        assert name.startswith(key[0])
    assert len(set(given_to.values())) == len(given_to)
    assert RESERVED.isdisjoint(given_to.values())


BACK = """
void step(float *middle, long n) {
    for (long i = 0; i < n; i++)
        middle[29 * i] = middle[29 * i - 15] + middle[29 * i + 9];
}"""


def test_a_place_half_a_row_away_is_in_the_same_row(tmp_path: Path) -> None:
    """15 floats back in a record of 29 was taken for a record back and 14 on: the mock-up died of SIGSEGV."""
    case = Case(BACK, "step", ("-O2",), tmp_path)
    data = np.random.default_rng(3).random((40, 29)).astype(np.float32)
    case.arrays, case.integers = [data], [data.ctypes.data + 72, 40]
    dims, one = (Dim(40, 116), Dim(29, 4)), (Field("x", 0, 4, "float", 1, 1),)
    case.structures = (Structure("s0", "rows", data.ctypes.data, data.nbytes, dims, one),)
    case.prepare()
    compare(case, candidate(relayout(case.structures[0], "permute", order=(1, 0))), "plain")
