"""Mock-ups of arrays that share their records leave the same bytes, and have one pointer to a record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.merged_arrays import merge
from layout_advise.propose.shared_index import shared_indices
from tests.support.mockups.case import FLAGS, Case, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate

GATHERED = """
void gathered(const double *a, const float *b, double *c, const int *idx, long n) {
    for (long k = 0; k < n; k++) c[idx[k]] += a[idx[k]] * b[idx[k]];
}"""
STREAMED = """
void streamed(double *a, const double *b, const double *c, double *d, long n) {
    for (long k = 0; k < n; k++) a[k] += b[k] * c[k];
    for (long k = 0; k < n; k++) d[k] = a[k] - b[k];
}"""
ROWS = """
void rows(double *a, const float *b, long n, long m) {
    for (long i = 1; i < n - 1; i++)
        for (long j = 0; j < m; j++) a[i * m + j] += b[(i - 1) * m + j] - b[(i + 1) * m + j];
}"""
SHIFTED = """
void shifted(double *a, const double *b, long n) {
    for (long k = 0; k < n; k++) a[k] += b[k + 1];
}"""
MATRIX = """
void matrix(const int *rows, const double *values, const int *columns, const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (long k = rows[i]; k < rows[i + 1]; k++) sum += values[k] * x[columns[k]];
        y[i] = sum;
    }
}"""
TYPES = {"float64": "double", "float32": "float", "int32": "int"}


def structure(number: int, data: np.ndarray, name: str) -> Structure:
    """An array as one of numbers, with a dimension for each of its own."""
    own = (Field("value", 0, data.itemsize, TYPES[data.dtype.name], 1, 1),)
    dims = tuple(Dim(n, s) for n, s in zip(data.shape, data.strides, strict=True))
    return Structure(f"s{number}", name, data.ctypes.data, data.nbytes, dims, own)


def of_arrays(source: str, symbol: str, where: Path, flags: tuple[str, ...], sizes: list[int], **arrays: np.ndarray) -> Case:
    """A function of these arrays, and of ``sizes`` after them."""
    case = Case(source, symbol, flags, where)
    case.arrays = list(arrays.values())
    case.integers = [*(a.ctypes.data for a in case.arrays), *sizes]
    case.structures = tuple(structure(k, data, name) for k, (name, data) in enumerate(arrays.items()))
    return case


def gathered(where: Path, flags: tuple[str, ...] = ("-O2",), n: int = 41) -> Case:
    some = np.random.default_rng(3)
    idx = some.permutation(n).astype(np.int32)
    b = some.random(n + 1).astype(np.float32)
    return of_arrays(GATHERED, "gathered", where, flags, [n], a=some.random(n), b=b, c=some.random(n), idx=idx)


def streamed(where: Path, flags: tuple[str, ...] = ("-O2",), n: int = 43) -> Case:
    some = np.random.default_rng(4)
    named = {name: some.random(n) for name in "abcd"}
    return of_arrays(STREAMED, "streamed", where, flags, [n], **named)


def together(case: Case) -> list[set[str]]:
    """The names of the arrays with one index, by the code and its trace."""
    names = {s.id: s.name for s in case.structures}
    case.prepare()
    return [{names[name] for name in one.loops} for one in shared_indices(case.lifted, case.trace, case.structures)]


def all_merged(case: Case) -> list[Candidate]:
    """The candidates that merge arrays."""
    case.prepare()
    shared = shared_indices(case.lifted, case.trace, case.structures)
    return list(explore(case.structures, shared=shared))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("make", [gathered, streamed], ids=["gathered", "streamed"])
def test_every_candidate_leaves_the_same_bytes(make: object, flags: tuple[str, ...], tmp_path: Path) -> None:
    assert callable(make)
    case = make(tmp_path, flags)
    found = all_merged(case)
    assert any(c.block is None for c in found)
    as_it_is = case.lifted
    for chosen in found:
        assert len(chosen.relayouts) > len(chosen.stored)
        case.lifted = as_it_is
        verify(case, chosen)


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_rows_that_share_records(flags: tuple[str, ...], tmp_path: Path) -> None:
    some = np.random.default_rng(5)
    a, b = some.random((9, 14)), some.random((9, 14)).astype(np.float32)
    case = of_arrays(ROWS, "rows", tmp_path, flags, [9, 14], a=a, b=b)
    verify(case, candidate(*merge(case.structures)))


def test_arrays_with_one_index_are_found(tmp_path: Path) -> None:
    assert together(gathered(tmp_path)) == [{"a", "b", "c"}]
    (tmp_path / "streamed").mkdir()
    assert together(streamed(tmp_path / "streamed")) == [{"a", "b", "c", "d"}]


def test_an_index_of_another_start_is_another_one(tmp_path: Path) -> None:
    a, b = np.zeros(40), np.zeros(41)
    assert together(of_arrays(SHIFTED, "shifted", tmp_path, ("-O2",), [40], a=a, b=b)) == []


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


@pytest.mark.parametrize("make", [gathered, streamed], ids=["gathered", "streamed"])
def test_a_record_has_one_pointer(make: object, tmp_path: Path) -> None:
    assert callable(make)
    case = make(tmp_path)
    chosen = next(c for c in all_merged(case) if len(c.stored) == 1 and c.block is None)
    text = emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert "la_buffer_count = 1;" in text
    assert text.count("uint8_t *at_") == 1
    assert "the same index */" in text
