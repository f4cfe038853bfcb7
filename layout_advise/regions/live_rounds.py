"""The CPU time of the whole program in ordinary runs and under a plan, without what the trial of it takes itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.measure.live.bench import NoTrialError
from layout_advise.measure.policy import MEASURE
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.plan import PlanTrial
from layout_advise.tracer.live.outcome import LiveRun

MOST_GAIN = 100.0
"""No upper end is above this."""


@dataclass(frozen=True, slots=True)
class LiveRound:
    """Runs that follow each other: one in which no call is a mock-up's, and those under the plan."""

    ordinary: tuple[LiveRun, ...]
    tried: tuple[tuple[LiveRun, ...], ...]

    def gains(self) -> list[float]:
        """The program's speedup in each, without all that the trial added up of itself."""
        base = own_seconds(self.ordinary)
        return [base / own_seconds(runs) for runs in self.tried]

    def most(self) -> list[float]:
        """The greatest speedup that each leaves possible: the trial may take more at each call of a mock-up than it adds up,
        and the program stops at more pages, as they are watched."""
        base, ordinary = own_seconds(self.ordinary), own_faults(self.ordinary)
        found = []
        for runs in self.tried:
            calls, faults = sum(run.mockups for run in runs), max(0, own_faults(runs) - ordinary)
            further = 1e-9 * (MEASURE.live_account_ns * calls + MEASURE.live_fault_ns * faults)
            found.append(base / max(own_seconds(runs) - further, base / MOST_GAIN))
        return found


def own_seconds(runs: Sequence[LiveRun]) -> float:
    """The CPU seconds of a run of the program without those that the trial added up itself. Raises where none is left."""
    found = runs[0].cpu_seconds - sum(run.aside_s for run in runs)
    if found <= 0.0:
        raise NoTrialError("the trial itself took all of the program's time")
    return found


def own_faults(runs: Sequence[LiveRun]) -> int:
    """The minor page faults of a run of the program without those of the trial."""
    return runs[0].faults - sum(run.aside_faults for run in runs)


def timed(rounds: Sequence[LiveRound], predicted: Interval) -> PlanTrial:
    """The times of a plan that was run in all these rounds, beside what was ``predicted`` of it."""
    tried = [runs for one in rounds for runs in one.tried]
    gains = [gain for one in rounds for gain in one.gains()]
    middle = math.exp(float(np.mean(np.log(gains))))
    original = float(np.mean([own_seconds(one.ordinary) for one in rounds]))
    layout = original / middle
    copies = float(np.mean([sum(run.copies_s for run in runs) for runs in tried]))
    aside = float(np.mean([sum(run.aside_s for run in runs) for runs in tried]))
    return PlanTrial(
        speedup=Interval(middle, min(gains), max(most for one in rounds for most in one.most()), len(rounds)),
        with_copies=original / (layout + copies),
        rounds=len(rounds),
        original_s=original,
        layout_s=layout,
        predicted_s=original / predicted.median,
        copies_s=copies,
        own_s=aside - copies,
    )
