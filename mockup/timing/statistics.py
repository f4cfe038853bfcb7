"""Ratios with intervals, where the statistical unit is the restored process (notes: 0.3-2 % within one process, up to
19 % between processes). The tests hold the bootstrap against scipy's, which is too large to be needed for one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from layout_advise.mockup.timing.policy import TIMING

SEED = 20170828


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of undisturbed times over all restores (in ``median``: the name is the report's) with its 95 % interval;
    ``restores`` is how many there were."""

    median: float
    lo: float
    hi: float
    restores: int


def undisturbed_ratio(over: Sequence[float], under: Sequence[float], less: Sequence[float] | None = None) -> Ratio:
    """Undisturbed time of ``over`` divided by that of ``under``, both first taken over all restored processes
    (``docs/decisions/0021``), with the 95 % interval of a bootstrap over the processes (percentile method).

    One time for each process in each sequence, in the same order. With ``less`` the divisor is the difference of the
    undisturbed times ``under`` - ``less``. With fewer than four processes no resampling can show the spread: the interval is
    then the range of the processes' own ratios, which is wider. Raises ValueError when there is no process.
    """
    if not len(over) or len(over) != len(under):
        raise ValueError("no process to make a ratio of, or times of different processes")
    data = tuple(np.asarray(one, dtype=float) for one in (over, under, less) if one is not None)

    def statistic(*times: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        first, second, *third = (np.quantile(one, TIMING.undisturbed, axis=axis) for one in times)
        return np.asarray(first / (second - third[0] if third else second))

    median = float(statistic(*data))
    if len(over) < 4:
        below = data[1] - data[2] if less is not None else data[1]
        ends = [median, *(data[0] / below)]
        return Ratio(median, float(min(ends)), float(max(ends)), len(over))
    return Ratio(median, *_interval(data, statistic, median, paired=True), len(over))


def unpaired_ratio(over: Sequence[float], under: Sequence[float], quantile: float = TIMING.undisturbed) -> Ratio:
    """The same of times that are not of the same processes: each is resampled by itself. Where either has fewer than four,
    the interval holds every ratio of one to another. Another ``quantile`` than the first decile may stand for the times.
    Raises ValueError when there is no process."""
    if not len(over) or not len(under):
        raise ValueError("no process to make a ratio of")
    data = np.asarray(over, dtype=float), np.asarray(under, dtype=float)

    def statistic(*times: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        first, second = (np.quantile(one, quantile, axis=axis) for one in times)
        return np.asarray(first / second)

    median, fewest = float(statistic(*data)), min(map(len, data))
    if fewest < 4:
        return Ratio(median, float(data[0].min() / data[1].max()), float(data[0].max() / data[1].min()), fewest)
    return Ratio(median, *_interval(data, statistic, median, paired=False), fewest)


def paired_ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The median over the processes of the ratio in each, with the 95 % interval of a bootstrap over the processes: a build
    that is faster in one process of ten makes one ratio of ten greater, and a first decile over all of them ten
    (``docs/decisions/0122``). With fewer than four processes the range of their ratios. Raises ValueError when there is no
    process."""
    if not pairs:
        raise ValueError("no process to make a ratio of")
    ratios = np.asarray([above / below for above, below in pairs])
    median = median_of(ratios)
    if len(ratios) < 4:
        return Ratio(median, float(ratios.min()), float(ratios.max()), len(ratios))

    def statistic(*times: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        return np.asarray(np.median(times[0], axis=axis))

    return Ratio(median, *_interval((ratios,), statistic, median, paired=True), len(ratios))


def greatest_mean(gains: Mapping[tuple[int, int], float]) -> float | None:
    """The greatest mean gain that ``gains``, by place of the code and process, agree with: Student's t, 97.5 %, with each
    place, each process, or each gain as one observation, whichever leaves most (``docs/decisions/0153``). None of fewer than
    :attr:`TimingPolicy.fewest_pairs` gains, or three processes, or of two places, of which nothing follows for others."""
    by_place, by_process = (_groups(gains, part) for part in (0, 1))
    if len(gains) < TIMING.fewest_pairs or len(by_process) < 3 or len(by_place) == 2:
        return None
    ways = [by_process, [[gain] for gain in gains.values()], *([by_place] if len(by_place) > 1 else [])]
    return max(mean_at_most([fmean(map(math.log, one)) for one in way]) for way in ways)


def _groups(gains: Mapping[tuple[int, int], float], part: int) -> list[list[float]]:
    """The gains that have one part of their key in common."""
    found: dict[int, list[float]] = {}
    for key, gain in gains.items():
        found.setdefault(key[part], []).append(gain)
    return list(found.values())


def mean_at_most(logs: Sequence[float]) -> float:
    """The upper end of the mean of gains, of which ``logs`` are the logarithms: Student's t, 97.5 %; of two or more."""
    error = float(stdtrit(len(logs) - 1, 0.975)) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(fmean(logs) + error)


def nearer(one: Ratio, other: Ratio) -> Ratio:
    """Of two estimates of a ratio the one that is known better; where they contradict each other, what both leave."""
    first, second = sorted((one, other), key=lambda r: r.hi / r.lo)
    if first.lo <= second.hi and second.lo <= first.hi:
        return first
    return replace(first, lo=min(first.lo, second.lo), hi=max(first.hi, second.hi))


def no_greater(found: Ratio, pairs: Sequence[tuple[float, float]]) -> Ratio:
    """A ratio of usual times whose upper end is no greater than that of the ratios within each process (``pairs``): where
    others slow the original in phases these say too much, so that they bound from above what is usual
    (``docs/decisions/0145``). Unchanged where there are few of them, or they lie below all that was found."""
    within = paired_ratio(pairs) if len(pairs) >= TIMING.fewest_pairs else found
    return found if within.hi < found.lo else replace(found, hi=max(found.median, min(found.hi, within.hi)))


def _interval(
    data: Sequence[NDArray[np.float64]], statistic: Callable[..., NDArray[np.float64]], median: float, *, paired: bool
) -> tuple[float, float]:
    """The percentile interval of ``statistic`` over resampled processes, and over ``median`` where rounding took it out."""
    rng, count = np.random.default_rng(SEED), TIMING.resamples
    if paired:
        chosen = rng.integers(0, len(data[0]), (count, len(data[0])))
        resampled = [one[chosen] for one in data]
    else:
        resampled = [one[rng.integers(0, len(one), (count, len(one)))] for one in data]
    outside = (1 - TIMING.confidence) / 2
    low, high = np.percentile(statistic(*resampled, axis=-1), [100 * outside, 100 * (1 - outside)])
    # equal times leave an interval without width, from which rounding may take the estimate
    return min(float(low), median), max(float(high), median)


def median_of(values: Sequence[float] | NDArray[np.float64]) -> float:
    """The median of a non-empty sequence."""
    return float(np.median(np.asarray(values, dtype=float)))


def undisturbed(values: Sequence[float]) -> float:
    """The first decile of a non-empty sequence of times of the same work.

    A replayed call does the same work each time, so what it takes more than another time is the machine's doing, which only
    adds (``docs/decisions/0005``). The decile and not the minimum, so that no single reading decides.
    """
    return quantile_of(values, TIMING.undisturbed)


def quantile_of(values: Sequence[float], quantile: float) -> float:
    """A quantile of a non-empty sequence, linear between two of them."""
    return float(np.quantile(np.asarray(values, dtype=float), quantile))
