"""The whole road on a program that uses one irregularly chosen element of each pair, the others at the next call."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.model.hotspot import HotspotReport
from tests.support.command import advise, run_command
from tests.support.run_folders import studied_region

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct cell { double value, rate, rest[6]; };
__attribute__((noinline)) void relax(struct cell *cells, const int *chosen, long n)
{
    for (long i = 0; i < n; i++)
        cells[chosen[i]].value += cells[chosen[i]].rate * (1.0 - cells[chosen[i]].value);
}
static unsigned hash(unsigned x) { x ^= x >> 16; x *= 0x45d9f3bu; x ^= x >> 13; return x * 0x45d9f3bu >> 16; }
int main(int argc, char **argv)
{
    enum { PAIRS = 80000, CALLS = 300 };
    struct cell *cells = calloc(2 * PAIRS, sizeof *cells);
    int *lists[2] = {malloc(PAIRS * sizeof(int)), malloc(PAIRS * sizeof(int))};
    const char *mode = argc > 1 ? argv[1] : "classes";
    double sum = 0.0;
    for (int k = 0; k < 2 * PAIRS; k++) {
        cells[k].value = hash(k) % 1000 / 1000.0;
        cells[k].rate = hash(k + 77) % 1000 / 2000.0;
    }
    for (int call = 0; call < CALLS; call++) {
        int *chosen = lists[call % 2];
        for (int k = 0; k < PAIRS; k++)
            chosen[k] = 2 * k + (hash(strcmp(mode, "free") ? k : k + 31 * call) + call) % 2;
        if (!strcmp(mode, "neighbours"))
            chosen[0] = chosen[5] ^ 1;
        relax(cells, chosen, PAIRS);
    }
    for (int k = 0; k < 2 * PAIRS; k++)
        sum += cells[k].value;
    printf("%.17g\n", sum);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chosen")
    (folder / "relax.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-o", str(folder / "relax"), str(folder / "relax.c")], check=True)
    return folder / "relax"


def measured(program: Path, mode: str, folder: Path) -> HotspotReport:
    options = ("--hotspot", "relax", "--restores", "5", "--candidates", "2")
    return advise([program, mode], *options, folder=folder).hotspots[0]


@pytest.mark.slow
def test_elements_of_one_class_are_stored_together(program: Path, tmp_path: Path) -> None:
    hotspot = measured(program, "classes", tmp_path)
    apart = [c for c in hotspot.candidates if c.classes is not None and c.variant == "plain"]
    (found,) = [c for c in apart if c.families == ("split", "compact")]
    assert (found.classes, found.evidence) == (2, "verified")
    assert found.verification is not None
    assert found.verification.calls == 3
    assert found.derivation == ("9", "3", "7")
    assert list(found.layout.values()) == ["S_{0;2} ⊗ A_80000 ⊗ A_2"]
    assert found.traffic is not None
    assert found.traffic.lines_after == 80000 * 16 // 64
    assert "more lines */" in found.source
    whole = (tmp_path / "run" / (found.mockup or "")).read_text()
    assert whole.count("0x") > 160000 // 64
    assert hotspot.verdict.reason != "not-all-tried"
    assert [s.used_part for s in hotspot.structures if s.name == "cells"] == [0.5]


@pytest.mark.slow
def test_two_of_one_pair_are_refused(program: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("trace", "-q", "--hotspot", "relax", "-o", run, "--until", "explore", "--", program, "neighbours")
    assert run_command(*words).returncode == 0
    layouts = [r for c in json.loads((studied_region(run) / "candidates.json").read_text()) for r in c["relayouts"]]
    assert layouts
    assert all(layout["chosen"] is None for layout in layouts)


@pytest.mark.slow
def test_a_new_choice_at_every_call_is_no_permanent_layout(program: Path, tmp_path: Path) -> None:
    hotspot = measured(program, "free", tmp_path)
    found = [c for c in hotspot.candidates if c.classes is not None]
    assert found
    assert all(c.evidence == "rejected" for c in found)
    assert all(c.reason is not None and "no permanent division into classes" in c.reason for c in found)
