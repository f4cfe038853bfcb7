"""Hotspots that the processor's branch predictor can learn, as gcc compiles them."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.mockup.ir.data_branches import branches_on_data
from tests.support.mockup_native import Native

SOURCES = {
    "sums": (
        "double sums(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i]; return s; }",
        False,
    ),
    "below": (
        "double below(const double *x, long n) { double s = 0; "
        "for (long i = 0; i < n; i++) if (x[i] < 0.5) s += x[i] * x[n + i] / (1 + x[2 * n + i]); return s; }",
        True,
    ),
    "rows": (
        "double rows(const double *x, const int *end, long n) { double s = 0; "
        "for (long i = 0; i < n; i++) for (int k = 0; k < end[i]; k++) s += x[k]; return s; }",
        True,
    ),
    "sizes": (  # as Fortran hands them over; after each store they may be others, for all the compiler knows
        "void sizes(double *x, const long *n, const long *m) { "
        "for (long i = 0; i < *n; i++) for (long k = 0; k < *m; k++) x[i * *m + k] += 1; }",
        False,
    ),
    "first": (
        "double first(const double *x, long n) { double s = 0; if (x[0] > 1) return 1; "
        "for (long i = 0; i < n; i++) s += x[i]; return s; }",
        False,
    ),
    "halves": (
        "double halves(const double *x, long n) { double s = 0; "
        "for (long i = 0; i < n; i++) if (i > n / 2) s += x[i] / 3; return s; }",
        False,
    ),
    "turns": ("long turns(long n) { long k = 0; while (n > 1) { n = n & 1 ? 3 * n + 1 : n / 2; k++; } return k; }", False),
    "chain": ("long chain(const long *next, long at) { long k = 0; while (at) { at = next[at]; k++; } return k; }", True),
}


@pytest.mark.parametrize("name", SOURCES)
def test_ways_that_depend_on_what_is_loaded(name: str, tmp_path: Path) -> None:
    source, expected = SOURCES[name]
    assert branches_on_data(Native(source, name, tmp_path, ("-O2", "-fno-if-conversion")).lifted()) is expected
