"""Plain arrays with one index over the whole road: gathered and streamed ones, both measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages.html import render
from tests.support.command import advise

GATHERED = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) double dot(const double *a, const double *b, const int *idx, long n)
{
    double s = 0;
    for (long k = 0; k < n; k++) s += a[idx[k]] * b[idx[k]];
    return s;
}
int main(void)
{
    long n = 200000;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), s = 0;
    int *idx = malloc(n * sizeof *idx);
    unsigned long r = 1;
    for (long i = 0; i < n; i++) { a[i] = i % 7; b[i] = i % 5; idx[i] = i; }
    for (long i = n - 1; i > 0; i--) {
        r = r * 6364136223846793005ul + 1442695040888963407ul;
        long j = (r >> 33) % (i + 1);
        int t = idx[i]; idx[i] = idx[j]; idx[j] = t;
    }
    for (int k = 0; k < 1000; k++) { s += dot(a, b, idx, n); a[k] += 1; }
    printf("%g\\n", s);
}
"""
STREAMED = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void axpy(double *restrict y, const float *restrict x, double f, long n)
{
    for (long k = 0; k < n; k++) y[k] += f * x[k];
}
int main(void)
{
    long n = 200000;
    double *y = malloc(n * sizeof *y), s = 0;
    float *x = malloc((n + 1) * sizeof *x);
    for (long i = 0; i < n; i++) { y[i] = i % 7; x[i] = i % 5; }
    for (int k = 0; k < 2000; k++) axpy(y, x, 1e-3, n);
    for (long i = 0; i < n; i++) s += y[i];
    printf("%g\\n", s);
}
"""


def studied(source: str, name: str, tmp_path: Path) -> HotspotReport:
    """The hotspot of a program; its layouts were timed, and the verdict is of these."""
    (tmp_path / f"{name}.c").write_text(source)
    subprocess.run(["gcc", "-g", "-O2", "-o", tmp_path / name, tmp_path / f"{name}.c"], check=True)
    report = advise([tmp_path / name], "--restores", "3", folder=tmp_path)
    (hotspot,) = report.hotspots
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    assert hotspot.verdict.reason != "no-rule-applies"
    page = render(report)
    assert "merged: " in page
    return hotspot


@pytest.mark.slow
@pytest.mark.parametrize(("source", "names"), [(GATHERED, {"a", "b"}), (STREAMED, {"y", "x"})], ids=["gathered", "streamed"])
def test_arrays_with_one_index_are_measured_as_records(source: str, names: set[str], tmp_path: Path) -> None:
    hotspot = studied(source, "program", tmp_path)
    merged = [c for c in hotspot.candidates if c.families == ("merge",) and c.evidence == "verified"]
    assert merged
    for candidate in merged:
        assert {name for group in candidate.arrays for name in group} == names
        assert candidate.speedup is not None
        assert candidate.verification is not None
        assert len(candidate.structures) == 2
        assert candidate.declaration.count("struct ") == 1
        assert all(candidate.steps[name][0].rule == "merge" for name in candidate.structures)
        assert "<svg" in candidate.drawing
        assert candidate.conversion is not None
        assert set(candidate.conversion.copied_in) <= names
