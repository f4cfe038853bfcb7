"""Where the time of short calls goes: looked for in the whole run, where the first calls are not those that the samples fell
in.

The first calls of a program are often its smallest ones: solvers start with little to propagate, bodies have not met yet.
What is studied has to be where the samples fell: the time of a call, times the calls, must agree with the hotspot's share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.sampling.probe import probe
from layout_advise.tracer.sampling.turns import own_time


@dataclass(frozen=True, slots=True)
class Window:
    """The ns of consecutive calls, the first of which is call ``first``."""

    first: int
    ns: tuple[float, ...]

    def part(self, first: int, size: int) -> tuple[float, ...]:
        """The ns of ``size`` calls from ``first`` on; none where it has not all of them."""
        start = first - self.first
        return self.ns[start : start + size] if start >= 0 and start + size <= len(self.ns) else ()

    @property
    def mean(self) -> float:
        """The mean time of its calls, without those that were disturbed."""
        kept = undisturbed(self.ns)
        return float(kept.mean()) if kept.size else 0.0


def undisturbed(ns: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The times, ascending, without those that too few calls have: another process had the core meanwhile, for milliseconds;
    and what only one call does could not be compared at others."""
    ordered = np.sort(np.asarray(ns, np.float64))
    first = np.searchsorted(ordered, ordered * (1 - CHOOSE.nearby), "left")
    last = np.searchsorted(ordered, ordered * (1 + CHOOSE.nearby), "right")
    return ordered[last - first >= CHOOSE.verified_calls]


def mean_by_samples(profiled: Profiled, calls: int) -> float:
    """The mean ns of a call as the samples tell: the hotspot's part of the program's CPU time, over its calls. NaN where
    that is not known."""
    ns = profiled.share * profiled.run.cpu_seconds * 1e9
    return ns / calls if calls and ns else math.nan


def agree(mean: float, other: float) -> bool:
    """Tells whether times are as near to each other as those of calls that may stand for each other; also where one of them
    is not known."""
    if math.isnan(mean) or math.isnan(other):
        return True
    return other <= CHOOSE.far * mean and mean <= CHOOSE.far * other


def window_at(settings: Settings, profiled: Profiled, stdin: Path | None, first: int, calls: int) -> Window:
    """The times of as many calls from ``first`` on as can be timed, of the ``calls`` in all, by the time stamp counter; the
    entries of a loop by the clock, as it ends at other places than a call."""
    last = min(first + MAX_TIMED - 1, calls)  # ticks become ns when the last of them is done
    seen = probe(
        settings.command, profiled.entry, stdin_path=stdin, timeout=settings.timeout, first=first,
        timed=last - first + 1, max_calls=last, quick=profiled.nest is None,
    )  # fmt: skip
    return Window(first, seen.quick_ns if profiled.nest is None else without_clock([s.cpu_ns for s in seen.times]))


def without_clock(ns: Sequence[float]) -> tuple[float, ...]:
    """The times without what reading the clock takes: the shortest of them, where that is far too short to be timed."""
    least = min(ns, default=0.0)
    return tuple(one - least for one in ns) if least * CHOOSE.far < CHOOSE.short_call_ns else tuple(ns)


def windows_of(
    settings: Settings, profiled: Profiled, stdin: Path | None, calls: int, first: Window, mean: float = math.nan
) -> tuple[Window, ...]:
    """``first``, the first calls, and calls further on in the run, evenly spread over it. The program runs up to each of
    them in turn: none are looked at behind those that take what all of them do on average (``mean``), where that is known,
    nor where that would take too long."""
    found, begun, rate = [first], own_time(), 0.0
    for k in range(CHOOSE.windows):
        start = 1 + calls * (2 * k + 1) // (2 * CHOOSE.windows)
        now = own_time()
        if now - begun + rate * start > CHOOSE.windows_s:
            break
        window = window_at(settings, profiled, stdin, start, calls) if start > len(first.ns) else None
        if window is not None and window.ns:
            found.append(window)
            rate = (own_time() - now) / start
            if abs(window.mean - mean) <= CHOOSE.roughly * mean:
                break
    return tuple(found)


def nearest(windows: Sequence[Window], mean: float) -> Window:
    """The window whose calls take on average what all of them do; the first one where none takes any time."""
    return min(windows, key=lambda w: abs(math.log(w.mean / mean)) if w.mean else math.inf)


def typical_ns(windows: Sequence[Window], least: float = 0.0) -> float:
    """The time of the call in which half of the time is gone, by rising length: a sample falls in a call that is as long or
    longer as often as in a shorter one. Of calls of ``least`` ns or more; 0 where there are none."""
    ordered = undisturbed(np.concatenate([w.ns for w in windows]))
    ordered = ordered[ordered >= least]
    if not ordered.size:
        return 0.0
    gone = np.cumsum(ordered)
    return float(ordered[np.searchsorted(gone, gone[-1] / 2)])


def share_from(windows: Sequence[Window], least: float) -> float:
    """Which part of the time of all calls goes by in those of ``least`` ns or more."""
    each = undisturbed(np.concatenate([w.ns for w in windows]))
    return float(each[each >= least].sum() / max(each.sum(), 1.0))


def typical_calls(windows: Sequence[Window], least: float, near: float, count: int) -> tuple[int, ...]:
    """The calls that take about as long as the typical one of ``least`` ns or more; where there are fewer than ``count``
    together, those whose time is nearest to it of which there are as many. Empty where there are none."""
    typical = typical_ns(windows, least)
    longer = {one for w in windows for one in w.ns if one >= least} if typical else set()
    for ns in sorted(longer, key=lambda one: abs(math.log(one / typical))):
        if len(found := calls_like(windows, ns, near)) >= count:
            return found
    return ()


def calls_like(windows: Sequence[Window], ns: float, near: float) -> tuple[int, ...]:
    """The calls of the window with the most of them whose time is near ``ns``, ascending."""
    found = [tuple(w.first + k for k, one in enumerate(w.ns) if abs(one - ns) <= near * ns) for w in windows]
    return max(found, key=len, default=())
