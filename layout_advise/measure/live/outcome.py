"""The outcome of a trial in the running program, and what its interval has to hold (``docs/decisions/0069``)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from layout_advise.measure.live.ratio import LiveTimes
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model.live import LiveCourse
from layout_advise.tracer.live.outcome import MOCKUP, ORIGINAL, PASSED, LiveRun

MOST_STRETCHES = 120
"""Of so many stretches of calls, at most, the times are kept."""


@dataclass(frozen=True, slots=True)
class LiveTrial:
    """A trial and its outcome. ``ratio`` is None where its calls were not timed, for the ``reason``: there was no trial, or
    they ran so untimed, which is told by their number. ``calls`` of the region ran
    as the mock-up in the run in which all did that could, ``passed`` did not; ``conversions`` of the data were made in it.
    ``timed`` calls were timed as both, at ``original_ns`` and ``layout_ns`` each. ``original_s`` and ``layout_s`` are CPU
    seconds of the whole program. ``own_words`` of the output differ from run to run, and were not compared."""

    ratio: Ratio | None
    reason: str = ""
    calls: int = 0
    passed: int = 0
    conversions: int = 0
    timed: int = 0
    original_ns: float = 0.0
    layout_ns: float = 0.0
    original_s: float = 0.0
    layout_s: float = 0.0
    exit_status: int = 0
    output_bytes: int = 0
    own_words: int = 0
    stopped: int = 0
    faulted: int = 0
    """Calls left to the original as the mock-up came to a way that no compared call took, or reached for other memory than
    the call studied."""
    unimproved: float = 0.0
    """The part of the calls' time, in an ordinary run, that calls left to the original take."""
    held: bool = False
    """Whether each access in all those calls was held against the map of the layout, in a run of its own."""
    surveyed: int = 0
    """The last call that a survey came to; later ones were left to the original. 0: there are none."""
    converted: bool = False
    """Whether the data were converted right before the timed calls: the ratio then holds those with warm and with flushed
    copies."""
    course: LiveCourse | None = None
    ended: int = 0
    """The first call after the time for the mock-up was over: later ones were left to the original. 0: it was not over."""


def course(first: int, ordinary: LiveRun, tried: LiveRun) -> LiveCourse | None:
    """The calls in their order; None where there are none."""
    calls = min(len(ordinary.times), len(tried.times))
    if not calls:
        return None
    stretch = -(-calls // MOST_STRETCHES)
    parts = [slice(start, min(start + stretch, calls)) for start in range(0, calls, stretch)]
    made = (tried.roles & np.uint64(MOCKUP)) != 0
    copying = np.full(calls, np.nan) if tried.copying is None else tried.copying
    own, new = ordinary.times_as(ORIGINAL), tried.times_as(MOCKUP)
    left = (tried.roles & np.uint64(PASSED)) != 0
    return LiveCourse(
        first,
        calls,
        stretch,
        tuple(_middle(own[part]) for part in parts),
        tuple(_middle(new[part]) for part in parts),
        tuple(_mean(copying[part][made[part]]) for part in parts),
        tuple(int(left[part].sum()) for part in parts),
    )


def _middle(times: NDArray[np.float64]) -> float | None:
    """The median of those that are times."""
    known = times[times > 0]
    return float(np.median(known)) if len(known) else None


def _mean(times: NDArray[np.float64]) -> float | None:
    return float(times.mean()) if len(times) and np.isfinite(times).all() else None


def around(ratio: Ratio, times: LiveTimes) -> Ratio:
    """``ratio`` with what the timing itself adds to a call of the original and of the mock-up, as it may be."""
    lo = ratio.lo * max(0.0, 1 - MEASURE.live_original_ns / times.original_ns)
    return replace(ratio, lo=lo, hi=ratio.hi * (1 + MEASURE.live_mockup_ns / times.layout_ns))


def unlike_by_itself(undisturbed: float) -> str | None:
    """Why the times of pairs of runs tell nothing, where the same calls take ``undisturbed`` times as long in an ordinary
    run as the original in the pairs; None where that is about the same. Conversions between the calls have driven its data
    out of the caches then, or have left them there, and the new layout's as well."""
    if abs(math.log(undisturbed)) <= math.log1p(MEASURE.in_situ_tolerance):
        return None
    times = 1.0 / undisturbed
    return (
        "what is copied between the calls changes what they find in the caches: "
        f"the original takes {times:.{1 if times >= 1 else 2}f} times as long there"
    )


def unimproved(ordinary: LiveRun, tried: LiveRun, calls: int | None = None) -> float:
    """The part of the time of the calls timed in an ordinary run (of the first ``calls`` of them) that calls take which
    ``tried`` left to the original."""
    n = min(len(ordinary.times), len(tried.roles), *([] if calls is None else [calls]))
    timed = ordinary.times[:n]
    left = timed[(tried.roles[:n] & np.uint64(PASSED)) != 0]
    return float(left.sum() / timed.sum()) if timed.sum() > 0 else 0.0


def with_unimproved(ratio: Ratio, part: float) -> Ratio:
    """``ratio`` whose lower end has ``part`` of the time as slow as it was."""
    return replace(ratio, lo=min(ratio.lo, 1 / (part + (1 - part) / ratio.lo))) if ratio.lo > 0 else ratio
