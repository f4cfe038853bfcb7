"""The calls of a region in two programs, timed in turn: the same calls of both, by their numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.apply.policy import APPLY
from layout_advise.choose.probed_calls import call_times
from layout_advise.choose.profile import Profiled
from layout_advise.errors import ProgramError
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.statistics import Ratio, median_of, undisturbed_ratio
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.sampling.probe import Probe, probe

Times = NDArray[np.float64]
"""The ns of calls, in their order."""


@dataclass(frozen=True, slots=True)
class RegionOf:
    """A region of a program that is run by ``command`` in ``folder``."""

    command: tuple[str, ...]
    folder: Path
    profiled: Profiled

    def counted(self) -> Probe:
        """One run of the program, all of whose calls are counted, and the first ones timed."""
        with contextlib.chdir(self.folder):
            return probe(self.command, self.profiled.entry, timeout=APPLY.run_seconds)

    def times(self, calls: TimedCalls) -> Times:
        """The ns of these calls, in a run of the program for each stretch of them, which ends after it."""
        found = list[float]()
        for first in calls.starts:
            with contextlib.chdir(self.folder):
                seen = probe(
                    self.command, self.profiled.entry, timeout=APPLY.run_seconds, first=first, timed=calls.each,
                    max_calls=first + calls.each - 1, quick=calls.quick,
                )  # fmt: skip
            found += seen.quick_ns if calls.quick else call_times(self.profiled, seen)
        return np.array(found)


@dataclass(frozen=True, slots=True)
class TimedCalls:
    """The calls that are timed in both programs: from each of ``starts`` on so many. ``quick``: the clock of the processor
    alone is read around them, which costs less than short calls take."""

    starts: tuple[int, ...]
    each: int
    quick: bool


def calls_to_time(old: RegionOf, new: RegionOf, rounds: int, seconds: float) -> TimedCalls | None:
    """Stretches of calls from all over the run, as many as so many ``rounds`` of both programs have ``seconds`` for. None
    where no call was timed. Raises ProgramError where the new program makes other calls than the old one."""
    looks = old.counted(), new.counted()
    calls, others = (look.calls for look in looks)
    if abs(calls - others) > APPLY.other_calls * calls:
        why = f"it is called {calls:,} times, and {others:,} times in the rewritten program"
        raise ProgramError("cannot time the region's calls", why)
    if not all(look.times for look in looks):
        return None
    threaded = old.profiled.threaded or new.profiled.threaded
    quick = not threaded and median_of(call_times(old.profiled, looks[0])) < MEASURE.live_quick_ns
    each = rounds * sum(look.seconds for look in looks)
    both = min(calls, others)
    return TimedCalls(stretches(both, int(seconds / max(each, 1e-3))), min(MAX_TIMED, both), quick)


def stretches(calls: int, most: int) -> tuple[int, ...]:
    """The numbers of the first calls of stretches of ``MAX_TIMED``, evenly over all ``calls``, ``most`` of them and one at
    least; the first begins with the first call."""
    behind = calls - MAX_TIMED
    count = max(1, min(APPLY.stretches, most, -(-calls // MAX_TIMED)))
    return tuple(1 + behind * k // (count - 1) for k in range(count)) if count > 1 and behind > 0 else (1,)


def ratio_of_calls(old: Sequence[Times], new: Sequence[Times]) -> Ratio:
    """The old program's time of all the calls timed over the new one's, from the times in each process of both.

    Calls differ, and quick ones say nothing of slow ones, so that no quantile of them stands for all. What interrupted a
    call in one process is taken out by its time in the others (the unit of the statistics is the process: decision 21)."""
    calls = min(len(one) for one in (*old, *new))
    return undisturbed_ratio(*(_sums(processes, calls) for processes in (old, new)))


def _sums(processes: Sequence[Times], calls: int) -> list[float]:
    times = np.array([one[:calls] for one in processes])
    usual = np.median(times, axis=0)
    interrupted = times > APPLY.interrupted * usual + APPLY.interrupted_ns
    return [float(total) for total in np.where(interrupted, usual, times).sum(axis=1)]
