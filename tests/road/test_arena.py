"""An arena, and objects with blocks of their own that the same code reaches: each address tells at run time which it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.command import advise

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
struct node { double value, weight; long tag, spare[5]; };
__attribute__((noinline)) void visit(struct node **at, long count, double by) {
    for (long i = 0; i < count; i++) at[i]->value += by * at[i]->weight;
}
int main(void) {
    long n = 40000, own = n / 16, all = n + own;
    struct node *arena = calloc(n, sizeof *arena), **order = malloc(all * sizeof *order);
    for (long i = 0; i < n; i++) { arena[i].weight = 1.0 / (i + 1); order[i] = arena + rand() % n; }
    for (long i = n; i < all; i++) { order[i] = calloc(1, sizeof **order); order[i]->weight = 0.5; }
    for (long i = all - 1; i > 0; i--) {
        long j = rand() % (i + 1);
        struct node *t = order[i]; order[i] = order[j]; order[j] = t;
    }
    for (int k = 0; k < 40; k++) visit(order, all, 1e-3);
    printf("%g\n", arena[3].value + order[7]->value);
}
"""


@pytest.mark.slow
def test_an_arena_among_objects_of_their_own_is_measured(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-g", "program.c", "-o", "program"], check=True, cwd=tmp_path)
    report = advise(["./program"], "--restores", "5", "--hotspot", "visit", folder=tmp_path)
    (hotspot,) = report.hotspots
    (structure,) = (s for s in hotspot.structures if s.type == "node")
    assert (structure.count, structure.element_bytes) == (40_000, 64)
    assert [f.name for f in structure.fields if f.reads] == ["value", "weight"]
    made = [c for c in hotspot.candidates if c.structures == (structure.id,)]
    assert made
    assert {c.evidence for c in made} == {"verified"}
    assert all(c.verification is not None and c.verification.calls == 3 for c in made)
    assert {check.id: check.ok for check in report.quality.checks}["wrong-map"]
    assert any(c.speedup is not None for c in made)
    (control,) = tmp_path.rglob("identity-reindexed.c")
    assert "LA_WITHIN" in control.read_text()
