"""Which calls stand for the time of all: from given times, and in a program whose first calls do next to nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.choose import by_time
from layout_advise.choose.by_time import (
    Window,
    agree,
    calls_like,
    mean_by_samples,
    nearest,
    share_from,
    typical_calls,
    typical_ns,
    undisturbed,
    windows_of,
    without_clock,
)
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled

FEW_LONG = Window(1, (10.0,) * 90 + (1000.0,) * 9 + (100.0,))
SHORT = Window(5001, (10.0,) * 100)


def test_a_sample_falls_in_a_long_call() -> None:
    assert typical_ns([FEW_LONG]) == 1000.0
    assert typical_ns([SHORT]) == 10.0
    assert typical_ns([FEW_LONG, SHORT]) == 1000.0
    assert typical_ns([SHORT, Window(1, (1000.0,))]) == 10.0  # half of the time is in short ones


def test_the_typical_one_of_the_long_calls() -> None:
    calls = Window(1, (10.0,) * 900 + (100.0,) * 3 + (200.0,) * 4 + (300.0,) * 3)
    assert typical_ns([calls]) == 10.0
    assert typical_ns([calls], 100.0) == 200.0
    assert typical_ns([SHORT], 100.0) == 0.0
    assert share_from([calls], 100.0) == 2000.0 / 11000.0
    assert share_from([SHORT], 100.0) == 0.0
    assert share_from([Window(1, (0.0, 0.0))], 100.0) == 0.0


def test_what_only_one_call_takes_is_a_disturbance() -> None:
    preempted = Window(1, (10.0,) * 50 + (2e6,) + (10.0,) * 50)
    assert undisturbed(preempted.ns).tolist() == [10.0] * 100
    assert preempted.mean == 10.0
    assert typical_ns([preempted]) == 10.0
    assert share_from([preempted], 1000.0) == 0.0


def test_calls_like_one_are_those_of_one_window() -> None:
    other = Window(301, (1000.0, 950.0, 1200.0))
    assert calls_like([FEW_LONG, other], 1000.0, 0.1) == tuple(range(91, 100))
    assert calls_like([SHORT, other], 1000.0, 0.1) == (301, 302)
    assert calls_like([SHORT], 1000.0, 0.1) == ()


@pytest.mark.parametrize(
    ("mean", "other", "same"),
    [(10.0, 15.0, True), (15.0, 10.0, True), (10.0, 21.0, False), (0.0, 10.0, False), (math.nan, 10.0, True)],
)
def test_times_that_agree(mean: float, other: float, same: bool) -> None:
    assert agree(mean, other) is same


@pytest.mark.parametrize(("mean", "first"), [(10.0, 5001), (12.0, 5001), (90.0, 1), (1e6, 1)])
def test_the_window_with_the_mean_of_all(mean: float, first: int) -> None:
    windows: Sequence[Window] = (FEW_LONG, SHORT, Window(9001, (0.0, 0.0)))
    assert nearest(windows, mean).first == first


def test_a_hotspot_without_samples_has_no_mean() -> None:
    """One that the user names may have been in none of them."""
    run = SimpleNamespace(cpu_seconds=1.0)
    assert math.isnan(mean_by_samples(cast(Profiled, SimpleNamespace(share=0.0, run=run)), 10))
    assert mean_by_samples(cast(Profiled, SimpleNamespace(share=0.5, run=run)), 10) == 5e7


def test_where_few_calls_are_typical_those_next_to_them_stand_for_them() -> None:
    """A recursion by halves: one call of 800 us, two of 400, four of 200 ..."""
    ns = tuple(800e3 / 2**level for level in range(12) for _ in range(2**level))
    windows = (Window(1, ns),)
    assert typical_calls(windows, 20e3, 0.1, 3) == tuple(range(16, 32))
    assert typical_calls(windows, 20e3, 0.1, 20) == tuple(range(32, 64))
    assert typical_calls(windows, 20e3, 0.1, 100) == ()
    assert typical_calls(windows, 1e6, 0.1, 3) == ()


def test_what_reading_the_clock_takes_is_no_time_of_a_loop() -> None:
    assert without_clock([700.0, 26e3, 900.0]) == (0.0, 25.3e3, 200.0)
    assert without_clock([25e3, 26e3]) == (25e3, 26e3)
    assert without_clock([]) == ()


def test_calls_that_were_timed_already_are_found_in_their_window() -> None:
    window = Window(10, (1.0, 2.0, 3.0, 4.0))
    assert window.part(11, 2) == (2.0, 3.0)
    assert window.part(10, 4) == window.ns
    assert window.part(12, 3) == ()
    assert window.part(9, 2) == ()


@pytest.mark.parametrize(
    ("mean", "looked"), [(18.0, [1, 126, 376]), (math.nan, [1, 126, 376, 626, 876]), (70.0, [1, 126, 376, 626, 876])]
)
def test_calls_like_all_are_looked_for_no_further_than_needed(
    mean: float, looked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """prodigal: 219 million calls of 20 ns were counted five times, 127 s, and all else began at the 137 millionth."""
    each = {126: 40.0, 376: 19.0, 626: 18.0, 876: 18.0}

    def window_at(settings: object, profiled: object, stdin: object, first: int, calls: int) -> Window:
        return Window(first, (each[first],) * 8)

    monkeypatch.setattr(by_time, "window_at", window_at)
    unused = cast(Any, None)
    found = windows_of(unused, unused, None, 1000, Window(1, (13.0,) * 8), mean)
    assert [window.first for window in found] == looked


def test_places_that_take_long_to_reach_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """prodigal: a run that counts 600 million calls takes a minute."""
    now = [100.0]

    def window_at(settings: object, profiled: object, stdin: object, first: int, calls: int) -> Window:
        now[0] += 0.06 * first
        return Window(first, (40.0,) * 8)

    monkeypatch.setattr(by_time, "window_at", window_at)
    monkeypatch.setattr(by_time, "own_time", lambda: now[0])
    unused = cast(Any, None)
    found = windows_of(unused, unused, None, 1000, Window(1, (13.0,) * 8), 18.0)
    assert [window.first for window in found] == [1, 126]
    assert now[0] < 100.0 + CHOOSE.windows_s
