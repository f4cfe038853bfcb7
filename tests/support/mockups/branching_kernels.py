"""Kernels whose branches do or do not depend on the data."""

from __future__ import annotations

BRANCHING = {
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
