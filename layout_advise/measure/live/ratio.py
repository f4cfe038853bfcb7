"""The gain of a layout from runs in which each call ran once as the original and once as the mock-up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layout_advise.mockup.timing.statistics import SEED, Ratio
from layout_advise.tracer.live.outcome import CONVERTED, MOCKUP, ORIGINAL, LiveRun

SETTLING = 2
"""The first calls, with cold copies, are not counted."""
SEGMENTS = 8
RESAMPLES = 2000
FEWEST = 8
"""Of so many calls, in each of the two kinds of runs, a ratio is made."""
FAR = 4.0
"""A call whose ratio is so many times the median of all, or that part of it, was interrupted ..."""
MOST_FAR = 0.05
"""... as long as no more than this part of the calls is."""


@dataclass(frozen=True, slots=True)
class LiveTimes:
    """``ratio``: the time of the original over the layout's, of the same calls. ``calls`` were compared in each pair of
    runs; ``original_ns`` and ``layout_ns`` are the mean of one. ``converted``: the data were converted right before the
    calls as the mock-up. ``undisturbed`` is the time of the same calls in an ordinary run over the original's here."""

    ratio: Ratio
    calls: int
    original_ns: float
    layout_ns: float
    converted: bool
    undisturbed: float = 1.0


def live_times(pairs: Sequence[tuple[LiveRun, LiveRun]], ordinary: Sequence[LiveRun] = ()) -> LiveTimes | None:
    """The times over all pairs of runs, the second of which runs as the mock-up what the first runs as the original; None
    where too few calls were.

    Each pair gives the geometric mean of two ratios, of which each has the original's time from the other run: what slows
    one run as a whole drops out. The interval is that of a bootstrap over pairs and stretches of calls, and holds what each
    pair gives by itself. ``ordinary`` runs, without a mock-up, tell whether the original's calls take as long in the pairs
    as in the program.
    """
    sides = [_sides(one, other) for one, other in pairs]
    if not sides or any(s is None for s in sides):
        return None
    known = [s for s in sides if s is not None]
    sums = np.array([s.sums for s in known])  # pair, segment, (original, layout) of one run and of the other
    each = _gains(sums)
    drawn = np.random.default_rng(SEED)
    found = []
    for _ in range(RESAMPLES):
        chosen = sums[drawn.integers(len(sums), size=len(sums))]
        found.append(_gains(chosen[:, drawn.integers(SEGMENTS, size=SEGMENTS)]).mean())
    lo, hi = np.exp((*np.quantile(found, (0.025, 0.975)), each.min(), each.max())).reshape(2, 2).T
    ratio = Ratio(float(np.exp(each.mean())), float(lo.min()), float(hi.max()), len(pairs))
    total, counted = sums.sum(axis=(0, 1)), sum(s.calls for s in known)
    calls, original, layout = min(s.calls for s in known), total[0] + total[2], total[1] + total[3]
    least = [_undisturbed_part(pairs, run) for run in ordinary]
    each_ns = float(original / counted), float(layout / counted)
    return LiveTimes(ratio, calls, *each_ns, known[0].converted, min(least, default=1.0))


def _undisturbed_part(pairs: Sequence[tuple[LiveRun, LiveRun]], ordinary: LiveRun) -> float:
    """The time of calls in an ordinary run over that of the same calls as the original in the pairs; 1 where none is
    known. The middle one of all counts: what was interrupted, and another state of the machine, are not."""
    logs = []
    for run in (run for pair in pairs for run in pair):
        n = min(len(run.times), len(ordinary.times))
        own, here = ordinary.times_as(ORIGINAL)[:n], run.times_as(ORIGINAL)[:n]
        known = (own > 0) & (here > 0)
        known[:SETTLING] = False
        logs.append(np.log(own[known] / here[known]))
    found = np.concatenate(logs) if logs else np.empty(0)
    return float(np.exp(np.median(found))) if len(found) else 1.0


def _gains(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of what each pair gives by itself."""
    whole = np.log(sums.sum(axis=1))
    found: NDArray[np.float64] = (whole[:, 0] - whole[:, 1] + whole[:, 2] - whole[:, 3]) / 2
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    sums: NDArray[np.float64]
    calls: int
    converted: bool


def _sides(one: LiveRun, other: LiveRun) -> _Sides | None:
    """The sums of times of a pair by stretch of calls; None where there are too few of either."""
    n = min(len(one.times), len(other.times))
    if n <= SETTLING:
        return None
    first, second = _matched(other, one, n), _matched(one, other, n)
    fresh = [m & ~_converted(run, n) for m, run in ((first, one), (second, other))]
    converted = min(int(m.sum()) for m in fresh) < max(FEWEST, (int(first.sum()) + int(second.sum())) // 16)
    used = (first, second) if converted else fresh
    pairs = [_undisturbed(other.times[:n], one.times[:n], used[0]), _undisturbed(one.times[:n], other.times[:n], used[1])]
    if min(int(m.sum()) for m in pairs) < FEWEST:
        return None
    rows = [segments for m, o, t in zip(pairs, (other, one), (one, other), strict=True) for segments in _summed(o, t, m, n)]
    return _Sides(np.array(rows).T, sum(int(m.sum()) for m in pairs), converted)


def _matched(original: LiveRun, mockup: LiveRun, n: int) -> NDArray[np.bool_]:
    """The calls that ran as the original in the one run and as the mock-up in the other."""
    both: NDArray[np.bool_] = (original.roles[:n] & np.uint64(ORIGINAL)) != 0
    both &= (mockup.roles[:n] & np.uint64(MOCKUP)) != 0
    both &= (original.times[:n] > 0) & (mockup.times[:n] > 0)
    both[:SETTLING] = False
    return both


def _converted(run: LiveRun, n: int) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (run.roles[:n] & np.uint64(CONVERTED)) != 0
    return found


def _undisturbed(
    original: NDArray[np.float64], layout: NDArray[np.float64], used: NDArray[np.bool_]
) -> NDArray[np.bool_]:  # fmt: skip
    """Without calls during which something else ran, where these are few."""
    if not used.any():
        return used
    logs = np.zeros(len(used))
    logs[used] = np.log(original[used] / layout[used])
    far = used & (np.abs(logs - np.median(logs[used])) > math.log(FAR))
    return used & ~far if far.sum() <= MOST_FAR * used.sum() else used


def _summed(
    original: LiveRun, layout: LiveRun, used: NDArray[np.bool_], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By stretch of calls the ns of the original and of the layout; each stretch has as many of the calls used."""
    places = np.array_split(np.flatnonzero(used), SEGMENTS)
    of = [np.array([run.times[:n][p].sum() for p in places]) for run in (original, layout)]
    return of[0], of[1]
