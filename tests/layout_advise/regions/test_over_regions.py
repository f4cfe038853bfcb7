"""Layouts measured in several regions, from given times; and two regions of a program that want different ones."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from layout_advise.reasons import Reason
from layout_advise.regions.over_regions import over_regions, with_regions
from layout_advise.reports.model.candidate import BudgetTerm, Interval
from layout_advise.reports.model.hotspot import HotspotReport, Verdict
from layout_advise.reports.words.headline import program_gain
from tests.support.command import advise
from tests.support.sample_report import candidate, report

Gains = Mapping[int, float | None]


def region(symbol: str, gains: Gains, *, base: str = "0x7ffff0000000", width: float = 0.02) -> HotspotReport:
    """A region whose verdict advises the fastest of its candidates."""
    (one,) = report().hotspots
    known = {number: Interval(g, g - width, g + width, 9) if g else None for number, g in gains.items()}
    best = max((g, number) for number, g in gains.items() if g)[1]
    verdict = Verdict("change", f"c{best}", gains[best], "measured-gain", "Change it.")
    rows = tuple(candidate(number, interval) for number, interval in known.items())
    structures = tuple(msgspec.structs.replace(s, base=base) for s in one.structures)
    return msgspec.structs.replace(one, symbol=symbol, candidates=rows, verdict=verdict, structures=structures)


def test_the_program_s_gain_is_amdahl_s_over_all_regions() -> None:
    density, drift = region("density", {1: 3.0, 2: 2.0}), region("drift", {1: 0.5, 2: 1.0})
    table = over_regions((density, drift), (0.6, 0.4), ("c1", "c2"))
    assert [row.candidate for row in table] == ["c2", "c1"]
    assert table[1].program is not None
    assert table[1].program.median == pytest.approx(1 / (0.6 / 3 + 0.4 / 0.5))
    assert table[1].program.lo == pytest.approx(1 / (0.6 / 2.98 + 0.4 / 0.48))
    assert [cell.hotspot for cell in table[0].regions] == ["density", "drift"]


def test_a_layout_that_is_best_for_the_program_takes_the_place_of_a_region_s_own() -> None:
    density, drift = region("density", {1: 3.0, 2: 2.0}), region("drift", {1: 0.5, 2: 1.0})
    table = over_regions((density, drift), (0.6, 0.4), ("c1", "c2"))
    judged = with_regions(density, table)
    assert (judged.verdict.action, judged.verdict.candidate) == ("change", "c2")
    assert judged.verdict.gain == pytest.approx(1.98)  # the lower end: it was not measured again
    assert "drift (40%) 1.00 times as fast" in judged.verdict.text
    program = table[0].program
    assert program is not None
    assert program_gain(judged) == int(100 * program.lo) / 100
    assert [c.program_speedup for c in judged.candidates] == [table[1].program and table[1].program.median, program.median]


def test_a_change_that_the_program_loses_by_is_not_advised() -> None:
    table = over_regions((density := region("density", {1: 1.5}), region("drift", {1: 0.5})), (0.5, 0.4), ("c1",))
    judged = with_regions(density, table)
    assert (judged.verdict.action, judged.verdict.reason) == ("undecided", Reason.OTHER_REGIONS)


def test_a_region_that_could_not_measure_it_leaves_the_program_s_gain_open() -> None:
    density, drift = region("density", {1: 3.0}), region("drift", {1: None, 2: 1.0})
    (row,) = over_regions((density, drift), (0.6, 0.4), ("c1",))
    assert row.program is None
    assert with_regions(density, (row,)).verdict.reason == Reason.OTHER_REGIONS


def test_a_region_that_does_not_use_the_structure_stays_as_it_is() -> None:
    density, other = region("density", {1: 3.0}), region("other", {5: 1.2}, base="0x7fff00000000")
    (row,) = over_regions((density, other), (0.6, 0.4), ("c1",))
    assert row.regions[1].speedup == Interval(1.0, 1.0, 1.0)
    judged = with_regions(density, (row,))
    assert (judged.verdict.candidate, judged.verdict.gain) == ("c1", 3.0)
    assert with_regions(other, (row,)) == other


def test_what_a_source_reads_again_is_in_the_program_s_gain() -> None:
    density, drift = region("density", {1: 3.0}), region("drift", {1: 1.2})
    doubts = BudgetTerm("promises", 0.8, 1.2, "read again"), BudgetTerm("caches", 0.5, 3.0, "flushed")
    told = tuple(msgspec.structs.replace(c, error_budget=doubts) for c in drift.candidates)
    (row,) = over_regions((density, msgspec.structs.replace(drift, candidates=told)), (0.6, 0.4), ("c1",))
    assert row.program is not None
    assert row.program.lo == pytest.approx(1 / (0.6 / 2.98 + 0.4 / 0.8))
    assert row.program.median == pytest.approx(1 / (0.6 / 3 + 0.4 / 1.2))


TWO = r"""
#include <stdio.h>
#include <stdlib.h>
struct particle { double x, y, z, mass, vx, vy, vz, rho; };
enum { N = 1 << 13 };
static unsigned order[N];
__attribute__((noipa)) void density(struct particle *ps, int n)
{
    for (int pass = 0; pass < 12; pass++)
        for (int i = 0; i < n; i++)
            ps[i].x = ps[i].x * 0.999 + 0.25;
}
__attribute__((noipa)) void drift(struct particle *ps, const unsigned *order, int n)
{
    for (int k = 0; k < n; k++) {
        struct particle *p = &ps[order[k]];
        p->x += p->vx; p->y += p->vy; p->z += p->vz; p->rho += p->mass * p->x;
    }
}
int main(void)
{
    struct particle *ps = calloc(N, sizeof *ps);
    for (unsigned i = 0; i < N; i++) {
        order[i] = i * 2654435761u % N;
        ps[i].x = i; ps[i].vx = 0.5; ps[i].mass = 1;
    }
    for (int s = 0; s < 6000; s++) { density(ps, N); for (int k = 0; k < 4; k++) drift(ps, order, N); }
    printf("%f\n", ps[7].x + ps[N - 1].rho);
}
"""


@pytest.mark.slow
def test_two_regions_of_a_program_measure_the_same_layouts(tmp_path: Path) -> None:
    (tmp_path / "two.c").write_text(TWO)
    subprocess.run(["gcc", "-g", "-O2", "-o", str(tmp_path / "two"), str(tmp_path / "two.c")], check=True)
    found = advise([tmp_path / "two"], "--regions", "3", "--restores", "3", "--candidates", "4", folder=tmp_path)
    assert {h.symbol for h in found.hotspots} == {"density", "drift"}
    for hotspot in found.hotspots:
        (structure,) = [s for s in hotspot.structures if s.element_bytes == 64]
        assert {f.name for f in structure.fields} >= {"x", "y", "z", "mass", "vx", "vz", "rho"}  # of both regions
        assert hotspot.identity is not None
        assert hotspot.identity.evidence == "verified"
        assert (tmp_path / "run" / "regions" / hotspot.symbol / "candidates.json").is_file()
    layouts = [{c.id: c.layout["s0"] for c in h.candidates if c.variant == "plain"} for h in found.hotspots]
    assert layouts[0] == layouts[1]
    assert {row.candidate for row in found.over_regions} == set(layouts[0])
    assert all(len(row.regions) == 2 for row in found.over_regions)
    assert any(row.program is not None for row in found.over_regions)


def test_layouts_that_no_region_measured_have_no_row() -> None:
    """metis: eight layouts of which nothing was known had 1.00 times in all regions, and no words."""
    one = region("density", {1: 1.5})
    assert [row.candidate for row in over_regions((one, region("drift", {1: 0.9})), (0.5, 0.4), ("c1", "c2", "c7"))] == [
        "c1"
    ]
