"""The summary of rows: totals by program, blockers by number of programs, machines side by side; and its pages."""

from __future__ import annotations

import csv
import io

import msgspec

from layout_advise.farm.rows import of_report
from layout_advise.farm.summary import blockers, comparisons, summary, totals
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.farm import decode_farm, encode_farm
from layout_advise.reports.pages import farm_pages
from tests.support.farm_lists import row
from tests.support.sample_report import report

OPEN = {"action": "undecided", "reason": "not-lifted", "gain": None, "lo": None, "hi": None, "measured": 0}
UNBUILT = {
    "status": "build-failed",
    "why": "no cc",
    "share": None,
    "action": None,
    "reason": "",
    "gain": None,
    "measured": 0,
}


def test_a_program_is_decided_where_all_its_runs_are() -> None:
    rows = [
        row(program="a", share=0.9),
        row(program="a", run="a.O3", **OPEN),
        row(program="b", share=0.5, action="keep", reason="no-gain"),
        row(program="c", **UNBUILT),
    ]
    found = totals(rows)
    assert (found.programs, found.runs, found.reports, found.decided) == (3, 4, 3, 1)
    assert found.covered == round((0.45 + 0.5 + 0) / 3, 4)
    assert (found.change, found.keep, found.undecided) == (1, 1, 1)


def test_a_keep_without_measured_layouts_is_no_measured_answer() -> None:
    rows = [
        row(program="a", action="keep", reason="no-rule-applies", measured=0),
        row(program="b", reason="no-gain", measured=0),
    ]
    assert totals(rows).decided == 0
    assert [one.reason for one in blockers(rows)] == ["no-gain", "no-rule-applies"]


def test_blockers_count_programs_once_and_the_most_common_comes_first() -> None:
    rows = [
        row(program="a", **UNBUILT),
        row(program="b", blocker="call rax: indirect", **OPEN),
        row(program="b", run="b.O3", **OPEN),
        row(program="c", blocker="ud2: stop", **OPEN),
        row(program="d"),
    ]
    assert [(one.reason, one.programs) for one in blockers(rows)] == [("not-lifted", ("b", "c")), ("build-failed", ("a",))]
    assert blockers(rows)[0].examples == ("b: call rax: indirect", "c: ud2: stop")


def test_machines_agree_where_actions_are_alike_and_intervals_overlap() -> None:
    rows = [
        row(program="a", machine="one", lo=1.4, hi=1.6),
        row(program="a", machine="two", lo=1.55, hi=1.9),
        row(program="b", machine="one", lo=1.4, hi=1.5),
        row(program="b", machine="two", lo=1.6, hi=1.7),
        row(program="c", machine="one"),
        row(program="c", machine="two", **OPEN),
        row(program="d", machine="one"),
    ]
    assert [(one.run, one.agree) for one in comparisons(rows)] == [("a.O2", True), ("b.O2", False), ("c.O2", False)]


def test_the_pages_tell_the_rows() -> None:
    told = summary([row(program="<a>"), row(program="b", machine="two", blocker="x|y", **OPEN)], "list.toml")
    assert decode_farm(encode_farm(told)) == told
    text = farm_pages.terminal(told)
    assert "1.50× [1.40, 1.60]" in text
    assert "Measured answers on 1 of 2 programs, covering 40% of their samples" in text
    page = farm_pages.page(told, {("b.O2", "two"): "runs/two/b.O2/report.html"})
    assert "&lt;a&gt;.O2" in page
    assert 'href="runs/two/b.O2/report.html"' in page
    rows = list(csv.DictReader(io.StringIO(farm_pages.as_csv(told))))
    assert [(one["run"], one["gain"], one["machine"]) for one in rows] == [("<a>.O2", "1.5", "one"), ("b.O2", "", "two")]


def test_a_row_takes_the_hotspot_with_most_samples_and_the_advised_layout() -> None:
    given = report()
    found = of_report(row(action=None, gain=None), given)
    hotspot = max(given.hotspots, key=lambda one: one.share)
    chosen = next(one for one in hotspot.candidates if one.id == hotspot.verdict.candidate)
    assert chosen.speedup is not None
    assert (found.action, found.reason) == (hotspot.verdict.action, hotspot.verdict.reason)
    assert (found.candidate, found.gain) == (chosen.id, round(chosen.speedup.median, 3))
    open_ = Interval(0.9, 0.8, 1.02, None)
    kept = msgspec.structs.replace(hotspot.verdict, action="keep", candidate=None, about="c9", interval=open_)
    given = msgspec.structs.replace(given, hotspots=(msgspec.structs.replace(hotspot, verdict=kept),))
    told = of_report(row(), given)
    assert (told.candidate, told.gain, told.lo, told.hi) == ("c9", 0.9, 0.8, 1.02)
    assert of_report(row(), msgspec.structs.replace(given, hotspots=())) == row()
