"""A study that takes too long is ended, and what was known before stays."""

from __future__ import annotations

import math
import signal
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from layout_advise.describe.studied import MoreWays, Studied
from layout_advise.errors import TraceError
from layout_advise.measure.policy import MEASURE
from layout_advise.regions import one as region
from layout_advise.regions import run_seconds, study_end
from layout_advise.regions.run_seconds import RunTime
from layout_advise.regions.study_end import StudyOver, ended_at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    now = [100.0]
    for module in (study_end, run_seconds):
        monkeypatch.setattr(module, "own_time", lambda: now[0])
    return now


def test_it_is_raised_when_the_time_is_over(clock: list[float]) -> None:
    before, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with pytest.raises(StudyOver), ended_at(100.0):
        signal.pause()
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[1] == timer[1]


def test_time_spent_waiting_for_a_turn_does_not_count(clock: list[float]) -> None:
    with ended_at(200.0):
        clock[0] = 150.0
        signal.raise_signal(signal.SIGALRM)
        left, again = signal.getitimer(signal.ITIMER_REAL)
    assert (math.ceil(left), again) == (50, study_end.AGAIN_S)


def test_what_does_not_end_sets_no_clock(clock: list[float]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with ended_at(math.inf):
        assert signal.getsignal(signal.SIGALRM) == before


@dataclass(frozen=True)
class Region:
    """A case, as far as its study is only begun and ended."""

    profiled: Any = field(default_factory=lambda: SimpleNamespace(name="f"))
    until: float = math.inf
    taken: frozenset[int] = frozenset()
    settings: Any = field(default_factory=lambda: SimpleNamespace(budget=60.0, restores=None, hotspot=None))
    seconds: float | None = 60.0


def studying(monkeypatch: pytest.MonkeyPatch, clock: list[float], *outcomes: Any) -> None:
    """Studies with these outcomes, one after the other; None is one that goes on until it is ended."""
    left = iter(outcomes)

    def study(case: Any, kinds: Any = ()) -> Any:
        found = next(left)
        if found is None:
            clock[0] = 1000.0
            signal.raise_signal(signal.SIGALRM)
        return found

    monkeypatch.setattr(region, "study", study)


def test_the_first_study_is_not_ended_and_later_ones_are(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    done: Any = Studied(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    time, case = RunTime(340.0, 370.0), Region()
    assert time.end == math.inf
    studying(monkeypatch, clock, done, None)
    assert region.study_in_time(case, time)[1] is done  # type: ignore[arg-type]
    assert time.end == 370.0
    with pytest.raises(TraceError, match="its study took longer than the run may; name it with --hotspot"):
        region.study_in_time(case, time)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{"restores": 9, "hotspot": None}, {"restores": None, "hotspot": "f"}])
def test_what_the_user_asks_for_is_not_ended(
    asked: dict[str, Any], clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: Any = Studied(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    ends: list[float] = []

    def ended_at(end: float) -> nullcontext[None]:
        ends.append(end)
        return nullcontext()

    monkeypatch.setattr(region, "ended_at", ended_at)
    studying(monkeypatch, clock, done)
    case: Any = Region(settings=SimpleNamespace(budget=None, **asked))
    region.study_in_time(case, replace(RunTime(340.0, 370.0), told=True))
    assert ends == [math.inf]


def test_what_a_study_has_found_before_it_is_taken_up_again_is_kept(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = MoreWays(frozenset({0x10}))
    done: Any = Studied(SimpleNamespace(), SimpleNamespace(), retry=more)  # type: ignore[arg-type]
    time = replace(RunTime(340.0, 370.0), told=True)
    studying(monkeypatch, clock, done, None)
    case, found = region.study_in_time(Region(), time)  # type: ignore[arg-type]
    assert found is done
    assert case.taken == frozenset()


def test_a_plan_is_run_for_the_least_time_where_studies_took_too_long(clock: list[float]) -> None:
    time = RunTime(until=200.0)
    assert time.of_plan(60.0) == 60.0
    clock[0] = 201.0
    assert time.of_plan(60.0) == MEASURE.live_s


@pytest.mark.parametrize(("told", "end"), [(True, math.inf), (False, 300.0)])
def test_watching_the_calls_of_a_further_region_is_ended_too(
    told: bool, end: float, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that hung when its calls were counted was waited for ten minutes, and what was known went with the run."""

    def hang(start: Any, profiled: Any) -> None:
        clock[0] = 1000.0
        signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(region, "_watched", hang)
    start: Any = SimpleNamespace(settings=Region().settings, time=RunTime(340.0, 370.0, told=told))
    with pytest.raises(TraceError, match="watching its calls took longer than the run may; name it with --hotspot"):
        region.watch(start, SimpleNamespace(), end)  # type: ignore[arg-type]
