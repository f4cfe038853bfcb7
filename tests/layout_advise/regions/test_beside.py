"""Regions that are studied beside each other: which are told, what takes their places, and how long it goes on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from layout_advise.choose.policy import CHOOSE
from layout_advise.errors import EntryError, LayoutAdviseError, NeverCalledError, SnapshotError
from layout_advise.reasons import Reason
from layout_advise.regions import beside as side_by_side
from layout_advise.regions import looked as places
from layout_advise.regions.looked import profiled_of
from layout_advise.regions.planned import Unmeasured
from layout_advise.regions.run_seconds import RunSeconds, RunTime
from layout_advise.regions.survey import Surveyed
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import PassedOver
from layout_advise.reports.model.hotspot import LoopAdvice, Verdict
from tests.support.regions.scripted import KEEP, Road, beside, case_of, replace_action, undecided


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("error", [EntryError("cannot stop there"), NeverCalledError("it is never called")])
def test_in_the_place_of_one_that_is_entered_otherwise_its_callers_are_looked_at(
    error: LayoutAdviseError, several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pykdtree: 93 % of the samples lay in a function that ends by a jump to its own head."""
    road = Road(monkeypatch, {"a": undecided(Reason.SHORT_CALLS), "b": undecided("x"), "f": error, "main": KEEP}, 0.6)
    road.near = {"a": ["f"], "f": ["main"]}
    if several:
        beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "f", "main"][several:]
    assert outcome.case.profiled.name == "main"


def test_regions_share_the_seconds_for_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in the place of another has what is left of twice ``--budget``; of several each has its part."""
    road = Road(monkeypatch, {name: undecided(Reason.NOT_LIFTED) for name in "abcdef"})
    road.takes = 50.0
    assert road.run() is not None
    assert road.seconds == [60.0, 60.0, 20.0, 7.5, 7.5, 7.5]
    road = Road(monkeypatch, dict.fromkeys("abc", KEEP))
    road.takes = 20.0
    beside(road, monkeypatch, Surveyed(tuple(case_of(road, name) for name in "abc")))
    assert road.run(budget=30.0) is not None
    assert road.seconds == pytest.approx([20.0, 20.0, 20.0])


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("several", [False, True])
def test_advice_about_a_loop_is_told_before_a_region_where_all_is_open(
    several: bool, near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """csparse: `cs_spsolve`, 69 % of the samples and 1.3 times as fast with its calls compiled in, was passed over."""
    advised = msgspec.structs.replace(
        undecided(Reason.MOCKUP_FORM), loop=LoopAdvice("identity", Interval(1.3, 1.2, 1.4), "compile `cs_dfs` into it")
    )
    road = Road(monkeypatch, {"a": undecided(Reason.SHORT_CALLS), "b": advised, "c": undecided("x")})
    road.near = {"a": ["b"]} if near else {}
    if several:
        beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "c"))))
    outcome = road.run()
    assert outcome is not None
    assert outcome.case.profiled.name == "b"
    assert "b" not in [one.name for one in outcome.passed_over]


@pytest.mark.parametrize("measured", [True, False])
def test_a_keep_that_is_undone_gives_way_to_the_interval_of_what_it_is_undone_for(
    measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """brotli: 6 % of its samples are kept, 82 % were measured, and are open."""
    road = Road(monkeypatch, {"a": undecided("x"), "b": KEEP})
    for name, share in (("a", 0.82), ("b", 0.06)):
        cast(Any, road.regions[name]).share = share
    road.without_times = set() if measured else {"a"}
    monkeypatch.setattr(places, "share_beside", lambda told, passed, main: 0.82)
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert outcome.case.profiled.name == ("a" if measured else "b")
    assert outcome.studied.report.verdict.reason == ("x" if measured else Reason.PASSED_OVER)
    assert [one.case.profiled.name for one in outcome.beside] == ["b" if measured else "a"]


def test_of_regions_beside_each_other_all_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layout_advise.regions.run_seconds.own_time", lambda: 1e9)  # late in the run
    road = Road(monkeypatch, {"a": undecided(Reason.NOT_LIFTED), "b": KEEP, "c": KEEP, "d": KEEP})
    cast(Any, road.regions["b"]).share = 0.6
    seldom = PassedOver("d", 0.1, Reason.FEW_CALLS, "it is entered too seldom.")
    failed = ((road.regions["c"], SnapshotError("it died", "of old age")),)
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b")), failed, (seldom,)))
    outcome = road.run()
    assert outcome is not None
    assert outcome.case.profiled.name == "b"  # it tells most
    assert [one.case.profiled.name for one in outcome.beside] == ["a"]
    assert [(one.name, one.reason) for one in outcome.passed_over] == [("c", "failed"), ("d", Reason.FEW_CALLS)]


def test_of_a_region_without_times_it_counts_that_it_uses_the_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    """imaging -O3: the mock-up of one section of seven did not verify, and "what the program gains is not known"."""
    road = Road(monkeypatch, {"a": KEEP, "b": undecided(Reason.IDENTITY_NOT_VERIFIED)})
    road.without_times = {"b"}
    given = cast(Any, (SimpleNamespace(id="c1"),))
    cases = tuple(replace(case_of(road, name), given=given) for name in "ab")
    beside(road, monkeypatch, Surveyed(cases))
    planned: list[tuple[int, Any]] = []

    def plan(seen: Any, table: object, held: object, unmeasured: Any) -> None:
        planned.append((len(seen.hotspots), unmeasured))

    monkeypatch.setattr(side_by_side, "program_plan", plan)
    outcome = road.run()
    assert outcome is not None
    assert {outcome.case.profiled.name, *(one.case.profiled.name for one in outcome.beside)} == {"a", "b"}
    assert planned == [(1, [Unmeasured("b", 0.3, frozenset(("c1",)))])]


@pytest.mark.parametrize("hotspot", [None, "a"])
def test_where_the_first_region_fails_the_other_one_is_told(monkeypatch: pytest.MonkeyPatch, hotspot: str | None) -> None:
    road = Road(monkeypatch, {"a": SnapshotError("it died"), "b": KEEP})
    beside(road, monkeypatch, Surveyed((case_of(road, "b"),), ((road.regions["a"], SnapshotError("it died")),)))
    outcome = road.run(hotspot=hotspot)
    assert outcome is not None
    assert outcome.case.profiled.name == "b"
    assert [one.name for one in outcome.passed_over] == ["a"]
    assert road.looked == []  # neither is watched again


def test_in_the_place_of_one_of_several_without_an_answer_its_caller_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cost its own part, although a study of it alone would have gone on to the caller."""
    monkeypatch.setattr("layout_advise.regions.run_seconds.own_time", lambda: 1e9)  # late in the run
    road = Road(monkeypatch, {"a": undecided(Reason.SHORT_CALLS), "b": KEEP, "c": KEEP, "d": KEEP})
    road.near = {"a": ["c", "d"]}
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["c"]
    assert [outcome.case.profiled.name, *(one.case.profiled.name for one in outcome.beside)] == ["c", "b"]
    assert [(one.name, one.reason) for one in outcome.passed_over] == [("a", Reason.SHORT_CALLS)]
    assert (
        outcome.case.further_ids == 1 + outcome.case.settings.candidates
    )  # its layouts are not taken for those of the others


def test_beside_a_loop_with_an_answer_those_of_its_function_are_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """clustalw: of two loops of the same length in a recursive function one was told, and the other passed over with it."""
    outcomes: dict[str, Verdict | LayoutAdviseError] = {"a": undecided(Reason.RECURSIVE), "b": KEEP}
    road = Road(monkeypatch, {**outcomes, "a.1": KEEP, "a.2": KEEP, "a.3": undecided(Reason.NOT_IN_SITU), "c": KEEP})
    road.near = {"a": ["a.1", "a.2", "a.3", "c"]}
    monkeypatch.setattr(side_by_side, "is_loop_in", lambda one, other: profiled_of(other).name.startswith("a."))
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run(regions=3)
    assert outcome is not None
    assert road.looked == ["a.1", "a.2", "a.3"]
    assert {outcome.case.profiled.name, *(one.case.profiled.name for one in outcome.beside)} == {"a.1", "a.2", "b"}
    assert [(one.name, one.reason) for one in outcome.passed_over] == [("a", Reason.RECURSIVE), ("a.3", Reason.NOT_IN_SITU)]


def test_callers_that_give_no_answer_either_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice was to study the caller, which had just been done."""
    road = Road(monkeypatch, {"a": undecided(Reason.SHORT_CALLS), "b": KEEP, "c": undecided(Reason.COMPARISON_BLIND)})
    road.near = {"a": ["c"]}
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert [outcome.case.profiled.name, *(one.case.profiled.name for one in outcome.beside)] == ["b", "a"]
    assert [(one.name, one.reason) for one in outcome.passed_over] == [("c", Reason.COMPARISON_BLIND)]


def test_a_region_that_was_left_out_and_looked_at_later_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """gnugo: of one function there were two lines, what it was found to be, and that there had been no time for it."""
    nothing = undecided(Reason.NOTHING_MEASURED)
    road = Road(monkeypatch, dict.fromkeys("abc", nothing))
    late = PassedOver("c", 0.3, Reason.NOT_MEASURED, "tracing the regions before it took the time.")
    other = PassedOver("d", 0.1, Reason.NOT_MEASURED, "tracing the regions before it took the time.")
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b")), (), (late, other)))
    outcome = road.run()
    assert outcome is not None
    assert [(one.name, one.reason) for one in outcome.passed_over] == [
        ("c", Reason.NOTHING_MEASURED),
        ("d", Reason.NOT_MEASURED),
    ]


def test_in_the_place_of_one_without_times_one_that_was_measured_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """edlib: of the function nothing could be tried, and of the loop in it the interval was in a line beside it."""
    short, noise = undecided(Reason.SHORT_CALLS), undecided(Reason.WITHIN_NOISE)
    road = Road(monkeypatch, {"a": short, "b": short, "c": short, "d": noise})
    road.without_times = {"a", "b", "c"}
    road.near = {"a": ["c", "d"]}
    beside(road, monkeypatch, Surveyed(tuple(case_of(road, name) for name in "ab")))
    outcome = road.run()
    assert outcome is not None
    assert outcome.case.profiled.name == "d"
    assert [one.case.profiled.name for one in outcome.beside] == ["b"]
    assert [one.name for one in outcome.passed_over] == ["a", "c"]


def test_where_none_of_several_gives_an_answer_the_next_hottest_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": undecided("x"), "b": undecided("y"), "c": KEEP, "d": KEEP})
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["c", "d"]  # and another one, as most of the samples have no answer yet
    assert outcome.case.profiled.name == "c"
    assert outcome.studied.report.verdict.reason == Reason.PASSED_OVER  # most of the time is in the first two
    assert {one.case.profiled.name for one in outcome.beside} == {"a", "b", "d"}


def test_a_change_of_one_of_several_is_told_before_a_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": KEEP, "b": replace_action(KEEP)})
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run()
    assert outcome is not None
    assert outcome.case.profiled.name == "b"
    assert [outcome.studied.report.alone, outcome.beside[0].studied.report.alone] == [0.3, 0.3]


def test_of_several_regions_the_first_is_studied_however_little_time_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP})
    beside(road, monkeypatch, Surveyed((case_of(road, "a"), case_of(road, "b"))))
    outcome = road.run(RunTime(0.0, 0.0))
    assert outcome is not None
    assert (outcome.case.profiled.name, outcome.beside) == ("a", ())
    assert [(one.name, one.reason) for one in outcome.passed_over] == [("b", Reason.NOT_MEASURED)]
    outcome = road.run(budget=0.0)
    assert outcome is not None
    assert [one.case.profiled.name for one in outcome.beside] == ["b"]  # less to be measured is no less to be studied


def test_a_region_that_was_left_out_is_told_with_the_only_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": KEEP, "b": KEEP})
    plain = PassedOver("b", 0.3, Reason.NO_RULE_APPLIES, "no layout rule applies to its structures.")
    beside(road, monkeypatch, Surveyed((case_of(road, "a"),), (), (plain,)))
    outcome = road.run(hotspot="a")
    assert outcome is not None
    assert outcome.passed_over == (plain,)


@pytest.mark.parametrize(
    ("share", "now", "late"), [(0.8, 199.0, False), (0.8, 201.0, True), (0.2, 149.0, False), (0.2, 151.0, True)]
)
def test_a_cold_region_is_begun_early_only(share: float, now: float, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """cadical: 6 % of the samples were studied for three minutes, after 90 %, until the run was stopped."""
    time = RunTime()
    start = cast(Any, SimpleNamespace(time=time))
    search = side_by_side.Search(start, 100.0, [], set(), 0, RunSeconds(50.0, 0.8), [])
    monkeypatch.setattr("time.monotonic", lambda: now)
    time.answered = CHOOSE.mostly_answered
    assert search.is_late(share) == late
    assert not search.is_late(share, shares=True)  # the plan of another one hangs on it
    own = search.seconds.of(share)
    time.until = now + 30.0 + own
    time.longest = 29.0
    assert search.is_late(share) == late
    time.answered -= 0.01
    assert not search.is_late(share)  # most of the samples have no answer
    time.longest = 31.0
    assert search.is_late(share)
    time.answered = 0.0
    assert not search.is_late(share)  # nothing would be told
    time.without = now + 30.0 + own
    assert search.is_late(share)
