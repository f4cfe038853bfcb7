"""The greatest gain of a program that its regions leave possible."""

from __future__ import annotations

import pytest

from layout_advise.reasons import Reason
from layout_advise.regions import whole
from layout_advise.regions.survey import Surveyed
from layout_advise.reports.model.hotspot import Verdict
from tests.support.regions.scripted import KEEP, Road, beside, case_of, undecided


def test_regions_that_are_open_by_themselves_may_exclude_a_gain_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """minisat: 0.88 to 1.08 in one region, at most 1.04 in another, and nothing was said of the program."""
    road = Road(monkeypatch, {"a": undecided(Reason.MOCKUP_FORM), "b": undecided(Reason.WITHIN_NOISE), "c": KEEP, "d": KEEP})
    road.most_gain = {"a": 1.08, "b": 1.04}
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert road.looked == []  # nothing else is looked for
    verdict = outcome.studied.report.verdict
    assert (verdict.action, verdict.reason) == ("keep", Reason.NO_PROGRAM_GAIN)
    assert "step (30% of the samples) 1.08 times, step (30% of the samples) 1.04 times as fast at most" in verdict.text
    assert "the program at most 1.04 times. Nothing is known of the other 40% of the samples." in verdict.text
    assert verdict.text.endswith("Of a alone: so it is.")
    assert outcome.beside[0].studied.report.verdict.action == "undecided"  # by itself


def test_what_was_not_measured_excludes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": undecided(Reason.MOCKUP_FORM), "b": undecided(Reason.NOT_LIFTED)})
    road.most_gain = {"a": 1.08}
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert outcome.studied.report.verdict.action == "undecided"


def test_regions_without_a_rule_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """argon2: of a region of 9 % an `undecided` was told, and nothing of the hottest one, in which no rule applies."""
    nothing = Verdict("keep", None, None, Reason.NO_RULE_APPLIES, "Keep it: no layout rule applies.")
    road = Road(monkeypatch, {"a": nothing, "b": undecided(Reason.NOT_IN_SITU), "c": KEEP})
    road.most_gain = {"b": 1.1}
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b"]
    verdict = outcome.studied.report.verdict
    assert (verdict.action, verdict.reason) == ("keep", Reason.NO_PROGRAM_GAIN)
    assert "step (30% of the samples) 1.10 times as fast at most: the program at most 1.03 times." in verdict.text
    assert "In step (30% of the samples) no layout rule applies." in verdict.text
    only = Road(monkeypatch, {"a": nothing, "b": nothing, "c": undecided(Reason.NOT_LIFTED)})
    told = only.run()
    assert told is not None
    assert told.studied.report.verdict.reason == Reason.NO_RULE_APPLIES  # nothing was measured


def test_one_region_after_the_other_is_looked_at_until_the_program_cannot_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {name: undecided(Reason.MOCKUP_FORM) for name in "abc"})
    road.most_gain = {"a": 1.1, "b": 1.01, "c": 1.01}
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b"]
    assert outcome.studied.report.verdict.reason == Reason.NO_PROGRAM_GAIN
    assert [one.studied.report.alone for one in outcome.beside] == [0.3]
    assert outcome.passed_over == ()
    assert road.run(hotspot="a") is not None
    named = Road(monkeypatch, {"a": undecided(Reason.MOCKUP_FORM)})
    named.most_gain = {"a": 1.01}
    told = named.run(hotspot="a")  # the user asks for it alone
    assert told is not None
    assert told.studied.report.verdict.action == "undecided"


@pytest.mark.parametrize(
    ("parts", "excludes"),
    [
        ([(0.6, 1.08)], True),  # 1 / (1 - 0.6 * (1 - 1 / 1.08)) = 1.047
        ([(0.7, 1.08)], False),
        ([(0.3, 1.2)], False),  # 1.053
        ([(0.49, 1.0)], False),  # most of the program is not measured
        ([(0.5, 0.4)], True),
        ([(0.5, 0.4), (0.3, 1.3)], False),  # what loses in one region makes up for nothing in another
        ([(0.5, 1.05), (0.3, 1.05)], True),
    ],
)
def test_the_programs_greatest_gain(parts: list[tuple[float, float]], excludes: bool) -> None:
    known = whole.Reach(tuple(whole.RegionReach("x", share, gain) for share, gain in parts), 1.05)
    assert known.excludes == excludes
    assert not whole.Reach(known.parts, 1.05, changes=True).excludes
    assert whole.Reach(known.parts, 1.10).program == known.program
