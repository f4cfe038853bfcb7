"""The plan of the whole program, run: the calls of all its regions as their mock-ups at once, in the program itself.

Each region is tried alone first, which finds the calls that its mock-up cannot do; then all of them together, and in turn
with runs in which no call is a mock-up's (``docs/decisions/0109``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import numpy as np

from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import undecided
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.effort import TrialTime
from layout_advise.measure.live.bench import LiveBench, LiveSubject, NoTrialError, in_time
from layout_advise.measure.live.trial import LiveWays, PreparedTrial, prepared
from layout_advise.measure.policy import MEASURE
from layout_advise.reasons import Reason
from layout_advise.regions.live_rounds import LiveRound, timed
from layout_advise.regions.looked import Looked
from layout_advise.regions.over_regions import best_variant
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.plan import PlanTrial, ProgramPlan, StructurePlan, TriedRegion
from layout_advise.reports.words import plan_words
from layout_advise.reports.words.hotspot_words import unsaid
from layout_advise.tracer.live.orders import LiveCalls, LiveTask, RegionTask, takes_breakpoint, why_not_together
from layout_advise.tracer.live.outcome import CONVERTED, LiveRun
from layout_advise.tracer.live.run import run_live_regions
from layout_advise.tracer.sampling.turns import own_time

CONVERTED_PART = 1 / 16
"""Where the data were copied before more of the calls than this part, half of the runs have the copies flushed."""
MOST_OF_CALLS = 0.8
"""A plan that did not gain is no more advised where at least this part of all calls ran so."""
RUNS_OF_REGION, RUNS_OF_ALL = 2, 3


def with_trial(
    plan: ProgramPlan | None, looked: Sequence[Looked], live: Literal["auto", "always", "never"], seconds: float
) -> ProgramPlan | None:
    """``plan`` with what the running program tells, in so many ``seconds``, of the first of its structures' plans that
    changes something; ``looked`` are the regions in its order."""
    if plan is None or live == "never":
        return plan
    wanted = ("change", "undecided") if live == "always" else ("change",)
    number = next((n for n, one in enumerate(plan.structures) if one.action in wanted and _changes(one)), None)
    if number is None:
        return plan
    one = plan.structures[number]
    trial = _trial(one, looked, seconds)
    action = "undecided" if contradicted(trial, _least(looked)) else one.action
    tried = msgspec.structs.replace(one, trial=trial, action=action)
    structures = (*plan.structures[:number], tried, *plan.structures[number + 1 :])
    return msgspec.structs.replace(plan, structures=structures)


def as_run(looked: Sequence[Looked], plan: ProgramPlan | None) -> list[Looked]:
    """The regions, without a change advised that is that of a plan by which the program did not gain."""
    tried = [(one, one.trial) for one in plan.structures if one.trial is not None] if plan is not None else []
    lost = {one.candidate: one for one, trial in tried if contradicted(trial, _least(looked))}
    found = []
    for region in looked:
        report = region.studied.report
        verdict = report.verdict
        plans = lost.get(verdict.candidate.partition("-")[0]) if verdict.candidate is not None else None
        if verdict.action == "change" and plans is not None:
            told = undecided(Reason.NOT_IN_PROGRAM, f"{plan_words.headline(plans)} Here alone: {unsaid(verdict.text)}")
            studied = replace(region.studied, report=msgspec.structs.replace(report, verdict=told))
            region = replace(region, studied=studied)
        found.append(region)
    return found


def _least(looked: Sequence[Looked]) -> float:
    """The least gain that is advised."""
    return max(DECIDE.smallest_gain(region.studied.report.snapshot) for region in looked)


def _changes(one: StructurePlan) -> bool:
    return one.candidate is not None or any(place.candidate is not None for place in one.places)


def contradicted(trial: PlanTrial, least: float) -> bool:
    """Tells whether the program, with most calls run so, surely gained less than what is advised. Where data were copied at
    many of these calls it may gain more without: the copies push the new arrays out of the caches."""
    calls = sum(one.first - 1 + one.calls for one in trial.regions)
    made = sum(one.mockups for one in trial.regions)
    seen = made >= MOST_OF_CALLS * calls and not plan_words.copies_disturb(trial)
    return trial.speedup is not None and trial.speedup.hi < least and seen


def _trial(one: StructurePlan, looked: Sequence[Looked], seconds: float) -> PlanTrial:
    """Never raises for what can go wrong with it."""
    try:
        parts, until = _parts(one, looked), own_time() + seconds
        alone = parts[0].bench.case.profiled.run.seconds
        return _Together(parts, TrialTime(until, until, alone)).carried_out(one.if_they_stay or one.program)
    except NoTrialError as why:
        return PlanTrial(str(why))
    except LayoutAdviseError as error:
        return PlanTrial(error.line())
    except OSError as error:
        return PlanTrial(str(error))


@dataclass(frozen=True, slots=True)
class _Part:
    """A region of the plan, and the id of the mock-up that its calls run as."""

    name: str
    candidate: str
    ways: LiveWays

    @property
    def bench(self) -> LiveBench:
        return self.ways.bench

    @property
    def subject(self) -> LiveSubject:
        return self.ways.subject(self.ways.variants[self.candidate])

    def task(self) -> LiveTask:
        with _named(self.name):
            return self.bench.task(self.subject)

    def prepared(self, until: float, after: int) -> PreparedTrial:
        with _named(self.name):
            return prepared(self.bench, self.subject, until, after)


@contextlib.contextmanager
def _named(region: str) -> Iterator[None]:
    """A reason why there is no trial is told with the region's name."""
    try:
        yield
    except NoTrialError as why:
        raise NoTrialError(f"{region}: {why}") from None


def _parts(one: StructurePlan, looked: Sequence[Looked]) -> list[_Part]:
    """The regions that use the structures, each with the fastest mock-up of its layout. Raises where one has none."""
    found = []
    for region, layout in zip(looked, _layouts(one, looked), strict=True):
        report = region.studied.report
        best = best_variant(report, layout) if layout is not None else None
        if best is None:  # it stays as it is, or does not use the structures
            continue
        name, ways = report.name or report.symbol, region.studied.live
        if ways is None or best.id not in ways.variants:
            raise NoTrialError(f"there is no mock-up of {name} that could run in the program")
        found.append(_Part(name, best.id, ways))
    if not found:
        raise NoTrialError("no region has a mock-up with it")
    # of the entries of one run only the first may be reached by a breakpoint
    return sorted(found, key=lambda part: not takes_breakpoint(part.bench.case.profiled.entry))


def _layouts(one: StructurePlan, looked: Sequence[Looked]) -> list[str | None]:
    """The layout that each region has under the plan."""
    if one.candidate is not None:
        return [one.candidate] * len(looked)
    names = [report.name or report.symbol for report in (region.studied.report for region in looked)]
    chosen: list[str | None] = []
    for name in names:
        used = {place.candidate for place in one.places if place.hotspot == name}
        if len(used) > 1 or names.count(name) > 1:
            raise NoTrialError(f"{name} would have several layouts in turn")
        chosen.append(next(iter(used), None))
    return chosen


def sets_of_arrays(candidates: Sequence[Candidate | None]) -> list[int]:
    """Numbers from 1 on of the sets of arrays that mock-ups of these candidates have: one for those that are the same layout
    of the same memory, to the byte."""
    known: list[object] = []
    found = []
    for one in candidates:
        layout = [
            (
                *(r.structure.base, r.structure.dims, [(f.offset, f.bytes) for f in r.structure.fields]),
                *(r.fields, r.buffers, r.chosen, r.merged),
            )
            for r in (one.relayouts if one is not None else ())
        ]
        if layout not in known:
            known.append(layout)
        found.append(1 + known.index(layout))
    return found


@dataclass(slots=True)
class _Together:
    """The regions of a plan in the running program."""

    parts: Sequence[_Part]
    time: TrialTime
    tasks: list[LiveTask] = field(default_factory=list)

    def carried_out(self, predicted: Interval) -> PlanTrial:
        """Ordinary runs, each region alone, all together, and rounds of runs. Raises where something is in the way."""
        self._check()
        progress = self.parts[0].bench.case.space.progress
        progress.step("running the plan in the program")
        self._ordinary()
        # after each region those that are left, all together, and rounds of two runs each
        after = [len(self.parts) - number + 2 * MEASURE.live_fewest_pairs for number in range(len(self.parts))]
        alone = [part.prepared(self.time.until, runs) for part, runs in zip(self.parts, after, strict=True)]
        arrays = sets_of_arrays([part.subject.candidate for part in self.parts])
        self.tasks = [replace(one.task, account=True, arrays=n) for one, n in zip(alone, arrays, strict=True)]
        first = self._run(LiveCalls.ALL, 1 + MEASURE.live_fewest_pairs)
        calls = sum(run.mockups for run in first)
        converted = sum(int(((run.roles & np.uint64(CONVERTED)) != 0).sum()) for run in first)
        flushed = converted > CONVERTED_PART * calls
        found = timed(self._rounds(flushed=flushed), predicted)
        compared = self.parts[0].bench.compared(first[0])
        return msgspec.structs.replace(
            found,
            regions=tuple(self._row(part, run) for part, run in zip(self.parts, first, strict=True)),
            flushed=flushed,
            held=all(one.held for one in alone),
            exit_status=first[0].returncode,
            output_bytes=len(first[0].stdout),
            own_words=compared.own or 0,
        )

    def _check(self) -> None:
        for part in self.parts:
            if why := part.bench.refusal() or part.bench.untimed():
                raise NoTrialError(f"{part.name}: {why}")
        if why := why_not_together([part.bench.case.profiled.entry for part in self.parts]):
            raise NoTrialError(why)
        runs = RUNS_OF_ALL + RUNS_OF_REGION * len(self.parts) + 2 * MEASURE.live_fewest_pairs
        if runs * self.time.alone > (left := self.time.until - own_time()):
            would = f"would have to run {runs} times in {left:.0f} s (--budget)"
            raise NoTrialError(f"the program takes {self.time.alone:.0f} s, and {would}")

    def _ordinary(self) -> None:
        """Runs in which no call is a mock-up's, of all regions at once, where a region has none of its own."""
        self.tasks = [part.task() for part in self.parts]
        for number, calls in enumerate((LiveCalls.NONE, LiveCalls.LOADED)):
            if all(len(part.bench.ordinary) > number for part in self.parts):
                continue
            needed = RUNS_OF_ALL - number + len(self.parts) + 2 * MEASURE.live_fewest_pairs
            for part, run in zip(self.parts, self._run(calls, needed), strict=True):
                if len(part.bench.ordinary) == number:
                    part.bench.ordinary.append(run)

    def _run(self, calls: LiveCalls, needed: int, *, flush: bool = False) -> tuple[LiveRun, ...]:
        """One run, of at least as many as are ``needed``, compared with ordinary ones where it is none itself."""
        case, known = self.parts[0].bench.case, self.parts[0].bench.ordinary
        regions = [
            RegionTask(part.bench.case.profiled.entry, replace(task, flush=flush), calls, part.bench.is_quick())
            for part, task in zip(self.parts, self.tasks, strict=True)
        ]

        def made(seconds: float) -> tuple[LiveRun, ...]:
            return run_live_regions(
                case.settings.command,
                regions,
                stdin_path=case.stdin,
                timeout=seconds,
                scratch=case.space.scratch,
            )

        found = in_time(made, self.time, needed, known, case.settings.timeout)
        for part, run in zip(self.parts, found, strict=True):
            if run.error:
                raise NoTrialError(f"{part.name}: {run.error}")
            if run.inside:
                raise NoTrialError(f"the mock-up of {part.name} ended the program at call {run.inside} ({run.end})")
        if calls not in (LiveCalls.NONE, LiveCalls.LOADED):
            self.parts[0].bench.compared(found[0])
        return found

    def _rounds(self, *, flushed: bool) -> list[LiveRound]:
        """Rounds of runs, in which each kind comes first in turn, until there are enough or the time is over."""
        found: list[LiveRound] = []
        progress = self.parts[0].bench.case.space.progress
        while len(found) < MEASURE.live_plan_rounds:
            begun = own_time()
            flushes = (False, True) if flushed else (False,)
            rest = max(MEASURE.live_fewest_pairs - len(found), 0)
            if len(found) % 2:
                tried = tuple(self._run(LiveCalls.ALL, rest, flush=flush) for flush in reversed(flushes))
                found.append(LiveRound(self._run(LiveCalls.UNTIMED, rest), tried))
            else:
                ordinary = self._run(LiveCalls.UNTIMED, rest)
                found.append(LiveRound(ordinary, tuple(self._run(LiveCalls.ALL, rest, flush=flush) for flush in flushes)))
            progress.count("running the plan in the program", len(found), MEASURE.live_plan_rounds)
            took = own_time() - begun
            if len(found) >= MEASURE.live_fewest_pairs and own_time() + took > self.time.enough:
                break
        return found

    def _row(self, part: _Part, run: LiveRun) -> TriedRegion:
        calls, first = part.bench.ordinary[0].calls, part.bench.case.chosen.call
        return TriedRegion(part.name, part.candidate, first, calls, run.mockups, run.passed, run.within, run.conversions)
