"""The whole road with the plan of the whole program run in it: two regions over one array on the new layout at once.

What is asserted holds whatever the machine's load: that the program ran so to its end and did the same, and what was told.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.exports.markdown import markdown
from layout_advise.reports.model.contract import Report
from layout_advise.reports.pages import html
from layout_advise.reports.pages.terminal import render
from tests.support.command import advise

SOURCE = Path(__file__).with_name("two.c")
CALLS = 90


def planned(what: str, folder: Path, *options: str) -> Report:
    """The program studied, whose own code writes to the array between the regions where ``what`` says so."""
    built = folder / "two"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-g", "-O2", "-o", built, SOURCE], check=True)
    given = ["--regions", "2", "--restores", "2", "--candidates", "1", *options]
    return advise([built, what], *given, folder=folder)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["between", "alone"])
def test_the_plan_is_run_with_both_regions_at_once(what: str, tmp_path: Path) -> None:
    report = planned(what, tmp_path, "--live")
    alone = subprocess.run([tmp_path / "two", what], capture_output=True)
    assert report.plan is not None
    (one,) = report.plan.structures
    trial = one.trial
    assert trial is not None
    assert not trial.reason
    assert trial.speedup is not None
    assert trial.speedup.lo <= trial.speedup.median <= trial.speedup.hi
    assert trial.with_copies is not None
    assert trial.with_copies < trial.speedup.median
    assert min(trial.original_s, trial.layout_s, trial.copies_s, trial.own_s) > 0
    assert trial.predicted_s == pytest.approx(trial.original_s / one.program.median)
    assert (trial.exit_status, trial.output_bytes, trial.held) == (5, len(alone.stdout), True)
    assert trial.flushed == (what == "between")
    assert {r.hotspot for r in trial.regions} == {"push", "pull"}
    for region in trial.regions:
        (hotspot,) = [h for h in report.hotspots if h.symbol == region.hotspot]
        assert region.first == hotspot.call
        assert region.candidate in {c.id for c in hotspot.candidates}
        assert region.calls == region.mockups == CALLS - region.first + 1
        assert (region.left_out, region.within) == (0, 0)
        copies = 2 if what == "between" else 1  # back after each call, and in where the program itself has written
        others = max(r.first for r in trial.regions) - region.first  # calls of the other one that are the original's
        assert -2 <= region.conversions - copies * region.calls <= others + 2
    for text in (render(report), html.render(report), markdown(report)):
        assert "Run so, all regions at once: " in text


@pytest.mark.slow
def test_no_plan_is_run_where_that_is_not_wanted(tmp_path: Path) -> None:
    report = planned("between", tmp_path, "--no-live")
    assert report.plan is not None
    assert all(one.trial is None for one in report.plan.structures)
    assert "Run so" not in render(report)
