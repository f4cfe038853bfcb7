"""The seconds of a run divided among its regions, and what is left of them for the plan."""

from __future__ import annotations

import pytest

from layout_advise.measure.policy import MEASURE
from layout_advise.regions.run_seconds import RunSeconds, RunTime, run_seconds, run_time


def spent(budget: float, shares: list[float], part: float = 1.0) -> list[float]:
    """What each of the regions has, where all take this part of it."""
    seconds, found = run_seconds(budget, shares), []
    for number, share in enumerate(shares):
        found.append(seconds.of(share, shares[number + 1 :]))
        seconds = seconds.after(part * found[-1])
    return found


def test_one_region_has_all() -> None:
    assert spent(60.0, [0.4]) == [60.0]
    assert run_seconds(None, [0.4]).of(0.4) == MEASURE.budget_s


def test_regions_have_seconds_by_their_shares() -> None:
    assert spent(60.0, [0.4, 0.4]) == [60.0, 60.0]
    assert spent(60.0, [0.3] * 3) == pytest.approx([40.0, 40.0, 40.0])
    assert spent(60.0, [0.6, 0.2]) == pytest.approx([60.0, 20.0])
    assert spent(60.0, [0.6, 0.03]) == pytest.approx([60.0, 7.5])  # an eighth at least
    six = spent(60.0, [0.4, 0.12, 0.12, 0.12, 0.12, 0.12])
    assert six == pytest.approx([48.0, 14.4, 14.4, 14.4, 14.4, 14.4])
    assert sum(six) == pytest.approx(120.0)


def test_what_one_does_not_need_the_others_have() -> None:
    found = spent(60.0, [0.3] * 4, 0.5)
    assert found[0] == pytest.approx(30.0)
    assert found == sorted(found)
    assert found[-1] == 60.0


def test_a_region_in_the_place_of_another_one_has_what_is_left() -> None:
    seconds = run_seconds(60.0, [0.5])
    assert seconds.after(20.0).of(0.5) == 60.0
    assert seconds.after(100.0).of(0.5) == 20.0
    assert seconds.after(300.0).of(0.5) == 7.5


def test_the_plan_has_what_the_regions_left() -> None:
    seconds = RunSeconds(60.0, 0.5)
    assert seconds.after(90.0).for_plan == 30.0
    assert seconds.after(30.0).for_plan == 60.0
    assert seconds.after(150.0).for_plan == MEASURE.live_s


@pytest.mark.parametrize(("budget", "each"), [(None, 60.0), (5.0, 60.0), (100.0, 100.0)])
def test_the_time_of_a_run_is_not_cut_short_where_less_is_to_be_measured(
    budget: float | None, each: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 7.0)
    found = run_time(budget)
    assert (found.until, found.without) == (7.0 + 4 * each, 7.0 + 4.5 * each)


def test_a_study_that_fails_took_its_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter((7.0, 97.0))
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    found = RunTime()
    with pytest.raises(ZeroDivisionError), found.studying():
        raise ZeroDivisionError
    assert found.longest == 90.0


def test_what_a_study_measures_is_known_before_and_no_part_of_what_the_next_one_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    time = RunTime(until=240.0, answered=0.5)
    with time.studying() as study:
        now[0], study.measuring = 95.0, 60.0
    assert time.longest == 35.0
    assert not time.is_over(110.0)
    assert time.is_over(111.0)
