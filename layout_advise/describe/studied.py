"""The outcome of a region's study: what the report needs, or a typed request to take it up again in another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layout_advise.choose.call_kinds import Kind
from layout_advise.choose.calls import Stretch, stretches
from layout_advise.choose.probed_calls import call_times
from layout_advise.decide.decision import Decision
from layout_advise.decide.live import LiveOnly
from layout_advise.describe.checks import Conditions
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.live.trial import LiveWays
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import Mode
from layout_advise.mockup.remap.conversion_view import View
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import Variant
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds
from layout_advise.observe.observe import Observation
from layout_advise.reasons import TELLS_NOTHING
from layout_advise.reports.model.hotspot import HotspotReport, Verdict
from layout_advise.reports.model.threads import ByThreads
from layout_advise.verify.stage import Verified


@dataclass(frozen=True, slots=True)
class Decided:
    """The verified mock-ups of a region, and what was decided; without a ``decision`` nothing could be timed."""

    verified: Verified
    decision: Decision | None
    verdict: Verdict
    views: Mapping[str, View] = field(default_factory=dict)
    """The fields that a view of a layout copies around a call, by the candidate's id."""
    left_out: Mapping[int, str] = field(default_factory=dict)
    """Why kinds of calls were not measured, by the call that stands for them."""
    threads: ByThreads | None = None
    """A parallel region with other numbers of threads."""
    alone: LiveOnly | None = None
    """What the running program alone has decided, where nothing was timed in the snapshot."""
    live: LiveWays | None = None
    """The way to try candidates in the running program."""
    took: float = 0.0
    """Seconds of measuring and of trials."""

    @property
    def timings(self) -> Timings | None:
        """The first measurement."""
        return self.decision.first if self.decision else None

    @property
    def results(self) -> tuple[Measured, ...]:
        """The measurements of each candidate, with its doubts."""
        known = self.decision or self.alone
        return known.results if known is not None else ()

    @property
    def trials(self) -> Mapping[Variant, LiveTrial]:
        """The outcome of trials in the running program."""
        known = self.decision or self.alone
        return known.trials if known is not None else {}

    @property
    def settled(self) -> bool:
        """True where the running program itself was timed."""
        return any(trial.ratio is not None for trial in self.trials.values())

    @property
    def mode(self) -> Mode | None:
        """The mode that counts, steady or cold."""
        return self.decision.mode if self.decision else None


@dataclass(frozen=True, slots=True)
class AnotherKind:
    """The calls differ, and a call of another kind has to stand for them."""

    kinds: Kinds


@dataclass(frozen=True, slots=True)
class SmallerRegion:
    """One call makes more accesses than are recorded: a loop in it may make fewer."""


@dataclass(frozen=True, slots=True)
class InBatches:
    """The same call repeated is quicker than the program's calls, which depend on data: several in a row may not be."""


@dataclass(frozen=True, slots=True)
class LongCall:
    """The calls are too short, and several in a row are not what they are in the program: one of the longer ones may be
    timed by itself."""


@dataclass(frozen=True, slots=True)
class MoreWays:
    """A further call took ways, which begin at ``taken``, that the first did not, and that end the mock-ups. ``kinds`` are
    those of the calls, as far as they were looked at: they stay what they are."""

    taken: frozenset[int]
    kinds: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class Studied:
    """The hotspot's part of the report, and how the experiment went."""

    report: HotspotReport
    conditions: Conditions
    complete: bool = True
    retry: SmallerRegion | InBatches | LongCall | MoreWays | None = None
    """How the study may be taken up again with more success."""
    live: LiveWays | None = None
    """The way to try its candidates in the running program, with those of other regions; None where none can be."""
    took: float = 0.0
    """Seconds of measuring and of trials in the running program."""

    @property
    def tells(self) -> bool:
        """Tells whether anything could be measured of the layouts."""
        return self.report.verdict.reason not in TELLS_NOTHING


def modelled_conditions(case: Case, seen: Observation) -> Conditions:
    """How the experiment went where nothing was measured."""
    return Conditions(
        timings=None,
        in_situ_ns=case.chosen.in_situ_ns,
        spread=case.chosen.spread,
        mode=None,
        truncated=seen.trace.truncated,
        wrong_map_caught=None,
        calls_verified=0,
        deterministic=_same_end(case),
        waits=case.profiled.run.waits,
        batch=case.timed_calls,
    )


def conditions_of(case: Case, seen: Observation, decided: Decided) -> Conditions:
    """How the experiment went."""
    verified, decision = decided.verified, decided.decision
    return Conditions(
        timings=decided.timings,
        in_situ_ns=decision.in_situ_ns if decision else case.chosen.in_situ_ns,
        spread=case.chosen.spread,
        mode=decided.mode,
        truncated=seen.trace.truncated,
        wrong_map_caught=verified.wrong_map_caught,
        calls_verified=verified.calls,
        deterministic=_same_end(case),
        waits=case.profiled.run.waits,
        same_blocks=verified.same_addresses,
        batch=case.timed_calls,
        unlike=verified.unlike,
        puts=seen.puts,
        unknown=case.batch.unknown if case.batch is not None else "",
        stretches=_stretches(case),
    )


def _stretches(case: Case) -> tuple[Stretch, ...]:
    """Of calls that are timed one by one; where their kinds are told apart, these say what differs."""
    if case.batch is not None or case.kinds:
        return ()
    limit = TIMING.calm * case.chosen.canary
    return tuple(stretches(call_times(case.profiled, case.probe), [s.canary for s in case.probe.times], limit))


def _same_end(case: Case) -> bool:
    return case.profiled.run.exit_status == case.probe.exit_status
