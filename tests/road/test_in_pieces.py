"""A hotspot one call of which makes more accesses than are recorded, over the whole road."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.model.hotspot import HotspotReport
from tests.support.command import advise

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void product(int n, const double *a, const double *b, double *c)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
            c[i * n + j] = s;
        }
}
int main(void)
{
    int n = 240;
    double *a = malloc(8L * n * n), *b = malloc(8L * n * n), *c = malloc(8L * n * n), s = 0;
    for (int i = 0; i < n * n; i++) a[i] = i % 7, b[i] = i % 11;
    for (int k = 0; k < 20; k++) { product(n, a, b, c); a[k] += c[k] * 1e-3; }
    for (int i = 0; i < n * n; i++) s += c[i];
    printf("%g\\n", s);
}
"""


def advised(folder: Path, *options: str) -> HotspotReport:
    (folder / "product.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-o", folder / "product", folder / "product.c"], check=True)
    few = ("--restores", "3", "--max-refs", "2000000")
    (hotspot,) = advise([folder / "product"], *few, *options, folder=folder).hotspots
    return hotspot


@pytest.mark.slow
def test_of_a_long_call_a_loop_is_looked_at(tmp_path: Path) -> None:
    """28 million accesses a call; the loop over columns is entered 240 times in each and makes 116 000."""
    hotspot = advised(tmp_path)
    assert hotspot.calls == 20 * 240
    assert hotspot.trace is not None
    assert not hotspot.trace.truncated
    (other,) = [c for c in hotspot.candidates if c.evidence == "verified" and c.variant == "plain"]
    assert other.families == ("permute",)
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"


@pytest.mark.slow
def test_a_call_that_is_asked_for_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    hotspot = advised(tmp_path, "--call", "3")
    assert (hotspot.calls, hotspot.verdict.reason) == (20, "trace-truncated")


RECURSIVE = """
#include <stdio.h>
#include <stdlib.h>
struct cell { double score, gap, rest[2]; };
static struct cell *cells;
__attribute__((noinline)) double end(int n) { return n * 0.5; }
double halve(int from, int to, int depth)
{
    if (to - from < 2) return end(to);
    double sum = 0;
    for (int k = 0; k < 20; k++)
        for (int i = from; i < to; i++) {
            cells[i].score = 0.5 * cells[i].score + cells[i].gap;
            sum += cells[i].score;
        }
    int middle = from + (to - from) / 2;
    return sum * 1e-9 + halve(from, middle, depth + 1) + halve(middle, to, depth + 1);
}
int main(void)
{
    int n = 6000;
    double sum = 0;
    cells = calloc(n, sizeof *cells);
    for (int i = 0; i < n; i++) cells[i].gap = 1.0 / (i + 1);
    for (int k = 0; k < 120; k++) sum += halve(0, n, 0);
    printf("%g\\n", sum);
}
"""


@pytest.mark.slow
def test_of_a_recursive_function_the_long_entries_of_its_loop_are_looked_at(tmp_path: Path) -> None:
    """clustalw: half of the entries' time is in few of 835 798, and 44 % of the samples are in the recursive function."""
    (tmp_path / "halve.c").write_text(RECURSIVE)
    subprocess.run(["gcc", "-g", "-O2", "-o", tmp_path / "halve", tmp_path / "halve.c"], check=True)
    hotspot, *_ = advise([tmp_path / "halve"], "--restores", "3", "--hotspot", "halve", folder=tmp_path).hotspots
    assert hotspot.region == "loop"
    assert hotspot.trace is not None
    assert hotspot.trace.references % (3 * 20) == 0  # 20 passes over cells, with two loads and a store
    assert hotspot.trace.references >= 3 * 20 * 1000
    assert [c.evidence for c in hotspot.candidates if c.id == "c1"] == ["verified"]
