"""By how much a region became faster from one run to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.compare.policy import COMPARE
from layout_advise.mockup.timing.statistics import unpaired_ratio
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport

Mark = Literal["+", "-", "~", ""]
"""Faster, slower, not different, not known."""


@dataclass(frozen=True, slots=True)
class Faster:
    """The time of a call in the older run over that in the newer; ``speedup`` is None (``why``) where that is not known.
    ``old_ns`` and ``new_ns`` are one call in the program, or, where that was not timed, repeated in the snapshot."""

    old_ns: float | None
    new_ns: float | None
    speedup: Interval | None
    why: str = ""

    @property
    def mark(self) -> Mark:
        """Returns what the interval says, beyond what two runs of one program differ."""
        return mark(self.speedup)


def mark(speedup: Interval | None) -> Mark:
    """``+`` or ``-`` where the whole interval is beyond the limit, ``~`` where it is not."""
    if speedup is None:
        return ""
    return "+" if speedup.lo > COMPARE.differ else "-" if speedup.hi < 1 / COMPARE.differ else "~"


def faster(old: HotspotReport, new: HotspotReport, why: str = "") -> Faster:
    """The ratio of the times of a call in the running program, resampled over the processes of either run. Of reports
    without them: the ratio of repeated calls, as uncertain as both runs' noise. ``why``: a reason not to make a ratio."""
    in_program = old.original.ns_in_situ and new.original.ns_in_situ
    before, after = (
        (one.original.ns_in_situ if in_program else one.original.ns_steady or one.original.ns_cold) for one in (old, new)
    )
    if not before or not after:
        return Faster(before, after, None, why or "its calls were not timed in both runs")
    if why:
        return Faster(before, after, None, why)
    # of calls of several kinds the processes' times are those of one kind
    first, second = (() if one.kinds else one.original.ns_processes for one in (old, new))
    if in_program and first and second:
        found = unpaired_ratio(first, second)
        return Faster(before, after, Interval(found.median, found.lo, found.hi, found.restores))
    spans = [one.noise for one in (old, new) if one.noise is not None]
    if not spans:
        return Faster(before, after, None, "neither run tells its noise")
    low, high = min(span.lo for span in spans), max(span.hi for span in spans)
    return Faster(before, after, Interval(before / after, before / after * low, before / after * high))


def other_work(old: Report, new: Report) -> str:
    """Why a call of the two runs may not do the same work; empty where nothing says so."""
    if old.command[1:] != new.command[1:]:
        return "the runs had other arguments"
    if (old.machine.cpu, old.machine.cores) != (new.machine.cpu, new.machine.cores):
        return f"the runs are of two machines ({old.machine.cpu}; {new.machine.cpu})"
    return ""
