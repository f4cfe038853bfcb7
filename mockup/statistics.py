"""Ratios with intervals, where the statistical unit is the restored process (notes: 0.3-2 % within one process, up to
19 % between processes). scipy does the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

RESAMPLES = 2000
SEED = 20170828
UNDISTURBED = 0.1
"""Which quantile of repeated runs of the same work stands for the time it takes when nothing interferes."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median of the per-restore ratios and their 95 % interval; ``restores`` is how many there were."""

    median: float
    lo: float
    hi: float
    restores: int


def ratio_interval(values: Sequence[float]) -> Ratio:
    """Median and 95 % bootstrap interval (percentile method) of ``values``, one per restored process.

    With fewer than four values no resampling can show the spread: the interval is then their range, which is wider.
    Raises ValueError when there is no value.
    """
    if not values:
        raise ValueError("no value to make an interval of")
    data = np.asarray(values, dtype=float)
    median = float(np.median(data))
    if len(data) < 4 or float(np.ptp(data)) == 0.0:
        return Ratio(median, float(data.min()), float(data.max()), len(data))
    result = stats.bootstrap(
        (data,),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    interval = result.confidence_interval
    # interpolation between equal values may leave their range by a rounding
    lo, hi = (float(np.clip(end, data.min(), data.max())) for end in (interval.low, interval.high))
    return Ratio(median, lo, hi, len(data))


def median_of(values: Sequence[float]) -> float:
    """The median of a non-empty sequence."""
    return float(np.median(np.asarray(values, dtype=float)))


def undisturbed(values: Sequence[float]) -> float:
    """The first decile of a non-empty sequence of times of the same work.

    A replayed call does the same work each time, so what it takes more than another time is the machine's doing, which only
    adds (``docs/decisions/0005``). The decile and not the minimum, so that no single reading decides.
    """
    return float(np.quantile(np.asarray(values, dtype=float), UNDISTURBED))
