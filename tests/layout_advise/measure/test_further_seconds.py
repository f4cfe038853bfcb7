"""Seconds beyond a region's own, where noise alone leaves its answer open."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.config import Settings
from layout_advise.measure.first_times import FirstTimes
from layout_advise.measure.setup import Bench, Contest
from layout_advise.measure.stage import KindTimed, further_seconds, measure_more, part_of_kind, seconds_left
from layout_advise.mockup.timing.plan import Memory, TimingPlan
from layout_advise.mockup.timing.timings import Timings
from layout_advise.observe.case import Case


@pytest.mark.parametrize(
    ("budget", "seconds", "until", "further"),
    [
        (None, None, math.inf, 60.0),
        (None, 25.0, math.inf, 25.0),
        (None, 25.0, 135.0, 10.0),
        (None, 25.0, 120.0, 0.0),
        (60.0, 25.0, math.inf, 0.0),  # the user has said for how long
    ],
)
def test_a_region_has_its_seconds_once_more_while_the_run_has_time(
    budget: float | None, seconds: float | None, until: float, further: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = cast(Any, None)
    settings = Settings(("./app",), Path("run"), budget=budget)
    case = Case(settings, nothing, nothing, nothing, nothing, None, nothing, seconds=seconds, until=until)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    assert further_seconds(case) == further


@pytest.mark.parametrize(
    ("seconds", "until", "left"),
    [(None, math.inf, 60.0), (None, 170.0, 60.0), (None, 139.0, 39.0), (None, 101.0, 15.0), (20.0, 99.0, 5.0)],
)
def test_what_compiling_and_comparing_took_too_long_measuring_is_shorter(
    seconds: float | None, until: float, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bzip2: 120 s for both, 60 and more for measuring, and the run was stopped at 300."""
    nothing = cast(Any, None)
    settings = Settings(("./app",), Path("run"))
    case = Case(settings, nothing, nothing, nothing, nothing, None, nothing, seconds=seconds, until=until)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    assert seconds_left(case) == left


@pytest.mark.parametrize(
    ("shares", "part"), [((), 1.0), ((0.6, 0.3), 2 / 3), ((0.05, 0.6, 0.3), 1 / 6), ((0.3, 0.05, 0.6), 0.3 / 0.95)]
)
def test_kinds_of_calls_share_the_seconds_of_a_region(shares: tuple[float, ...], part: float) -> None:
    """Three kinds had 60 s each."""
    case = cast(Any, SimpleNamespace(kinds=[SimpleNamespace(share=share) for share in shares]))
    assert part_of_kind(case) == pytest.approx(part)


@pytest.mark.parametrize(("kinds", "each", "more"), [(0, 9.0, True), (0, 11.0, False), (2, 6.0, False)])
def test_no_process_is_begun_that_takes_longer_than_there_is_time(
    kinds: int, each: float, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """metis: 20 s for a process of each kind, begun with less than that left, and the run was stopped at 300 s."""
    asked: list[float | None] = []
    patience: list[int] = []

    def measure(self: Bench, variants: Any, what: str, **others: Any) -> Timings:
        asked.append(self.plan.seconds)
        patience.append(self.plan.patience_ns)
        return Timings()

    monkeypatch.setattr(Bench, "measure", measure)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    settings = Settings(("./app",), Path("run"), budget=60.0)
    chosen = SimpleNamespace(in_situ_ns=None)
    case = SimpleNamespace(kinds=[None] * kinds, settings=settings, seconds=None, until=math.inf, chosen=chosen)
    bench = Bench(cast(Any, None), Memory(), TimingPlan(), TimingPlan(), cast(Any, None))
    times = FirstTimes(Contest({}, []), bench, Timings())
    timed = KindTimed(cast(Any, case), cast(Any, None), times, end=110.0, each=each)
    assert (measure_more(timed, Timings(waited_ns=7), ()) is not None) == more
    assert asked == [10.0] * more
    assert patience == [TimingPlan().patience_ns + 7] * more  # further processes may wait, too
