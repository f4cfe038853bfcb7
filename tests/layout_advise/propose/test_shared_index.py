"""Which arrays have one index, by the lifted code and its trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layout_advise.propose.shared_index import _connected, shared_indices
from tests.support.mockups.array_kernels import gathered, of_arrays, streamed
from tests.support.mockups.case import Case

SHIFTED = """
void shifted(double *a, const double *b, long n) {
    for (long k = 0; k < n; k++) a[k] += b[k + 1];
}"""
SELDOM = """
void seldom(double *a, double *b, const double *c, long n, long few) {
    double sum = 0;
    for (long k = 0; k < n; k++) sum += c[k];
    for (long k = 0; k < few; k++) a[k] += sum * b[k];
}"""
MATRIX = """
void matrix(const int *rows, const double *values, const int *columns, const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (long k = rows[i]; k < rows[i + 1]; k++) sum += values[k] * x[columns[k]];
        y[i] = sum;
    }
}"""


def together(case: Case) -> list[set[str]]:
    """The names of the arrays with one index, by the code and its trace."""
    names = {s.id: s.name for s in case.structures}
    case.prepare()
    return [{names[name] for name in one.loops} for one in shared_indices(case.lifted, case.trace, case.structures)]


def test_arrays_with_one_index_are_found(tmp_path: Path) -> None:
    assert together(gathered(tmp_path)) == [{"a", "b", "c"}]
    (tmp_path / "streamed").mkdir()
    assert together(streamed(tmp_path / "streamed")) == [{"a", "b", "c", "d"}]


def test_an_index_of_another_start_is_another_one(tmp_path: Path) -> None:
    a, b = np.zeros(40), np.zeros(41)
    assert together(of_arrays(SHIFTED, "shifted", tmp_path, ("-O2",), [40], a=a, b=b)) == []


def test_an_index_of_very_few_accesses_does_not_count(tmp_path: Path) -> None:
    """Where two arrays are used together a few times in a long call, nothing can be gained there."""
    arrays = {"a": np.zeros(50), "b": np.ones(50), "c": np.ones(9000)}
    for few, found in ((2, []), (50, [{"a", "b"}])):
        (tmp_path / str(few)).mkdir()
        case = of_arrays(SELDOM, "seldom", tmp_path / str(few), ("-O2",), [9000, few], **arrays)
        assert together(case) == found


def test_a_sparse_matrix_has_its_columns_beside_its_values(tmp_path: Path) -> None:
    """Not beside what is gathered by them, nor the rows' starts beside the result: the next one is read too."""
    some = np.random.default_rng(6)
    rows = np.array([0, 3, 5, 9, 12], np.int32)
    case = of_arrays(
        MATRIX,
        "matrix",
        tmp_path,
        ("-O2",),
        [4],
        rows=rows,
        values=some.random(12),
        columns=some.integers(0, 4, 12).astype(np.int32),
        x=some.random(4),
        y=np.zeros(4),
    )
    found = together(case)
    assert {"values", "columns"} in found
    assert not any("x" in names for names in found)


def test_an_array_that_no_access_reaches_alone_is_told_behind_the_others() -> None:
    """flac, metis and others ended in a ValueError: which array an access comes to is tested at run time there."""
    groups = [{"s8": 1, "s2": 1}, {"s2": 2, "s1": 2}, {"s9": 3, "s7": 3}]
    found = list(_connected(groups, ["s1", "", "s2", "s7"]))
    assert [list(one.loops) for one in found] == [["s1", "s2", "s8"], ["s7", "s9"]]
    assert found[0].loops["s2"] == {1, 2}
