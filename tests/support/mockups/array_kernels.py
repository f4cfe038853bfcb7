"""Functions of plain arrays that are used with one index."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from tests.support.mockups.case import Case

GATHERED = """
void gathered(const double *a, const float *b, double *c, const int *idx, long n) {
    for (long k = 0; k < n; k++) c[idx[k]] += a[idx[k]] * b[idx[k]];
}"""
STREAMED = """
void streamed(double *a, const double *b, const double *c, double *d, long n) {
    for (long k = 0; k < n; k++) a[k] += b[k] * c[k];
    for (long k = 0; k < n; k++) d[k] = a[k] - b[k];
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
