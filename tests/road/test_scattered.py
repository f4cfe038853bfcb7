"""Objects allocated one by one and reached through an array of pointers, or by links, as one structure; with an arena among
them, each address tells at run time which it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.model.contract import Report
from tests.support.command import advise

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
struct p { double x, v, m, q, rest[REST]; };
__attribute__((noinline)) void move(struct p **ps, long n, double dt) {
    for (int k = 0; k < 8; k++) for (long i = 0; i < n; i++) ps[i]->x += ps[i]->v * dt;
}
int main(void) {
    long n = 12000;
    struct p **ps = malloc(n * sizeof *ps);
    for (long i = 0; i < n; i++) { ps[i] = calloc(1, sizeof **ps); ps[i]->v = i % 7; }
    for (long i = n - 1; i > 0; i--) { long j = rand() % (i + 1); struct p *t = ps[i]; ps[i] = ps[j]; ps[j] = t; }
    SPECIAL
    for (int k = 0; k < 40; k++) move(ps, n, 1e-3);
    printf("%g\n", ps[3]->x);
}
"""


def traced(where: Path, special: str, rest: int, *options: str) -> Report:
    """The report on the program, with a statement of its own before the calls, and ``rest`` unused numbers in an object."""
    (where / "program.c").write_text(PROGRAM.replace("SPECIAL", special).replace("REST", str(rest)))
    subprocess.run(["gcc", "-O2", "-g", "program.c", "-o", "program"], check=True, cwd=where)
    return advise(["./program"], "--restores", "5", "--hotspot", "move", *options, folder=where)


@pytest.mark.slow
def test_an_object_with_two_pointers_is_numbered_by_its_address(tmp_path: Path) -> None:
    """The pointers are no numbers of the objects then; all objects together are a structure all the same."""
    (hotspot,) = traced(tmp_path, "ps[17] = ps[4000];", 40).hotspots
    (structure,) = (s for s in hotspot.structures if s.name != "ps")  # not each of the objects, large enough for a line
    assert (structure.count, structure.element_bytes, structure.type) == (11_999, 32, "p")  # but for `rest`
    made = [c for c in hotspot.candidates if c.structures == (structure.id,)]
    assert made
    assert {c.evidence for c in made} == {"verified"}
    assert hotspot.verdict.reason != "scattered-objects"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--temporary",)], ids=["permanent", "temporary"])
def test_scattered_objects_are_gathered_and_compared(options: tuple[str, ...], tmp_path: Path) -> None:
    report = traced(tmp_path, "ps[17] = calloc(1, sizeof **ps);", 8, *options)
    (hotspot,) = report.hotspots
    (structure,) = (s for s in hotspot.structures if s.name == "*ps")
    assert (structure.count, structure.element_bytes, structure.type) == (12000, 96, "p")
    assert [(f.name, f.reads, f.writes) for f in structure.fields] == [("x", 96000, 96000), ("v", 96000, 0)]
    assert {c.evidence for c in hotspot.candidates} == {"verified"}
    assert all("gather" in c.families and c.structures == (structure.id,) for c in hotspot.candidates)
    assert ("gather",) in {c.families for c in hotspot.candidates}
    assert all(c.verification is not None and c.verification.calls == 3 for c in hotspot.candidates)
    assert {check.id: check.ok for check in report.quality.checks}["wrong-map"]
    measured = [c for c in hotspot.candidates if c.conversion is not None]
    assert measured
    assert all(c.conversion is not None and c.conversion.copied_out == ("x",) for c in measured)
    assert all(c.temporary == bool(options) for c in hotspot.candidates)
    assert hotspot.verdict.reason != "scattered-objects"


ARENA = r"""
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
    (tmp_path / "program.c").write_text(ARENA)
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
    (control,) = tmp_path.rglob(f"identity-reindexed-{structure.id}.c")
    assert "LA_WITHIN" in control.read_text()


LIST = r"""
#include <stdio.h>
#include <stdlib.h>
struct node { double key, weight; long tag[4]; struct node *next; };
__attribute__((noinline)) double total(struct node *p)
{
    double sum = 0;
    for (; p; p = p->next)
        if (p->key > 0.5) sum += p->key * p->weight;
    return sum;
}
int main(void)
{
    int count = 3000;
    struct node **all = malloc(count * sizeof *all), *first = 0;
    for (int i = 0; i < count; i++) {
        all[i] = calloc(1, sizeof **all);
        all[i]->key = rand() % 100 / 100.0;
        all[i]->weight = i;
    }
    for (int i = count - 1; i > 0; i--) {
        int j = rand() % (i + 1);
        struct node *t = all[i]; all[i] = all[j]; all[j] = t;
    }
    for (int i = 0; i < count; i++) { all[i]->next = first; first = all[i]; }
    free(all);
    double sum = 0;
    for (int k = 0; k < 4000; k++) { first->weight += 1; sum += total(first); }
    printf("%g\n", sum);
}
"""


@pytest.mark.slow
def test_a_list_of_nodes_allocated_one_by_one_is_measured(tmp_path: Path) -> None:
    """Its links are numbers in the new layouts, though the program writes to nodes between the calls of a batch."""
    (tmp_path / "program.c").write_text(LIST)
    subprocess.run(["gcc", "-O2", "-g", "program.c", "-o", "program"], check=True, cwd=tmp_path)
    (hotspot,) = advise(["./program"], "--budget", "4", "--no-live", "--hotspot", "total", folder=tmp_path).hotspots
    (structure,) = hotspot.structures
    assert (structure.count, structure.element_bytes, structure.type) == (3000, 56, "node")
    assert structure.bytes == 3000 * 56
    assert {c.evidence for c in hotspot.candidates} == {"verified"}
    assert ("gather",) in {c.families for c in hotspot.candidates}
    assert any(c.speedup is not None for c in hotspot.candidates)
    assert hotspot.verdict.reason not in ("scattered-objects", "mockup-form")  # nothing is looked up in the loop
