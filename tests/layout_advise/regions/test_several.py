"""The regions of a run: which one is told, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.describe.checks import Conditions
from layout_advise.describe.studied import Studied
from layout_advise.errors import EntryError, LayoutAdviseError, NeverCalledError, ProgramError, SnapshotError
from layout_advise.observe.case import Case
from layout_advise.progress import Progress
from layout_advise.reasons import Reason
from layout_advise.regions import beside as side_by_side
from layout_advise.regions import looked as places
from layout_advise.regions import several as regions
from layout_advise.regions import survey as looking
from layout_advise.regions import whole
from layout_advise.regions.logged_order import LoggedOrder
from layout_advise.regions.looked import Told, profiled_of, with_passed_over
from layout_advise.regions.one import RunContext
from layout_advise.regions.planned import Unmeasured
from layout_advise.regions.run_seconds import RunSeconds, RunTime
from layout_advise.regions.several import study_regions
from layout_advise.regions.survey import Surveyed, survey
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import PassedOver
from layout_advise.reports.model.hotspot import LoopAdvice, Verdict
from tests.support.sample_report import report

KEEP = Verdict("keep", None, None, Reason.NO_GAIN, "Keep it: none gains.")
NO_RULE = Verdict("keep", None, None, Reason.NO_RULE_APPLIES, "Keep it: no layout rule applies.")


def undecided(reason: str) -> Verdict:
    return Verdict("undecided", None, None, reason, "Undecided: so it is.")


class Road:
    """A program of functions, each with what comes of it; the order in which they were looked at."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, Verdict | LayoutAdviseError], share: float = 0.3
    ) -> None:
        self.outcomes, self.looked, self.takes = outcomes, list[str](), 0.0
        given = {"share": share, "nest": None, "threaded": False, "ranking": ()}
        self.regions = {name: cast(Profiled, SimpleNamespace(name=name, title=name, **given))
                        for name in outcomes}  # fmt: skip
        self.near: dict[str, list[str]] = {}
        self.instead: dict[str, str] = {}
        self.most_gain: dict[str, float] = {}
        self.without_times: set[str] = set()
        self.seconds: list[float | None] = []
        monkeypatch.setattr(places, "key_of", lambda one: (one.name, 0))
        monkeypatch.setattr(places, "others", lambda one, main: iter(self.regions.values()))
        monkeypatch.setattr(places, "callers", lambda one, main: iter(self.regions[n] for n in self.near.get(one.name, [])))
        monkeypatch.setattr(places, "loops_of", lambda case, least: ())
        monkeypatch.setattr(regions, "regions_beside", lambda start, one: (one,))
        for module in (regions, side_by_side):
            monkeypatch.setattr(module, "watch", self.watch)
            monkeypatch.setattr(module, "study_in_time", self.study_in_time)
        for module in (places, whole):
            monkeypatch.setattr(module, "share_beside", lambda told, passed, main: 0.3 * len(passed))

    def watch(self, start: RunContext, one: Profiled, end: float = 0.0) -> Any:
        self.looked.append(one.name)
        found = self.outcomes[one.name]
        if isinstance(found, LayoutAdviseError):
            raise found
        return case_of(self, self.instead.get(one.name, one.name))

    def study_in_time(self, case: Any, time: RunTime) -> tuple[Any, Studied]:
        verdict = self.outcomes[case.profiled.name]
        assert isinstance(verdict, Verdict)
        self.seconds.append(case.seconds)
        hotspot = msgspec.structs.replace(report(verdict).hotspots[0], most_gain=self.most_gain.get(case.profiled.name))
        if case.profiled.name in self.without_times:
            hotspot = msgspec.structs.replace(hotspot, candidates=())
        return case, Studied(hotspot, Conditions(None, None, 0.0, None, False, None, 0, None), took=self.takes)

    def run(self, time: RunTime | None = None, **settings: Any) -> Told | None:
        given = replace(Settings(("./app",), Path("run")), **settings)
        start = RunContext(given, cast(Any, None), None, cast(Any, None), Path(), Progress(quiet=True), time or RunTime())
        return study_regions(start, next(iter(self.regions.values())))


def test_an_answer_for_most_of_the_samples_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    road = Road(monkeypatch, {"a": undecided(Reason.NOT_LIFTED), "b": KEEP, "c": KEEP}, share=0.6)
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b"]
    assert outcome.case.profiled.name == "b"
    assert [one.name for one in outcome.passed_over] == ["a"]
    assert not outcome.beside


def test_further_regions_are_looked_at_while_most_of_the_samples_have_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """qhull ended after 35 of 240 s, with an answer for 16 % of its samples."""
    road = Road(monkeypatch, {"a": KEEP, "b": undecided(Reason.FEW_CALLS), "c": KEEP, "d": KEEP})
    outcome = road.run()
    assert outcome is not None
    assert road.looked == ["a", "b", "c"]
    assert outcome.case.profiled.name == "a"
    assert [one.case.profiled.name for one in outcome.beside] == ["c"]
    assert [one.name for one in outcome.passed_over] == ["b"]


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


@pytest.mark.parametrize(
    ("share", "now", "late"), [(0.8, 199.0, False), (0.8, 201.0, True), (0.2, 149.0, False), (0.2, 151.0, True)]
)
def test_a_cold_region_is_begun_early_only(share: float, now: float, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """cadical: 6 % of the samples were studied for three minutes, after 90 %, until the run was stopped."""
    time = RunTime()
    start = cast(Any, SimpleNamespace(time=time))
    search = side_by_side.Search(start, 100.0, 200.0, [], set(), 0, RunSeconds(60.0, 0.8), [])
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


def beside(road: Road, monkeypatch: pytest.MonkeyPatch, surveyed: Surveyed) -> None:
    """The regions of ``road`` are wanted beside each other, and ``surveyed`` is what is known of them."""
    monkeypatch.setattr(regions, "regions_beside", lambda start, one: tuple(road.regions.values()))
    monkeypatch.setattr(regions, "survey", lambda start, wanted: surveyed)
    monkeypatch.setattr(side_by_side, "over_regions", lambda hotspots, alone, shared: ())
    monkeypatch.setattr(side_by_side, "log_order", lambda start, wanted: LoggedOrder(None))


def case_of(road: Road, name: str) -> Case:
    nothing = cast(Any, None)
    return Case(Settings(("./app",), Path("run")), nothing, road.regions[name], nothing, nothing, None, nothing)


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
    outcome = road.run()
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


def replace_action(verdict: Verdict) -> Verdict:
    return Verdict("change", "c1", 1.5, Reason.MEASURED_GAIN, verdict.text)
