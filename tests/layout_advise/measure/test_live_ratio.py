"""The gain of a layout from runs with known times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layout_advise.measure.live.outcome import unlike_by_itself
from layout_advise.measure.live.ratio import SETTLING, LiveTimes, live_times
from layout_advise.tracer.live.outcome import CONVERTED, MOCKUP, ORIGINAL, PASSED, LiveRun

DRAWN = np.random.default_rng(7)


def runs(
    cost: np.ndarray, gain: np.ndarray, slow: tuple[float, float] = (1.0, 1.0), noise: float = 0.0, converted: float = 0.0
) -> tuple[LiveRun, LiveRun]:
    """A pair over calls of ``cost`` ns as the original, ``cost / gain`` as the mock-up; each run is slower by a factor."""
    first = DRAWN.random(len(cost)) < 0.5
    copied = DRAWN.random(len(cost)) < converted
    found = []
    for mockup, factor in ((first, slow[0]), (~first, slow[1])):
        times = np.where(mockup, cost / gain, cost) * factor * np.exp(noise * DRAWN.standard_normal(len(cost)))
        roles = np.where(mockup, MOCKUP, ORIGINAL) | np.where(mockup & copied, CONVERTED, 0)
        times = np.where(mockup & copied, times / 3, times)  # what was just copied is in the caches
        ran = int(mockup.sum())
        found.append(LiveRun(len(cost), ran, 1, 0, 0, "", times, roles.astype(np.uint64), 0, 1.0, 1.0, b"", b""))
    return found[0], found[1]


def told(pairs: list[tuple[LiveRun, LiveRun]]) -> LiveTimes:
    found = live_times(pairs)
    assert found is not None
    return found


def test_the_gain_over_calls_of_all_sizes_is_that_of_their_time_together() -> None:
    cost = DRAWN.lognormal(10, 1, 4000)
    gain = np.where(cost > np.median(cost), 2.0, 1.0)
    found = told([runs(cost, gain) for _ in range(5)])
    assert found.ratio.median == pytest.approx(cost.sum() / (cost / gain).sum(), rel=0.02)
    assert found.ratio.lo < found.ratio.median < found.ratio.hi
    assert found.ratio.restores == 5
    assert found.calls == 4000 - SETTLING
    assert found.original_ns / found.layout_ns == pytest.approx(found.ratio.median, rel=0.05)


def test_a_run_that_is_slower_as_a_whole_drops_out() -> None:
    cost = DRAWN.lognormal(10, 0.3, 2000)
    found = told([runs(cost, np.full(2000, 1.3), slow=(1.0, 1.4)), runs(cost, np.full(2000, 1.3), slow=(1.2, 1.0))])
    assert found.ratio.median == pytest.approx(1.3, rel=1e-9)
    assert found.ratio.hi / found.ratio.lo < 1.01


@pytest.mark.slow
def test_the_interval_holds_what_is_true_as_often_as_it_says() -> None:
    held = 0
    for _ in range(60):
        cost = DRAWN.lognormal(8, 0.5, 400)
        drift = [np.exp(0.05 * DRAWN.standard_normal()) for _ in range(5)]
        found = told([runs(cost, np.full(400, 1.2 * d), noise=0.1) for d in drift])
        held += found.ratio.lo <= 1.2 <= found.ratio.hi
    assert held >= 54


def test_calls_during_which_something_else_ran_do_not_count() -> None:
    cost = np.full(1000, 5000.0)
    pair = runs(cost, np.full(1000, 1.5))
    pair[0].times[[30, 400, 999]] += 4e6
    assert told([pair, runs(cost, np.full(1000, 1.5))]).ratio.median == pytest.approx(1.5, rel=1e-9)


def test_calls_right_after_a_conversion_count_where_there_are_no_others() -> None:
    cost = np.full(1000, 5000.0)
    some = told([runs(cost, np.full(1000, 1.5), converted=0.4)])
    assert not some.converted
    assert some.ratio.median == pytest.approx(1.5, rel=1e-9)
    every = told([runs(cost, np.full(1000, 1.5), converted=1.0)])
    assert every.converted
    assert every.ratio.median == pytest.approx(4.5, rel=1e-9)


def test_too_few_calls_make_no_ratio() -> None:
    assert live_times([]) is None
    assert live_times([runs(np.full(12, 100.0), np.full(12, 1.5))]) is None
    one, other = runs(np.full(100, 100.0), np.full(100, 1.5))
    one.roles[:] = PASSED
    assert live_times([(one, other)]) is None


@pytest.mark.parametrize("slower", [1.0, 8.5])
def test_the_originals_calls_are_held_against_those_of_an_ordinary_run(slower: float) -> None:
    """particles: what the mock-up wrote was copied back between the calls, through 38 MB; the original took 8.5 times as
    long as in the program, and 18.5 was told for 3.4."""
    cost = DRAWN.lognormal(10, 0.5, 400)
    ordinary = replace(runs(cost, np.ones(400))[0], times=cost, roles=np.full(400, ORIGINAL, np.uint64))
    ordinary.times[17] += 4e6
    pairs = [runs(cost * slower, np.full(400, 2.0 * slower), noise=0.05) for _ in range(3)]
    found = live_times(pairs, [ordinary])
    assert found is not None
    assert found.undisturbed == pytest.approx(1 / slower, rel=0.05)
    why = unlike_by_itself(found.undisturbed)
    assert (why is None) == (slower == 1.0)
    assert why is None or "the original takes 8." in why


def test_without_an_ordinary_run_nothing_is_known_of_it() -> None:
    assert told([runs(np.full(100, 5000.0), np.full(100, 1.5))]).undisturbed == 1.0
    assert unlike_by_itself(1.0) is None
    assert "0.50 times" in str(unlike_by_itself(2.0))
