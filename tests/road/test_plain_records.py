"""Positions in an array of plain numbers, three to a particle, over the whole road."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.command import advise

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void kick(double *v, const double *m, long n, double dt)
{
    for (long i = 0; i < n; i++) {
        double w = dt / m[i];
        v[3 * i] += w; v[3 * i + 1] -= w; v[3 * i + 2] += 0.5 * w;
    }
}
int main(void)
{
    long n = 20000;
    double *v = calloc(3 * n, sizeof *v), *m = malloc(n * sizeof *m), s = 0;
    for (long i = 0; i < n; i++) m[i] = 1 + i % 3;
    for (int k = 0; k < 3000; k++) kick(v, m, n, 1e-3);
    for (long i = 0; i < 3 * n; i++) s += v[i];
    printf("%g\\n", s);
}
"""


@pytest.mark.slow
def test_three_numbers_to_a_particle_are_an_element(tmp_path: Path) -> None:
    (tmp_path / "kick.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-o", tmp_path / "kick", tmp_path / "kick.c"], check=True)
    (hotspot,) = advise([tmp_path / "kick"], "--restores", "3", folder=tmp_path).hotspots
    velocity = next(s for s in hotspot.structures if s.element_bytes == 24)
    assert (velocity.count, velocity.type) == (20000, "double[3]")
    verified = [c for c in hotspot.candidates if c.evidence == "verified" and c.structures == (velocity.id,)]
    assert any("soa" in c.families for c in verified)
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
