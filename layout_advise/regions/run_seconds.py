"""The seconds of a run: those for measuring and for trials in the running program, which its regions share, and those in
which all studies are to end."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layout_advise.choose.policy import CHOOSE
from layout_advise.measure.policy import MEASURE
from layout_advise.tracer.sampling.turns import own_time


@dataclass(frozen=True, slots=True)
class RunSeconds:
    """``each``: one region has no more (``--budget``). ``hottest``: the greatest share of the samples that a region has.
    ``spent``: by those that were looked at."""

    each: float
    hottest: float
    spent: float = 0.0

    @property
    def left(self) -> float:
        """The seconds that all regions together have not spent yet."""
        return max(0.0, CHOOSE.regions_budgets * self.each - self.spent)

    def of(self, share: float, waiting: Sequence[float] = ()) -> float:
        """The seconds of a region with ``share`` of the samples, where others with the shares ``waiting`` come after it: its
        part of what is left, and no more beside the hottest one's than its share is."""
        together = share + sum(waiting)
        part = self.left * share / together if together else self.left
        most = self.each * min(1.0, share / self.hottest) if self.hottest else self.each
        return max(min(part, most), CHOOSE.least_budget * self.each)

    def is_late(self, share: float, since: float, answered: float) -> bool:
        """Tells whether it is too late in the run for a further region with ``share`` of the samples, where regions with an
        answer have so many: compiling and comparing takes as long for a cold one as for a hot one. ``since``: when studies
        began (``own_time``)."""
        if answered < CHOOSE.mostly_answered:
            return False
        part = min(1.0, share / self.hottest) if self.hottest else 1.0
        return own_time() > since + math.sqrt(part) * CHOOSE.regions_budgets * self.each

    def after(self, took: float) -> RunSeconds:
        """The same after a region that took so long."""
        return replace(self, spent=self.spent + took)

    @property
    def for_plan(self) -> float:
        """The seconds that the run of a plan has: as many as one region, as far as they are left, or the least of one."""
        return max(min(self.left, self.each), MEASURE.live_s)


@dataclass(slots=True)
class StudyTime:
    """The seconds that a study took for measuring and for trials in the running program."""

    measuring: float = 0.0


@dataclass(slots=True)
class RunTime:
    """The time in which the studies of a run are to end: ``until`` (``own_time``), or ``without`` an answer. What tracing,
    compiling and comparing take is seen only when they are done: in the next study they are thought to take as long as in
    the ``longest`` so far."""

    until: float = math.inf
    without: float = math.inf
    longest: float = 0.0
    answered: float = 0.0
    """The part of the samples that regions with an answer have."""
    told: bool = False
    """A study has come to its end, with an answer or without."""

    @property
    def end(self) -> float:
        """The time (``own_time``) at which a study is ended; infinite as long as that would leave nothing to tell."""
        return self.without if self.told else math.inf

    def of_plan(self, seconds: float) -> float:
        """The seconds that the run of a plan has, of so many: where studies took longer than they are to, the least."""
        return min(seconds, MEASURE.live_s) if own_time() > self.until else seconds

    def is_over(self, seconds: float) -> bool:
        """Tells whether a study that is begun now, and has so many seconds for measuring, would end too late."""
        return own_time() + self.longest + seconds > (self.until if self.answered else self.without)

    @contextlib.contextmanager
    def studying(self) -> Iterator[StudyTime]:
        """Around each study, also one that fails: how long it takes beside the time for measuring, which it tells."""
        begun, study = own_time(), StudyTime()
        try:
            yield study
        finally:
            self.longest = max(self.longest, own_time() - begun - study.measuring)


def no_less(budget: float | None) -> float:
    """The budget, but no less than the usual one: who wants less measured does not have tracing and compiling cut short."""
    return max(MEASURE.budget_s, budget or 0.0)


def run_time(budget: float | None) -> RunTime:
    """The time of a run that begins now; ``budget`` as of :func:`run_seconds`."""
    now, each = own_time(), no_less(budget)
    return RunTime(now + CHOOSE.run_budgets * each, now + CHOOSE.open_budgets * each)


def run_seconds(budget: float | None, shares: Sequence[float]) -> RunSeconds:
    """The seconds of a run over regions with these shares of the samples; ``budget`` None: the usual."""
    return RunSeconds(MEASURE.budget_s if budget is None else budget, max(shares, default=0.0))
