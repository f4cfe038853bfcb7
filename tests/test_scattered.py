"""Objects allocated one by one and reached through an array of pointers: named and counted, and no `keep` is claimed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from layout_advise.reports.model import read_report

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
struct p { double x, v, m, q, rest[8]; };
__attribute__((noinline)) void move(struct p **ps, long n, double dt) {
    for (int k = 0; k < 8; k++) for (long i = 0; i < n; i++) ps[i]->x += ps[i]->v * dt;
}
int main(void) {
    long n = 5000;
    struct p **ps = malloc(n * sizeof *ps);
    for (long i = 0; i < n; i++) { ps[i] = calloc(1, sizeof **ps); ps[i]->v = i % 7; }
    for (long i = n - 1; i > 0; i--) { long j = rand() % (i + 1); struct p *t = ps[i]; ps[i] = ps[j]; ps[j] = t; }
    for (int k = 0; k < 40; k++) move(ps, n, 1e-3);
    printf("%g\n", ps[3]->x);
}
"""


def test_scattered_objects_are_no_keep(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-g", "program.c", "-o", "program"], check=True, cwd=tmp_path)
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", "--restores", "5", "--hotspot", "move", "-o", "run"]
    subprocess.run([*command, "--", "./program"], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    (hotspot,) = read_report(tmp_path / "run").hotspots
    assert hotspot.verdict.action == "undecided"
    assert hotspot.verdict.reason == "scattered-objects"
    assert "5000 blocks of the heap" in hotspot.verdict.text
