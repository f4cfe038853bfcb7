"""Code at other places, timed by few processes: how far their differences count."""

from __future__ import annotations

import math
from itertools import product
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from layout_advise.mockup.timing.places import ALONE, at_places, in_pairs
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.ratios import gain, places_of, summarise
from layout_advise.mockup.timing.statistics import greatest_mean
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, Variant

C1 = Variant("c1")
times = st.floats(1.0, 2.0)


def test_a_build_at_one_place_is_told_as_it_is() -> None:
    assert at_places([1.0, 2.0], []) == ALONE
    assert (ALONE.mean, ALONE.spread) == (1.0, 1.0)


def test_places_whose_times_never_vary_differ_as_they_do() -> None:
    found = at_places([100.0] * 5, [[110.0] * 2, [90.0], [100.0]])
    assert found.factors == pytest.approx((1.0, 1.1, 0.9, 1.0))
    assert (found.least, found.most, found.spread) == pytest.approx((0.9, 1.1, 1.1 / 0.9))
    assert found.sure


def test_three_that_differ_as_three_at_the_own_place_do_count_little() -> None:
    own = [100.0, 101.0, 99.0, 100.5, 130.0, 99.5, 100.0, 101.5, 100.0]
    found = at_places(own, [[100.0, 128.0, 101.0], [99.0, 100.0, 102.0], [101.0, 100.0, 135.0]])
    assert found.most < 1.03  # the hull of single processes went to 1.35
    assert found.least > 0.97
    slow = at_places(own, [[140.0, 142.0, 139.0], [99.0, 100.0, 102.0], [101.0, 100.0, 135.0]])
    assert slow.most > 1.38  # two states of code, as branches have them


@given(st.lists(times, min_size=1, max_size=9), st.lists(st.lists(times, min_size=1, max_size=4), min_size=1, max_size=3))
@settings(max_examples=50)
def test_no_place_counts_for_more_than_it_was_seen_to_differ(own: list[float], others: list[list[float]]) -> None:
    found = at_places(own, others)
    assert found.sure == (len(own) >= TIMING.fewest_at_place)
    assert found.least <= min(found.factors) * (1 + 1e-9)
    assert max(found.factors) <= found.most * (1 + 1e-9)
    for factor, seen in zip(found.factors[1:], others, strict=True):
        raw = np.quantile(seen, TIMING.undisturbed) / np.quantile(own, TIMING.undisturbed)
        assert min(1.0, raw) * (1 - 1e-9) <= factor <= max(1.0, raw) * (1 + 1e-9)


def test_the_spread_of_so_few_processes_is_that_of_all_ways_to_draw_them() -> None:
    own = [100.0, 103.0, 104.0, 108.0]

    def variance(processes: int) -> float:
        every = [math.log(np.quantile(one, TIMING.undisturbed)) for one in product(own, repeat=processes)]
        low, high = np.percentile(every, [16, 84])
        return float((high - low) / 2) ** 2

    (_, factor), seen = at_places(own, [[106.0, 107.0]]).factors, math.log(106.1 / 100.9)
    unsure = variance(2) + variance(4)
    assert math.log(factor) == pytest.approx(seen * seen**2 / (seen**2 + unsure), rel=0.1)


def test_what_a_process_deals_all_places_says_nothing_of_their_differences() -> None:
    rng = np.random.default_rng(11)
    luck = np.exp(rng.normal(0.0, 0.1, 9))
    own = [float(100 * f) for f in luck]
    others: list[list[float | None]] = [[None] * 9 for _ in range(3)]
    for number, f in enumerate(luck):
        others[number % 3][number] = float(100 * (1.05 if number % 3 == 1 else 1.0) * f * rng.normal(1.0, 0.002))
    found = in_pairs([own, *others])
    assert found is not None
    assert found.factors == pytest.approx((1.0, 1.0, 1.05, 1.0), abs=0.01)
    assert found.most < 1.06
    alone = at_places(own, [[t for t in one if t] for one in others])
    assert alone.or_nearer(found) is found
    assert found.or_nearer(alone) is found
    assert found.or_nearer(None) is found


def test_of_too_few_processes_no_pairs_are_made() -> None:
    assert in_pairs([[1.0, 1.0, 1.0, 1.0, 1.0]]) is None
    assert in_pairs([[1.0, 1.0, 1.0, None, None], [1.0, 1.0, 1.0, 1.0, 1.0]]) is None  # of the own place
    assert in_pairs([[1.0] * 5, [1.0, 1.0, None, None, None], [None, None, 1.0, 1.0, 1.0]]) is None  # of the differences
    assert in_pairs([[1.0] * 4, [None] * 4, [1.0] * 4]) is None
    found = in_pairs([[1.0] * 6, [1.0] * 6])
    assert found is not None
    assert (found.least, found.most) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("identity", "layout", "most"),
    [
        # glpk: both take a tenth longer at one place; 0.88 to 1.12 with each place of one against each of the other
        ((1430.0, 1417.0, 1573.0, 1425.0), (1430.0, 1430.0, 1590.0, 1505.0), 1.03),
        # each at a place of its own: the layout may gain
        ((1400.0, 1400.0, 1600.0, 1400.0), (1600.0, 1400.0, 1400.0, 1400.0), 1.16),
        # at all places alike it gains by so much
        ((1400.0, 1410.0, 1390.0, 1400.0), (1270.0, 1280.0, 1265.0, 1275.0), 1.12),
    ],
)
def test_what_a_lucky_place_gains_over_an_unlucky_one_is_no_layouts(
    identity: tuple[float, ...], layout: tuple[float, ...], most: float
) -> None:
    takes = {ORIGINAL: 1500.0, **dict(zip((IDENTITY, *IDENTITY.elsewhere), identity, strict=True))}
    takes |= dict(zip((C1, *C1.elsewhere), layout, strict=True))
    rng = np.random.default_rng(3)
    timings = Timings([{name: [ns * float(rng.normal(1.0, 0.003))] for name, ns in takes.items()} for _ in range(12)])
    told = summarise(timings, C1)
    assert told is not None
    over = told.steady_over_identity
    pairs = [a / b for a in identity for b in layout]
    assert over.hi <= min(most, 1.02 * max(pairs))
    assert over.hi >= np.mean(identity) / np.mean(layout)
    assert over.lo <= min(pairs)  # a change is advised only where no place takes the gain away


def test_intervals_over_places_hold_the_truth_and_one_slow_process_does_not_widen_them() -> None:
    """One process in ten slowed, places that differ by 1 %; what a place gains is to lie inside in 95 of 100 cases."""
    rng = np.random.default_rng(7)
    inside, narrower = [], []
    for _ in range(80):
        takes = dict(zip((C1, *C1.elsewhere), np.exp(rng.normal(0.0, 0.01, 4)), strict=True))
        steady = []
        for number in range(9):
            seen = [p for p in takes if not p.placement or p.placement == number % 3 + 1]
            off = rng.normal(1.0, 0.01, 5) * np.where(rng.random(5) < 0.1, rng.uniform(1.0, 2.0, 5), 1.0)
            steady.append(
                {ORIGINAL: [off[4]], **{p: [float(takes[p] * o)] for p, o in zip(seen, off[: len(seen)], strict=True)}}
            )
        timings = Timings(steady)
        found, places = gain(timings, C1), places_of(timings, C1)
        assert found is not None
        inside += [found.lo <= 1 / takes[place] <= found.hi for place in places]
        each = [r for place in places if (r := timings.ratio(ORIGINAL, place)) is not None]
        narrower.append((found.hi / found.lo) / (max(r.hi for r in each) / min(r.lo for r in each)))
    assert np.mean(inside) >= 0.95
    assert np.median(narrower) < 0.85


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), times), max_size=30))
def test_the_greatest_mean_is_students(drawn: list[tuple[int, int, float]]) -> None:
    """By place, by process and by single gain as scipy has it; and of few processes, or of two places, nothing is told."""
    gains = {(place, process): gain for place, process, gain in drawn}
    places, processes = ({key[k] for key in gains} for k in (0, 1))
    found = greatest_mean(gains)
    if len(gains) < TIMING.fewest_pairs or len(processes) < 3 or len(places) == 2:
        assert found is None
        return
    logs = {key: math.log(gain) for key, gain in gains.items()}
    ways = [list(logs.values()), [fmean(v for k, v in logs.items() if k[1] == one) for one in processes]]
    ways += [[fmean(v for k, v in logs.items() if k[0] == one) for one in places]] if len(places) > 1 else []
    ends = [student.ppf(0.975, len(way) - 1) * stdev(way) / math.sqrt(len(way)) + fmean(way) for way in ways]
    assert found == pytest.approx(math.exp(max(ends)))


@pytest.mark.parametrize("processes", [5, 9])
def test_a_gain_in_each_process_ends_what_few_slowed_ones_leave_open(processes: int) -> None:
    """Half of the processes slowed, each build by itself, as on a machine that others use; the layout gains nothing. All
    pairs of places and processes left 1.4 and more."""
    rng = np.random.default_rng(11)
    ends, hulls = [], []
    for _ in range(60):
        takes = dict(zip((IDENTITY, *IDENTITY.elsewhere, C1, *C1.elsewhere), np.exp(rng.normal(0.0, 0.01, 8)), strict=True))
        steady = []
        for number in range(processes):
            seen = [one for one in takes if not one.placement or one.placement == number % 3 + 1]
            off = np.where(rng.random(len(seen) + 1) < 0.5, rng.uniform(1.0, 1.6, len(seen) + 1), 1.0)
            off *= rng.normal(1.0, 0.01, len(off))
            timed = {one: [float(takes[one] * o)] for one, o in zip(seen, off, strict=False)}
            steady.append({ORIGINAL: [float(off[-1])], **timed})
        timings = Timings(steady)
        found = summarise(timings, C1)
        assert found is not None
        ends.append(found.steady_over_identity.hi)
        each = [timings.ratio(a, b) for a in places_of(timings, IDENTITY) for b in places_of(timings, C1)]
        hulls.append(max(r.hi for r in each if r is not None))
    assert np.mean([end >= 1.0 for end in ends]) >= 0.95
    assert np.median(ends) < 0.9 * np.median(hulls)
