"""Code at other places than its own: how much longer it takes there, where few processes have timed each
(``docs/decisions/0102``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import SEED, quantile_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AtPlaces:
    """``factors``: the time at each place over that at the build's own one, which comes first (1); ``least`` and ``most``
    are the ends of what they may be. ``sure``: enough processes timed the own one to tell how far to trust the others."""

    factors: tuple[float, ...]
    least: float
    most: float
    sure: bool = True

    @property
    def mean(self) -> float:
        """The mean time over that at the own place."""
        return float(np.mean(self.factors))

    @property
    def spread(self) -> float:
        """The longest time over the shortest."""
        return max(self.factors) / min(self.factors)

    def or_nearer(self, other: AtPlaces | None) -> AtPlaces:
        """The other one where that is known better."""
        better = other is not None and self.sure and other.most / other.least < self.most / self.least
        return other if better and other is not None else self


ALONE = AtPlaces((1.0,), 1.0, 1.0)
"""Of a build that was timed at its own place only."""


def at_places(own: Sequence[float], others: Sequence[Sequence[float]], quantile: float = TIMING.undisturbed) -> AtPlaces:
    """The factors of the ``others``; of each place one time of each process that timed it.

    Three processes at another place differ from nine at the own one although the place changes nothing: as three of the nine
    do. So a place's difference counts as far as the differences of all are larger than that (a shrinkage estimate: times
    D / (D + v), with the mean square D of the differences and the variance v of so few processes), and the ends are two
    standard deviations of it further. Each place was timed by one process at least."""
    if not others:
        return ALONE
    base = quantile_of(own, quantile)
    off = np.log([quantile_of(times, quantile) / base for times in others])
    if len(own) < TIMING.fewest_at_place:
        factors = (1.0, *map(float, np.exp(off)))
        return AtPlaces(factors, min(factors), max(factors), sure=False)
    unsure = np.array([_unsure(own, len(times), quantile) + _unsure(own, len(own), quantile) for times in others])
    return _shrunk(off, unsure)


def in_pairs(processes: Sequence[Sequence[float | None]]) -> AtPlaces | None:
    """The same from the differences within each process that timed a place and the own one, which is the first of
    ``processes``: of each place their median, whose variance follows from all differences' squares around the means of their
    places (``docs/decisions/0122``). None where these are too few."""
    own, *others = processes
    pairs = [[math.log(b / a) for a, b in zip(own, one, strict=True) if a and b] for one in others]
    pairs = [one for one, times in zip(pairs, others, strict=True) if any(times)]
    if not pairs or not all(pairs) or sum(map(bool, own)) < TIMING.fewest_at_place:
        return None
    free = sum(map(len, pairs)) - len(pairs)
    if free < TIMING.fewest_pairs:
        return None
    variance = sum(float(np.sum((np.array(one) - np.mean(one)) ** 2)) for one in pairs) / free
    off = np.array([np.median(one) for one in pairs])
    return _shrunk(off, np.array([math.pi / 2 * variance / len(one) for one in pairs]))


def _shrunk(off: Floats, unsure: Floats) -> AtPlaces:
    """The places' differences (logarithms), as far as they are larger than what is unsure of them (variances)."""
    differ = float(np.mean(off**2))
    part = differ / (differ + unsure) if differ else np.zeros(len(off))
    drawn, error = part * off, 2 * np.sqrt(part * unsure)
    least, most = min(0.0, float(np.min(drawn - error))), max(0.0, float(np.max(drawn + error)))
    return AtPlaces((1.0, *map(float, np.exp(drawn))), float(np.exp(least)), float(np.exp(most)))


def _unsure(own: Sequence[float], processes: int, quantile: float) -> float:
    """The variance of the logarithm of the time that so many processes show of a build that ``own`` is known of; from the
    middle 68 %, as a few slow processes say little of the others."""
    times = np.asarray(own, dtype=float)
    drawn: Floats = times[np.random.default_rng(SEED).integers(0, len(times), (TIMING.resamples, processes))]
    low, high = np.percentile(np.log(np.quantile(drawn, quantile, axis=-1)), [16.0, 84.0])
    return float((high - low) / 2) ** 2
