"""The regions of a run: which one is told, and what is said of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.errors import NeverCalledError, ProgramError, SnapshotError
from layout_advise.progress import Progress
from layout_advise.reasons import Reason
from layout_advise.regions import several as regions
from layout_advise.regions import survey as looking
from layout_advise.regions.looked import with_passed_over
from layout_advise.regions.one import RunContext
from layout_advise.regions.run_seconds import RunTime
from layout_advise.regions.survey import Surveyed, survey
from layout_advise.reports.model.contract import PassedOver
from tests.support.regions.scripted import KEEP, NO_RULE, Road, beside, case_of, replace_action, undecided


def test_late_in_the_run_an_answer_for_most_of_the_samples_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layout_advise.regions.run_seconds.own_time", lambda: 1e9)  # late in the run
    road = Road(monkeypatch, {"a": undecided(Reason.NOT_LIFTED), "b": KEEP, "c": KEEP}, share=0.6)
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b"]
    assert outcome.case.profiled.name == "b"
    assert [one.name for one in outcome.passed_over] == ["a"]
    assert not outcome.beside


def test_early_in_the_run_a_further_region_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """lp_solve ended after 21 s, with an answer for 62 % of its samples."""
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP, "c": KEEP, "d": KEEP}, share=0.31)
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b", "c"]  # which hold enough
    assert [one.case.profiled.name for one in outcome.beside] == ["b", "c"]
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP}, share=0.95)
    assert road.run() is not None
    assert road.looked == ["a"]


def test_further_regions_are_looked_at_while_most_of_the_samples_have_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """qhull ended after 35 of 240 s, with an answer for 16 % of its samples."""
    monkeypatch.setattr("layout_advise.regions.run_seconds.own_time", lambda: 1e9)  # late in the run
    road = Road(monkeypatch, {"a": KEEP, "b": undecided(Reason.FEW_CALLS), "c": KEEP, "d": KEEP})
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b", "c"]
    assert outcome.case.profiled.name == "a"
    assert [one.case.profiled.name for one in outcome.beside] == ["c"]
    assert [one.name for one in outcome.passed_over] == ["b"]


def test_a_region_with_an_answer_that_lies_in_another_one_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its samples are the other's, beside which it has no part; that it was looked at stays known."""
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP})
    monkeypatch.setattr(regions, "apart", lambda looked, main: list(looked[:1]))
    outcome = road.run()
    assert outcome is not None
    assert (outcome.case.profiled.name, outcome.beside) == ("a", ())
    assert [one.name for one in outcome.passed_over] == ["b"]


def test_after_an_answer_what_has_nothing_to_arrange_is_not_studied(monkeypatch: pytest.MonkeyPatch) -> None:
    """qhull: the survey had found so of `qh_facetintersect`, which then took a minute."""
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP, "c": KEEP})
    plain = PassedOver("b", 0.3, Reason.NO_RULE_APPLIES, "no layout rule applies to its structures.")
    beside(road, monkeypatch, Surveyed((case_of(road, "a"),), (), (plain,)))
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["c"]
    assert [one.case.profiled.name for one in outcome.beside] == ["c"]
    assert outcome.passed_over == (plain,)


def test_no_further_region_is_looked_at_where_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP})
    assert road.run(regions=1) is not None
    assert road.looked == ["a"]


@pytest.mark.parametrize("why", [Reason.SHORT_CALLS, Reason.NOTHING_CHANGED, Reason.COMPARISON_BLIND])
def test_callers_come_before_other_functions(why: Reason, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of calls that are too short, or leave nothing behind that tells layouts apart: primer3's `calc_bulge_internal` stores
    a result only where it is the best so far."""
    road = Road(monkeypatch, {"a": undecided(why), "b": KEEP, "c": undecided(Reason.FEW_CALLS)})
    road.near = {"a": ["c"]}
    assert road.run() is not None
    assert road.looked == ["a", "c", "b"]


def test_a_region_in_whose_place_a_known_one_is_taken_is_not_studied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """qhull: in the place of ``main``, a caller, the hottest function was studied again, three times in all."""
    road = Road(monkeypatch, {"a": undecided(Reason.SHORT_CALLS), "main": KEEP, "b": undecided(Reason.NOT_LIFTED)})
    road.near, road.instead = {"a": ["main"]}, {"main": "a"}
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "main", "b"]
    assert [one.name for one in outcome.passed_over] == ["b"]


def test_what_goes_wrong_at_one_region_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": SnapshotError("it died", "of old age"), "b": KEEP})
    outcome = road.run()
    assert outcome is not None
    assert [(one.name, one.reason, one.text) for one in outcome.passed_over] == [("a", "failed", "it died: of old age")]


def test_without_any_report_the_first_error_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SnapshotError, match="first"):
        Road(monkeypatch, {"a": SnapshotError("first"), "b": SnapshotError("second")}).run()


def test_a_program_that_cannot_be_run_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": ProgramError("it crashed"), "b": KEEP})
    with pytest.raises(ProgramError):
        road.run()
    assert road.looked == ["a"]


def test_the_hotspot_that_the_user_names_has_no_other_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": undecided(Reason.SHORT_CALLS), "b": KEEP})
    road.near = {"a": ["b"]}
    outcome = road.run(hotspot="a")
    assert road.looked == ["a"]
    assert outcome is not None
    assert outcome.studied.report.verdict.reason == Reason.SHORT_CALLS


def test_no_further_region_is_begun_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {name: undecided(Reason.NOT_LIFTED) for name in "abcdefghij"})
    assert road.run(RunTime(0.0, 0.0)) is not None
    assert road.looked == ["a"]
    assert road.run(budget=0.0) is not None
    assert road.looked[1:] == list("abcdef")


def test_of_regions_without_an_answer_the_first_is_told_unless_one_says_more(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": undecided("x"), "b": NO_RULE, "c": undecided("y")})
    road.without_times = {"a", "b", "c"}
    outcome = road.run()
    assert outcome is not None
    assert [one.name for one in outcome.passed_over] == ["a", "c"]


def test_an_interval_for_most_of_the_samples_says_more_than_that_no_rule_applies_to_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """brotli: 0.83 to 1.12 for 82 % of its samples stood under a line about a loop with 6 %."""
    outcome = Road(monkeypatch, {"a": undecided("x"), "b": NO_RULE, "c": undecided("y")}).run()
    assert outcome is not None
    assert [one.name for one in outcome.passed_over] == ["b", "c"]


def test_a_region_to_which_no_rule_applies_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """glpk: 17 % of a flat profile were one, and the measured answer beside it was undone."""
    outcome = Road(monkeypatch, {"a": NO_RULE, "b": undecided(Reason.COMPARISON_BLIND), "c": KEEP}).run()
    assert outcome is not None
    assert outcome.studied.report.verdict == KEEP
    assert [one.name for one in outcome.passed_over] == ["a", "b"]
    outcome = Road(
        monkeypatch, {"a": undecided(Reason.NOT_LIFTED), "b": undecided(Reason.COMPARISON_BLIND), "c": KEEP}
    ).run()
    assert outcome is not None
    assert outcome.studied.report.verdict.reason == Reason.PASSED_OVER


def test_a_region_that_cannot_be_looked_at_costs_its_own_part_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hottest of several failed, and the run with it."""
    road = Road(
        monkeypatch,
        {
            "a": SnapshotError("it died"),
            "b": SnapshotError("this too"),
            "c": ProgramError("it crashed"),
            "d": NeverCalledError("it is never called"),
        },
    )
    monkeypatch.setattr(looking, "watch", road.watch)
    start = RunContext(
        Settings(("./app",), Path("run")), cast(Any, None), None, cast(Any, None), Path(), Progress(quiet=True)
    )
    found = survey(start, [road.regions["a"], road.regions["b"]])
    assert [one.name for one, _ in found.failed] == ["a", "b"]
    assert [one.name for one, _ in survey(start, [road.regions["d"], road.regions["a"]]).failed] == ["d", "a"]
    with pytest.raises(ProgramError):
        survey(start, [road.regions["c"], road.regions["a"]])
    road.looked, road.near = [], {"d": ["a", "b"], "a": ["c"]}
    assert [one.name for one, _ in survey(start, [road.regions["d"], road.regions["b"]]).failed] == ["d", "a", "b"]
    assert road.looked == ["d", "a", "b"]  # in the place of the one that is never called, and each once


@pytest.mark.parametrize(("hotspot", "traced"), [(None, ["a", "b"]), ("a", ["a", "b", "c", "d"])])
def test_regions_are_traced_as_long_as_there_is_time_for_it(
    hotspot: str | None, traced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """metis: five were traced in 102 s, of which one was studied then."""
    now = [0.0]
    road = Road(monkeypatch, {name: SnapshotError("it died") for name in "abcd"})

    def watched(start: RunContext, one: Profiled, end: float) -> Any:
        now[0] += 20.0
        return road.watch(start, one)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(looking, "watch", watched)
    given = Settings(("./app",), Path("run"), hotspot=hotspot)
    start = RunContext(given, cast(Any, None), None, cast(Any, None), Path(), Progress(quiet=True))
    found = survey(start, list(road.regions.values()))
    assert [one.name for one, _ in found.failed] == traced
    assert [one.name for one in found.left_out] == [name for name in road.regions if name not in traced]


def test_a_keep_says_nothing_where_most_of_the_time_was_passed_over() -> None:
    passed = [PassedOver("loop", 0.62, "not-lifted", "Undecided: the hotspot could not be turned into C.")]
    verdict = with_passed_over(KEEP, "helper", 0.05, passed, 0.62)
    assert (verdict.action, verdict.reason) == ("undecided", Reason.PASSED_OVER)
    assert verdict.text == (
        "Undecided: 62% of the samples fell where nothing could be measured, most in loop: the hotspot could not be turned "
        "into C. Of helper (5%): Keep it: none gains."
    )
    assert with_passed_over(KEEP, "helper", 0.05, passed, 0.5) is KEEP
    change = replace_action(KEEP)
    assert with_passed_over(change, "helper", 0.05, passed, 0.62) is change
