"""The stage: what was verified timed at the calls of every kind, and single candidates again."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from layout_advise.build.stage import Built, rebuild, with_places
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.contest import bench_of, contest_of
from layout_advise.measure.first_times import FirstTimes, first_times, look_at_original, times_again
from layout_advise.measure.mode import Mode, mode_of
from layout_advise.measure.policy import MEASURE
from layout_advise.measure.setup import Bench, has_vectors
from layout_advise.mockup.timing.measure import beyond
from layout_advise.mockup.timing.plan import Timed, TimingPlan
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_BLOCKS, IDENTITY_UNROLLED, Variant
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.tracer.process.stopped_program import Snapshots
from layout_advise.tracer.sampling.turns import own_time
from layout_advise.verify.compare import Findings

WithLate = Callable[[Built, Collection[Variant]], Built]
"""Returns what was built, of these candidates also with their loads in another order, where that does the same."""


@dataclass(frozen=True, slots=True)
class KindTimed:
    """The calls of one kind: what was built for them, and its times; None where no candidate concerns them. ``unaffected``
    candidates re-lay memory that the calls do not touch."""

    case: Case
    built: Built
    times: FirstTimes | None
    unaffected: frozenset[Variant] = field(default_factory=frozenset)
    end: float = math.inf
    """Until when (``own_time``) further processes may be begun."""
    late: WithLate | None = None
    """The way to candidates with their loads in another order, as long as they were not made."""
    each: float = 0.0
    """The seconds that one process took with all candidates."""


def seconds_of(case: Case) -> float:
    """The seconds that a region has for measuring and for trials in the running program."""
    return next(s for s in (case.seconds, case.settings.budget, MEASURE.budget_s) if s is not None)


def seconds_left(case: Case) -> float:
    """The seconds that a region still has for measuring and for trials when all is made and compared: where that took longer
    than it was to, what the run has left, and at least a part of them (:attr:`MeasurePolicy.least_part`)."""
    seconds = seconds_of(case)
    return min(seconds, max(case.until - own_time(), MEASURE.least_part * seconds))


def part_of_kind(case: Case) -> float:
    """The part of a region's seconds for measuring that the calls of one kind have, of several: their share of the time, but
    at least half of an equal part."""
    shares = [kind.share for kind in case.kinds]
    return max(shares[0] / sum(shares), 0.5 / len(shares)) if shares else 1.0


def further_seconds(case: Case) -> float:
    """As many seconds once more, where noise alone leaves a region's answer open, ``--budget`` does not say how long is
    measured, and the run has time: for these, and for as many that trials and the winner's second times may take."""
    if case.settings.budget is not None:
        return 0.0
    each = seconds_of(case)
    return max(0.0, min(each, case.until - each - own_time()))


@dataclass(frozen=True, slots=True)
class TimedAgain:
    """A candidate and what it is compared with, built anew. ``vectors``: whether builds without vector instructions were
    timed too."""

    timings: Timings
    vectors: bool


def measure_kind(
    case: Case,
    seen: Observation,
    built: Built,
    found: Findings,
    candidates: Sequence[Candidate],
    snapshots: Snapshots,
    late: WithLate | None = None,
    beside: KindTimed | None = None,
) -> KindTimed:
    """Times everything that was verified, at the calls of one kind; ``beside`` those of another kind, where these are timed
    already, and where it would take too long only what did well there.

    Candidates are timed with their code at several places where times depend on these and the original takes as long in the
    snapshot as in the program: else several calls in a row are going to be timed."""
    source, budget = built.source, seconds_left(case) * part_of_kind(case)
    end = own_time() + budget
    around = case.timed_calls if case.settings.temporary else None
    contest = contest_of(candidates, source, built.mockups, found, case.profiled.name, around)
    bench = _bench(case, seen, snapshots, budget, branches=source.branches)
    if not contest.entrants and not case.settings.restores:  # only how near the unchanged mock-up comes is told
        bench = replace(bench, plan=replace(bench.plan, restores=MEASURE.look_restores))
    elif source.hangs_on_place:
        bench, as_in_program = look_at_original(bench, case.chosen.in_situ_ns)
        if as_in_program:
            entrants = [e.variant for e in contest.entrants]
            built, late = with_places(late(built, entrants) if late is not None else built, entrants), None
            contest = replace(contest, places=built.places)
    end = -math.inf if case.settings.restores else end  # so many were asked for
    begun = own_time()
    times = first_times(contest, bench, slow_elsewhere(beside, case, budget) if beside is not None else {})
    each = (own_time() - begun) / max(1, len(times.timings.steady))
    return KindTimed(case, built, times, end=end, late=late, each=each)


def slow_elsewhere(timed: KindTimed, case: Case, seconds: float) -> dict[Variant, str]:
    """The builds that are not timed at the calls of another kind, and why: those that are not among the fastest at the first
    one, where not even the fewest processes with all of them would fit into its ``seconds``."""
    assert timed.times is not None
    contest, bench, timings = timed.times.contest, timed.times.bench, timed.times.timings
    mine, theirs = case.chosen.in_situ_ns, timed.case.chosen.in_situ_ns
    longer = mine / theirs if mine and theirs else 1.0
    if bench.plan.finalists is None or TIMING.fewest * longer * timings.whole_seconds <= seconds:
        return {}
    return beyond(timings, [e.variant for e in contest.entrants], bench.plan.finalists)


def _bench(case: Case, seen: Observation, snapshots: Snapshots, budget: float, *, branches: bool = False) -> Bench:
    alone = case.batch is None
    return bench_of(
        case.space,
        seen,
        snapshots,
        case.chosen.in_situ_ns,
        restores=case.settings.restores,
        budget=budget,
        clock=case.clock,
        canary=case.chosen.canary,
        branches=branches,
        alone=alone,
        between_ns=case.chosen.between_ns if alone and not case.kinds else None,
        counting=case.counting,
    )


def first_race(
    case: Case, seen: Observation, built: Built, found: Findings, snapshots: Snapshots, places: int
) -> dict[Variant, str]:
    """Times in a few processes, one round each, what did the same at the first call. Returns the builds that are not among
    the ``places`` fastest, and how each was left behind; of what no undisturbed call was seen nothing is said."""
    contest = contest_of((), built.source, built.mockups, found, case.profiled.name, None)
    bench = _bench(case, seen, snapshots, seconds_of(case))
    few = replace(bench.plan, rounds=1, calls=3, warm=1, most_calls=0, cold_calls=0, apart_calls=0)
    bench = replace(bench, plan=replace(few, patience_ns=MEASURE.race_patience_ns))
    timings = bench.measure(contest.timed(), "racing", TIMING.drop_after, drop=False)
    return beyond(timings, [e.variant for e in contest.entrants], places)


def time_original(case: Case, seen: Observation, snapshots: Snapshots) -> Timings:
    """Times the original alone, in a few processes."""
    bench = _bench(case, seen, snapshots, seconds_of(case))
    return bench.measure((), "timing the original", MEASURE.look_restores)


def measure_more(timed: KindTimed, first: Timings, candidates: Collection[Variant]) -> Timings | None:
    """``first`` and the times of ``candidates``, and of what they are compared with, in half as many processes again. None
    where the time is spent, also that of :func:`further_seconds`, but for less than a process takes at the calls of each
    kind, or there were processes enough."""
    assert timed.times is not None
    done, left = len(first.steady), timed.end + further_seconds(timed.case) - own_time()
    if left <= timed.each * max(1, len(timed.case.kinds)) or done >= MEASURE.most_restores:
        return None
    contest, bench = timed.times.contest, timed.times.bench
    wanted = [v for v in contest.timed() if not v.name.is_candidate or v.name.own in candidates]
    restores = min(MEASURE.most_restores, done + max(done // 2, MEASURE.fewest_again))
    plan = replace(_patient(bench.plan, first), restores=restores, seconds=left, fewest=min(done + 1, restores))
    if mode_of(first, bench.between_ns, timed.case.chosen.in_situ_ns) != "steady":
        plan = replace(plan, cold_restores=None)  # what flushed caches leave open is noise of few calls, too
    return replace(bench, plan=plan).measure(wanted, "measuring more", more=first)


def measure_code(
    timed: KindTimed, code: Sequence[Timed], first: Timings, *, look: bool = False, more: Timings | None = None
) -> Timings | None:
    """The times of machine code on other layouts beside the original's, those of ``more`` added to, in half of the time that
    is left, or for a ``look`` in a few processes; None where there is none left, or were processes enough."""
    assert timed.times is not None
    left, done = timed.end + further_seconds(timed.case) - own_time(), len(more.steady) if more is not None else 0
    long = more is not None and done >= MEASURE.fewest_again and more.whole_seconds > left
    if left <= 0 or long or done >= MEASURE.most_restores:
        return None
    bench, further = timed.times.bench, done + max(done // 2, MEASURE.fewest_again)
    restores = TIMING.fewest if look else min(MEASURE.most_restores, max(len(first.steady), further))
    plan = replace(bench.plan, restores=restores, seconds=left / 2, cold_calls=bench.plan.cold_calls if bench.lesser else 0)
    if more is not None:
        plan = replace(_patient(plan, more), fewest=min(max(done + 1, plan.fewest), restores))
    timings = replace(bench, plan=plan).measure(code, "timing its machine code on other layouts", drop=False, more=more)
    return replace(timings, lesser=first.lesser, between=first.between)


def _patient(plan: TimingPlan, before: Timings) -> TimingPlan:
    """The plan for further processes: they may wait as long as those did that there were ``before``, of which the disturbed
    ones tell nothing."""
    return replace(plan, patience_ns=plan.patience_ns + before.waited_ns)


def measure_again(
    timed: KindTimed,
    variant: Variant,
    first: Timings,
    mode: Mode,
    *,
    unrolled: bool,
    places: bool,
    restores: int | None = None,
) -> TimedAgain | None:
    """Builds a candidate anew and times it with what it is compared with, as :func:`time_built` does. None where it could
    not be built."""
    assert timed.times is not None
    built = timed.late(timed.built, [variant]) if timed.late is not None and places else timed.built
    again = rebuild(timed.case.space, built, variant, timed.times.contest.compared_with(variant), places=places)
    return time_built(timed.times, again.paths, variant, first, mode, unrolled=unrolled, restores=restores)


def time_built(
    times: FirstTimes,
    built: Mapping[Variant, Path],
    variant: Variant,
    first: Timings,
    mode: Mode,
    *,
    unrolled: bool,
    restores: int | None = None,
) -> TimedAgain | None:
    """Times a candidate and what it is compared with, as ``built`` anew: the winner, or in ``restores`` processes only one
    that has not won; that one only where it shows something new, builds without vectors, at other places, or that read
    again what a source might. None where it is not among what is built. ``unrolled``: the identity that was not rerolled
    counts as the identity."""
    variants = times.contest.built_again(variant, built)
    if variants is None:
        return None
    if restores is None:
        return TimedAgain(times_again(times.bench, variants, unrolled, first, mode), has_vectors(variants))
    variants = [v for v in variants if v.name != IDENTITY_BLOCKS]
    vectors = has_vectors(variants)
    if not vectors and not any(v.name in (*variant.elsewhere, variant.reread) for v in variants):
        return None
    timings = times.bench.measure(variants, "measuring the best layout again", restores, drop=False)
    return TimedAgain(timings.exchanged(IDENTITY, IDENTITY_UNROLLED) if unrolled else timings, vectors)
