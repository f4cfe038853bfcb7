"""Trials in a running program that is played: which runs are made, what is compared, and why there may be no trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from layout_advise.errors import OvertimeError, ProgramError
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Relayout, Structure
from layout_advise.measure.effort import TrialTime
from layout_advise.measure.live import bench as live_bench
from layout_advise.measure.live import trial as live_trial
from layout_advise.measure.live.bench import LiveBench, LiveSubject
from layout_advise.measure.live.outcome import LiveTrial, with_unimproved
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.remap.conversion_view import NOTHING
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.tracer.live.orders import LiveCalls, LiveTask
from layout_advise.tracer.live.outcome import CONVERTED, FAULTED, MOCKUP, ORIGINAL, PASSED, STOPPED, LiveRun
from layout_advise.tracer.trace.trace import Allocation

BASE, BYTES, CALLS = 0x10000, 6400, 200
GENERAL, ENDING = Path("general.so"), Path("ending.so")
UNTRIED = (LiveCalls.NONE, LiveCalls.LOADED)
STRUCTURE = Structure("s0", "s", BASE, BYTES, (Dim(100, 64),), ())


class Played:
    """A program of ``CALLS`` calls of 100 µs, 80 as the mock-up. ``dies`` at these calls as the mock-up; ``passes`` that
    part of the calls with a mock-up that is not the general one; ``prints`` so much, as the mock-up and by itself."""

    def __init__(
        self,
        dies: Sequence[int] = (),
        passes: float = 0.0,
        prints: Callable[[LiveCalls, int], bytes] = lambda calls, number: b"12\n",
        ends: Callable[[LiveCalls], int] = lambda calls: 0,
        converted: bool = False,
        blind: Sequence[int] = (),
        surveyed: int = CALLS,
        strays: Sequence[int] = (),
        slow: bool = False,
    ) -> None:
        self.strays, self.slow = strays, slow
        self.blind, self.surveyed = frozenset(blind), surveyed
        self.dies, self.passes, self.prints, self.ends, self.converted = dies, passes, prints, ends, converted
        self.runs: list[tuple[LiveCalls, LiveTask]] = []

    def run(self, command: Sequence[str], entry: object, task: LiveTask, calls: LiveCalls, **options: Any) -> LiveRun:
        self.runs.append((calls, task))
        if self.slow and task.mockup == ENDING:
            raise ProgramError("the program took longer", "it was ended", "")
        dies = (*self.dies, *self.strays) if task.mockup == ENDING else self.dies
        number = np.arange(CALLS)
        if calls == LiveCalls.SURVEY:
            return self.survey(task, dies)
        mockup = {0: number < 0, 1: number >= 0, 2: number % 2 == 0, 3: number % 2 == 1, 5: number < 0}[int(calls)]
        original = calls in UNTRIED
        passed = number < 0 if original or task.mockup == GENERAL else number % 10 < 10 * self.passes
        left = np.isin(task.first + number, task.left_out) | ((task.last > 0) & (task.first + number > task.last))
        deadly = mockup & ~passed & ~left & np.isin(task.first + number, dies)
        mockup = mockup & ~passed & ~left
        inside = task.first + int(np.flatnonzero(deadly)[0]) if deadly.any() else 0
        roles = np.where(mockup, MOCKUP | (CONVERTED if self.converted else 0), ORIGINAL).astype(np.uint64)
        roles[left] = ORIGINAL if original else PASSED
        layout = 60e3 if self.converted and task.flush else 80e3
        return LiveRun(
            CALLS, int(mockup.sum()), 1, int((passed | left).sum()), inside, "", np.where(mockup, layout, 100e3), roles,
            -4 if inside else self.ends(calls), 0.01, 0.01, self.prints(calls, len(self.runs)), b"",
        )  # fmt: skip

    def survey(self, task: LiveTask, dies: Sequence[int]) -> LiveRun:
        """One that comes to ``surveyed`` calls, and sees those of ``dies`` but what it is ``blind`` to."""
        call = task.first + np.arange(CALLS)
        seen = np.isin(call, sorted({*dies} - self.blind)) & (call < task.first + self.surveyed)
        roles = np.where(seen, np.where(call % 2, STOPPED, FAULTED), MOCKUP).astype(np.uint64)
        last = task.first + self.surveyed - 1
        nothing = np.zeros(CALLS)
        return LiveRun(CALLS, 0, 1, 0, 0, "", nothing, roles, 0, 0.01, 0.01, b"", b"", last)


def bench(**changes: object) -> LiveBench:
    given: dict[str, object] = {
        "threaded": False,
        "threads": 1,
        "recursive": False,
        "temporary": False,
        "ns": 100e3,
        "live": "auto",
    }
    given |= {"calls": 500, "seconds": 0.01} | changes
    silent = SimpleNamespace(step=lambda text: None, count=lambda text, i, n: None)
    profiled = SimpleNamespace(
        threaded=given["threaded"], entry=SimpleNamespace(chunk=0), run=SimpleNamespace(seconds=given["seconds"])
    )
    case = SimpleNamespace(
        per_call=lambda ns: ns,
        chosen=SimpleNamespace(in_situ_ns=given["ns"], call=5),
        profiled=profiled,
        probe=SimpleNamespace(threads=given["threads"], recursive=given["recursive"], calls=given["calls"]),
        settings=SimpleNamespace(temporary=given["temporary"], command=("p",), timeout=60.0, live=given["live"]),
        space=SimpleNamespace(progress=silent, scratch=None),
        stdin=None,
    )
    live_ins = [SimpleNamespace(location=Gpr(number)) for number in (7, 6, 2)]
    registers = SimpleNamespace(gpr=[BASE + 64 if n == 7 else n for n in range(16)])
    source = SimpleNamespace(
        trace=SimpleNamespace(registers=registers), lifted=SimpleNamespace(live_ins=live_ins), varying=frozenset({2})
    )
    return LiveBench(cast("Any", case), cast("Any", source), (Allocation(BASE, BYTES, 3, 0),), 120.0)


def subject(structure: Structure = STRUCTURE, general: Path | None = GENERAL) -> LiveSubject:
    relayout = Relayout(structure, (), (), (), "")
    return LiveSubject(Path("m.so"), Candidate("c1", (relayout,), (), ()), NOTHING, lambda: general)


def trial(monkeypatch: pytest.MonkeyPatch, played: Played, **changes: object) -> LiveTrial:
    monkeypatch.setattr(live_trial, "run_live", played.run)
    return live_trial.tried(bench(**changes), subject())


def kinds(played: Played) -> list[LiveCalls]:
    return [calls for calls, _ in played.runs]


def test_each_call_is_timed_both_ways_and_one_run_has_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    found = trial(monkeypatch, played)
    pairs = [LiveCalls.ONE, LiveCalls.OTHER, LiveCalls.OTHER, LiveCalls.ONE]
    assert kinds(played) == [LiveCalls.NONE, LiveCalls.LOADED] + [LiveCalls.ALL] + pairs * 2 + pairs[:2]
    assert found.ratio is not None
    assert found.ratio.median == pytest.approx(1.25)
    assert found.ratio.restores == 5
    assert (found.calls, found.passed, found.exit_status, found.output_bytes) == (200, 0, 0, 3)
    assert found.original_ns == pytest.approx(100e3)
    assert found.layout_ns == pytest.approx(80e3)
    (_, task), *_ = played.runs
    assert task.ranges[0].start == BASE
    assert task.ranges[0].end == BASE + BYTES
    assert task.blocks == (Allocation(BASE, BYTES, 3, 0),)
    assert task.guarded == ((6, 6, 6), (7, BASE + 64, BASE + 64))  # rdx differs from call to call


def test_the_calls_are_kept_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an ordinary run and those of the run in which all were the mock-up's that could be."""
    kept = trial(monkeypatch, Played(dies=(17, 30))).course
    assert kept is not None
    assert (kept.first, kept.calls, kept.stretch) == (5, 200, 2)
    assert set(kept.original_ns) == {100e3}
    assert set(kept.layout_ns) == {80e3}
    assert [k for k, left in enumerate(kept.left_out) if left] == [6, 12]
    assert sum(kept.left_out) == 2


def test_rows_that_lie_apart_are_watched_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Structure("s0", "s", BASE, BYTES, (Dim(4, 1600), Dim(10, 64)), ())
    (held,) = bench().task(subject(rows)).ranges
    assert held.end == BASE + 3 * 1600 + 10 * 64


def test_calls_at_which_the_mockup_dies_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(dies=(17, 30))
    found = trial(monkeypatch, played)
    assert found.ratio is not None
    assert (found.calls, found.passed, found.stopped, found.faulted) == (198, 2, 1, 1)
    assert played.runs[-1][1].left_out == (17, 30)
    assert found.unimproved == pytest.approx(0.01)
    assert kinds(played).count(LiveCalls.SURVEY) == 1
    found = trial(monkeypatch, Played(dies=range(10, 190)))
    assert found.ratio is None
    assert "cannot do 180 of 200 calls: 90 take a way that no compared call took, 90 use other memory" in found.reason


def test_many_calls_left_to_the_original_lower_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = trial(monkeypatch, Played(dies=(17,))), trial(monkeypatch, Played(dies=range(10, 90)))
    assert few.ratio is not None
    assert many.ratio is not None
    assert many.unimproved == pytest.approx(0.4)
    assert many.ratio.lo < 1.16 < few.ratio.lo < many.ratio.median
    assert with_unimproved(Ratio(0.5, 0.5, 0.5, 2), 0.9).lo == 0.5


def test_a_death_that_the_survey_did_not_see_is_left_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(dies=(17, 30, 33), blind=(30, 33))
    assert trial(monkeypatch, played).passed == 3
    assert trial(monkeypatch, Played(dies=(17,), blind=(17,))).passed == 1
    deaf = trial(monkeypatch, Played(dies=range(10, 40), blind=range(10, 40)))
    assert deaf.ratio is None
    assert "ended the program at call 15" in deaf.reason
    asked = trial(monkeypatch, Played(dies=range(10, 40), blind=range(10, 40)), live="always")
    assert (asked.calls, asked.passed, asked.surveyed) == (5, CALLS - 5, 14)


def test_calls_that_a_survey_did_not_come_to_are_the_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(dies=(17, 150), surveyed=120)
    found = trial(monkeypatch, played)
    task = played.runs[-1][1]
    assert (task.left_out, task.last) == ((17,), task.first + 119)
    assert found.ratio is not None
    assert found.passed == 81
    assert found.unimproved == pytest.approx(1 / 120)  # those after it are like those before
    assert found.surveyed == task.first + 119
    assert trial(monkeypatch, Played(dies=(17,))).surveyed == 0


def test_where_many_calls_have_other_arguments_a_mockup_takes_any(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(passes=0.5)
    found = trial(monkeypatch, played)
    assert (found.calls, found.passed) == (200, 0)
    task = played.runs[-1][1]
    assert task.mockup == GENERAL
    assert task.guarded == ((7, BASE, BASE + BYTES - 1),)
    assert task.outside == (2, 6)
    few = Played(passes=0.1)
    assert trial(monkeypatch, few).passed == 20
    assert few.runs[-1][1].mockup != GENERAL


def test_where_the_data_are_converted_before_each_call_flushed_copies_stand_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trial(monkeypatch, Played(converted=True))
    assert found.converted
    assert found.ratio is not None
    assert found.ratio.lo == pytest.approx(1.25 * (1 - 40 / 100e3))
    assert found.ratio.hi == pytest.approx(100 / 60 * (1 + 150 / 80e3))


@pytest.mark.parametrize(
    ("played", "why"),
    [
        (Played(prints=lambda calls, n: b"2" if calls in UNTRIED else b"1"), "printed something else"),
        (Played(prints=lambda calls, n: b"1 " * n), "differs from run to run"),
        (Played(ends=lambda calls: 0 if calls in UNTRIED else 3), "ended with exit status 3 instead of exit status 0"),
        (Played(ends=lambda calls: 3 if calls == LiveCalls.OTHER else 0), "ended with exit status 3"),
    ],
)
def test_a_program_that_does_something_else_gives_no_answer(
    monkeypatch: pytest.MonkeyPatch, played: Played, why: str
) -> None:  # fmt: skip
    found = trial(monkeypatch, played)
    assert found.ratio is None
    assert why in found.reason


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"threaded": True}, "several threads"),
        ({"threads": 3}, "several threads"),
        ({"recursive": True}, "calls itself"),
        ({"temporary": True}, "conversion instead"),
        ({"ns": 300.0}, "too short"),
        ({"calls": 20}, "too few calls"),
        ({"seconds": 20.0}, "takes 20 s, and would have to run 8 times in 60 s (--budget)"),
    ],
)
def test_what_cannot_be_tried_is_not_begun(monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], why: str) -> None:
    played = Played()
    found = trial(monkeypatch, played, **changes)
    assert why in found.reason
    assert not played.runs


@pytest.mark.parametrize(("changes", "why"), [({"ns": 300.0}, "too short"), ({"calls": 20}, "too few calls")])
def test_calls_that_are_not_timed_by_themselves_run_so_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], why: str
) -> None:  # fmt: skip
    played = Played()
    found = trial(monkeypatch, played, live="always", **changes)
    assert kinds(played) == [LiveCalls.NONE, LiveCalls.LOADED, LiveCalls.ALL]
    assert (found.ratio, found.calls, found.timed, found.course) == (None, CALLS, 0, None)
    assert why in found.reason
    assert found.output_bytes == 3
    other = trial(monkeypatch, Played(ends=lambda calls: 0 if calls in UNTRIED else 3), live="always", **changes)
    assert (other.ratio, other.calls) == (None, 0)


def test_what_stops_the_times_does_not_stop_a_trial_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for live, calls in (("auto", 0), ("always", CALLS)):
        Clock(monkeypatch, Played(), 30.0, 4.0)  # too slow for pairs of runs
        found = live_trial.tried(bench(seconds=4.0, live=live), subject())
        assert "too slow" in found.reason
        assert (found.ratio, found.calls, found.timed) == (None, calls, 0)
        monkeypatch.undo()
    other = Played(ends=lambda calls: 3 if calls == LiveCalls.OTHER else 0)
    assert trial(monkeypatch, other, live="always").calls == 0  # as the mock-up of other calls it ends in another way


def test_a_mockup_given_up_on_the_way_has_run_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """box2d: the memory of its constraints is freed after a step of many calls, and the rest of them are the original's."""

    class Freed(Played):
        def run(self, command: Sequence[str], entry: object, task: LiveTask, calls: LiveCalls, **options: Any) -> LiveRun:
            run = super().run(command, entry, task, calls, **options)
            return replace(run, error="the memory is freed", mockups=30) if calls == LiveCalls.ALL else run

    found = trial(monkeypatch, Freed(), live="always")
    assert (found.ratio, found.calls, found.passed, found.reason) == (None, 30, 500 - 5 + 1 - 30, "the memory is freed")
    assert trial(monkeypatch, Freed()).calls == 0


@pytest.mark.parametrize(("able", "calls"), [(50, 50), (1, 1), (0, 0)])
def test_few_calls_that_can_be_done_are_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, able: int, calls: int
) -> None:  # fmt: skip
    dies = range(5 + able, 5 + CALLS)
    assert "cannot do" in trial(monkeypatch, Played(dies=dies)).reason
    found = trial(monkeypatch, Played(dies=dies), live="always")
    assert (found.calls, found.passed) == (calls, CALLS - calls if calls else 0)
    assert found.calls or "cannot do 200 of 200 calls" in found.reason


def test_whatever_fails_ends_in_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> LiveRun:
        raise ProgramError("the program hung while a layout was tried in it", "still running after 10 s")

    monkeypatch.setattr(live_trial, "run_live", fails)
    assert "hung" in live_trial.tried(bench(), subject()).reason


def held(monkeypatch: pytest.MonkeyPatch, played: Played) -> LiveTrial:
    """With a mock-up that ends the program at accesses to wrong places."""
    monkeypatch.setattr(live_trial, "run_live", played.run)
    relayout = Relayout(STRUCTURE, (), (), (), "")
    candidate = Candidate("c1", (relayout,), (), ())
    return live_trial.tried(bench(), LiveSubject(Path("m.so"), candidate, NOTHING, lambda: GENERAL, lambda general: ENDING))


def test_accesses_are_held_against_the_layout_in_a_run_before(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    assert held(monkeypatch, played).held
    assert [(c, t.mockup.name) for c, t in played.runs[2:5]] == [
        (LiveCalls.ALL, "ending.so"), (LiveCalls.ALL, "m.so"), (LiveCalls.ONE, "m.so")
    ]  # fmt: skip
    assert not trial(monkeypatch, Played()).held


def test_calls_that_go_to_wrong_places_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the mock-up itself they come to their end."""
    played = Played(strays=(18, 31))
    found = held(monkeypatch, played)
    assert (found.held, found.passed, found.faulted, found.stopped) == (True, 2, 1, 1)
    assert played.runs[-1][1].left_out == (18, 31)
    kinds_of = [(c, t.mockup.name) for c, t in played.runs[2:6]]
    assert kinds_of == [(LiveCalls.ALL, "ending.so"), (LiveCalls.SURVEY, "ending.so")] + [
        (LiveCalls.ALL, name) for name in ("ending.so", "m.so")
    ]


def test_a_run_that_holds_accesses_against_the_layout_may_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    found = held(monkeypatch, Played(slow=True))
    assert found.ratio is not None
    assert not found.held


class Clock:
    """A clock that goes on by ``takes`` seconds with each run of a program that is played, by those of ``ordinary`` with one
    without a mock-up; a run that takes longer than it may is ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, played: Played, takes: float, ordinary: float | None = None) -> None:
        self.now, self.played, self.takes = 0.0, played, takes
        self.ordinary = takes if ordinary is None else ordinary
        monkeypatch.setattr(live_trial, "run_live", self.run)
        for module in (live_bench, live_trial):
            monkeypatch.setattr(module, "own_time", lambda: self.now)

    def run(self, command: Sequence[str], entry: object, task: LiveTask, calls: LiveCalls, **options: Any) -> LiveRun:
        takes = self.ordinary if calls in UNTRIED else self.takes
        self.now += min(takes, options["timeout"])
        if takes > options["timeout"]:
            self.played.runs.append((calls, task))
            raise OvertimeError("the program took longer", "it was ended")
        return replace(self.played.run(command, entry, task, calls, **options), seconds=takes)


def test_the_layouts_of_a_region_share_the_time_for_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was tried before may be tried once more: it is going to be advised."""
    Clock(monkeypatch, Played(), 3.0)
    one, subjects = bench(seconds=3.0), [replace(subject(), mockup=Path(f"{k}.so")) for k in range(4)]
    found = [live_trial.tried(one, each) for each in (*subjects, subjects[0])]
    assert [t.ratio.restores if t.ratio is not None else t.reason for t in found] == [
        2, 2, 2, "the time for trials went into others", 2,
    ]  # fmt: skip


def test_trials_have_what_measuring_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least half of the region's seconds, and 15: a program that takes 3 s, and would have to run 8 times, has a trial
    where 24 are there."""

    def tried(seconds: float, since: float) -> bool:
        clock = Clock(monkeypatch, Played(), 0.1)
        one = bench(seconds=3.0)
        one.seconds = seconds
        one.begin()
        clock.now += since
        return live_trial.tried(one, subject()).ratio is not None

    assert tried(30.0, 0.0)
    assert tried(30.0, 6.0)
    assert not tried(30.0, 7.0)
    assert tried(60.0, 60.0)  # half of 60 s
    assert not tried(30.0, 30.0)
    clock, one = Clock(monkeypatch, Played(), 0.1), bench(seconds=1.8)
    one.seconds = 4.0
    assert one.time(Path("m.so")).until == clock.now + 15.0


def test_a_program_that_takes_too_long_by_itself_does_so_for_each_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time went into others where none was tried."""
    monkeypatch.setattr(live_trial, "run_live", Played().run)
    one = bench(seconds=20.0)
    reasons = [live_trial.tried(one, replace(subject(), mockup=Path(f"{k}.so"))).reason for k in range(2)]
    assert all(reason.startswith("the program takes 20 s") for reason in reasons)


def test_a_program_that_is_too_slow_in_a_trial_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 s two ordinary runs of 2 s are made; one with all calls as the mock-up, after which four come that take at least
    half as long, has a third of the 56 s that are left."""
    played = Played()
    clock = Clock(monkeypatch, played, 30.0, 2.0)
    found = live_trial.tried(bench(seconds=2.0), subject())
    assert found.reason == "in a trial the program takes more than 9.3 times as long as by itself: too slow for one"
    assert kinds(played) == [LiveCalls.NONE, LiveCalls.LOADED, LiveCalls.ALL]
    assert clock.now == pytest.approx(4 + 56 / 3)


def test_the_fewest_pairs_have_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before the first pair where half of what was added to a run would be too much, and else after its first run."""
    played = Played()
    monkeypatch.setattr(live_trial, "OF_ALL", 0.9)
    Clock(monkeypatch, played, 12.0, 2.0)
    found = live_trial.tried(bench(seconds=2.0), subject())
    assert found.reason == "in a trial the program takes 6.3 times as long as by itself: too slow for one"
    assert kinds(played) == [LiveCalls.NONE, LiveCalls.LOADED, LiveCalls.ALL]
    monkeypatch.undo()
    later = Played()
    Clock(monkeypatch, later, 14.0, 2.0)
    found = live_trial.tried(bench(seconds=2.0), subject())
    assert found.reason == "in a trial the program takes more than 5.2 times as long as by itself: too slow for one"
    assert kinds(later)[-1] in (LiveCalls.ONE, LiveCalls.OTHER)
    assert len(later.runs) == 4


def test_where_not_even_the_program_fits_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """rebound: "in a trial the program takes 1.0 times as long as by itself: too slow for one"."""
    monkeypatch.setattr(live_bench, "own_time", lambda: 0.0)
    time = TrialTime(until=10.0, enough=10.0, alone=5.0)
    with pytest.raises(live_bench.TooSlowError, match=live_bench.OVER):
        live_bench.in_time(lambda seconds: seconds, time, 4, (), 60.0, pace=5.1)
    with pytest.raises(live_bench.TooSlowError, match=r"takes 1\.4 times"):
        live_bench.in_time(lambda seconds: seconds, time, 1.6, (), 60.0, pace=7.0)


def test_a_slow_run_that_need_not_be_does_not_end_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """That with each access held against the layout has its part of the time, and no more."""
    played = Played()
    clock = Clock(monkeypatch, played, 1.0)
    slow = clock.run

    def run(command: Sequence[str], entry: object, task: LiveTask, calls: LiveCalls, **options: Any) -> LiveRun:
        clock.takes = 50.0 if task.mockup == ENDING else 1.0
        return slow(command, entry, task, calls, **options)

    monkeypatch.setattr(live_trial, "run_live", run)
    relayout = Relayout(STRUCTURE, (), (), (), "")
    candidate = Candidate("c1", (relayout,), (), ())
    found = live_trial.tried(
        bench(seconds=1.0), LiveSubject(Path("m.so"), candidate, NOTHING, lambda: GENERAL, lambda general: ENDING)
    )
    assert found.ratio is not None
    assert not found.held
