"""Timing: original, identity and candidates in rotated blocks of calls, in many restored processes.

The rules are those of the design, section 3: blocks of calls of one variant, never call by call; the order of the
variants rotates between rounds. The original runs twice in each round (A and A'): the range of their ratios is the noise
floor. Before each call a process waits, within its patience, for the processor not to be slowed (``docs/decisions/0022``).
What follows from the times: :mod:`layout_advise.mockup.timing.timings`, :mod:`layout_advise.mockup.timing.ratios`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from layout_advise.errors import SnapshotError
from layout_advise.mockup.timing.branch_training import as_in_program
from layout_advise.mockup.timing.plan import Memory, Restorer, Timed, TimingPlan
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.ratios import gain
from layout_advise.mockup.timing.restored import BrokenVariant, Restore
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, SCALAR, Variant
from layout_advise.tracer.sampling.turns import own_time, own_turn


def measure(
    snapshots: Restorer,
    variants: Sequence[Timed],
    memory: Memory,
    plan: TimingPlan,
    progress: Callable[[int, int], None] = lambda done, total: None,
    drop: bool = True,
    more: Timings | None = None,
    left_out: Mapping[Variant, str] = MappingProxyType({}),
) -> Timings:
    """Times ``variants`` (candidates and the identity) beside the original. A variant that crashes or hangs is noted in
    ``failed`` and left out from then on; the others go on in a new process. With ``more`` these timings are added to, until
    they have ``plan.restores`` processes. What is ``left_out``, and why, is noted as dropped.

    Raises SnapshotError when the original itself cannot be run.
    """
    timings = more if more is not None else Timings(typical=plan.typical)
    timings = replace(timings, blocked=timings.blocked | {v.name for v in variants if v.blocked})
    wanted = {v.name for v in variants}  # what was dropped and is wanted again is not, for what is timed beside it
    timings = replace(timings, dropped={name: why for name, why in timings.dropped.items() if name not in wanted})
    timings, alive = _without(timings, [v for v in variants if v.name not in timings.failed], left_out)
    waiting = [v for v in alive if v.waits] if drop and more is None else []
    alive = [v for v in alive if v not in waiting]
    attempts, begun = 0, own_time()
    while len(timings.steady) < plan.restores:
        if plan.seconds and is_over(plan, len(timings.steady), own_time() - begun):
            break
        attempts += 1
        if attempts > 2 * plan.restores + len(variants):
            raise SnapshotError(
                "cannot time the hotspot", "too many restored processes failed", "see the logs beside the mock-ups"
            )
        try:
            with own_turn():
                timings = timings.with_process(Restore(plan, timings, alive, memory).run(snapshots))
        except BrokenVariant as broken:
            if broken.name == ORIGINAL:
                raise SnapshotError(
                    "cannot time the hotspot", broken.why, "try --snapshot fork, or another --call"
                ) from None
            timings = replace(timings, failed={**timings.failed, broken.name: broken.why})
            alive = [v for v in alive if broken.name not in (v.name, v.name.own)]
            continue
        done = own_time()
        if len(timings.steady) == 1:
            timings = replace(timings, whole_seconds=done - begun)
        if len(timings.steady) == 1 and plan.seconds:
            processes = plan.seconds / max(done - begun, 1e-9)
            plan = in_time(plan, processes)
            if drop and plan.finalists is not None and processes < TIMING.fewest:
                timings, alive = _without(timings, alive, _beyond_finalists(timings, alive, plan))
        timings, late = _promising(timings, waiting)
        alive, waiting = [*alive, *late], []
        progress(len(timings.steady), plan.restores)
        begun += own_time() - done  # a benchmark runs other programs here
        if drop and len(timings.steady) >= TIMING.drop_after:
            timings, alive = _without_losers(timings, alive, plan)
        if len(timings.steady) == TIMING.drop_after:
            alive = [v for v in alive if v.name.form != "scalar" or is_better_scalar(timings, v.name)]
        if timings.dropped and not any(v.name.is_contender for v in alive):
            break  # none of them can be the answer
    return as_in_program(timings, plan.unknown)


def _promising(timings: Timings, waiting: Sequence[Timed]) -> tuple[Timings, list[Timed]]:
    """The builds of those ``waiting`` that are timed from now on: where the first process shows that the unchanged layout
    gains by the same promise. The others are noted as dropped."""
    promises = {v.name.promise for v in waiting}
    gains = {p: timings.ratio(IDENTITY, replace(IDENTITY, promise=p)) for p in promises}
    helps = {p for p, ratio in gains.items() if ratio is not None and ratio.median * TIMING.clearly_faster > 1.0}
    why = "it made no vectors, and the unchanged layout gains nothing by the same promise"
    dropped = {v.name: why for v in waiting if v.name.promise not in helps and not v.name.placement}
    late = [v for v in waiting if v.name.promise in helps]
    return replace(timings, dropped={**timings.dropped, **dropped}), late


def is_over(plan: TimingPlan, processes: int, spent: float) -> bool:
    """Returns whether the time of the plan is over after ``spent`` seconds: twice that where there are few processes."""
    assert plan.seconds is not None
    return spent > plan.seconds and (processes >= plan.fewest or (spent > 2 * plan.seconds and processes >= TIMING.fewest))


def in_time(plan: TimingPlan, processes: float) -> TimingPlan:
    """The plan with fewer rounds, and then shorter blocks, where as it stands only so many ``processes`` of its own fit into
    its time: as processes differ by more than the calls in one do, all of them with fewer calls tell more than some with
    all. Where not even the fewest that there are in any case fit, blocks do not go on as long, either."""
    part = processes / plan.restores
    if part >= 1.0:
        return plan
    rounds = max(1, round(part * plan.rounds))
    calls = int(min(1.0, part * plan.rounds / rounds) * plan.calls)
    calls = max(calls, min(plan.calls, plan.warm + TIMING.fewest_told))
    most = int(min(1.0, processes / TIMING.fewest) * plan.most_calls)
    return replace(plan, rounds=rounds, calls=calls, most_calls=most if most > calls else 0)


def _without_losers(timings: Timings, alive: Sequence[Timed], plan: TimingPlan) -> tuple[Timings, list[Timed]]:
    """The timings with the candidates that lost by now noted as dropped, and what is timed further."""
    # what was never seen undisturbed gets as many processes again
    names = [v.name for v in alive if v.name.is_contender]
    now = as_in_program(timings, plan.unknown)
    seen = [n for n in names if timings.is_settled(n) or len(timings.steady) >= 2 * TIMING.drop_after]
    losers = clear_losers(now, seen)
    if plan.hopeless is not None:
        losers |= clear_losers(now, names, plan.hopeless)
    losers |= {n: "far slower than all it is compared with" for n in seen if n not in losers and is_hopeless(now, n)}
    if len(timings.steady) == TIMING.drop_after:
        losers |= _beyond_finalists(timings, [v for v in alive if v.name not in losers], plan)
    # what loses at all places loses; of the rest it has to be known how much
    slow = frozenset(n for name in names if (r := gain(now, name)) and r.hi < 1 for n in name.elsewhere)
    return _without(timings, alive, losers, slow)


def _beyond_finalists(timings: Timings, alive: Sequence[Timed], plan: TimingPlan) -> dict[Variant, str]:
    """The candidates that do not go on where only so many do."""
    names = [v.name for v in alive if v.name.is_contender]
    return beyond(as_in_program(timings, plan.unknown), names, plan.finalists) if plan.finalists is not None else {}


def _without(
    timings: Timings, alive: Sequence[Timed], losers: Mapping[Variant, str], slow: frozenset[Variant] = frozenset()
) -> tuple[Timings, list[Timed]]:
    """The timings with these losers noted as dropped, and what is timed further: neither them at any place, nor what is
    ``slow``, nor what is only timed for them."""
    gone = slow | {place for name in losers for place in (name, *name.elsewhere)}
    dropped = {**timings.dropped, **losers}
    out = {*dropped, *timings.failed}
    left = [v for v in alive if v.name not in gone and (v.beside is None or not v.beside <= out)]
    return replace(timings, dropped=dropped), left


def is_hopeless(timings: Timings, name: Variant) -> bool:
    """Whether a candidate surely takes :attr:`TimingPolicy.slow_part` times as long as the original and as every build of
    the unchanged layout: no number of processes makes it an answer."""
    builds = {v for process in timings.steady for v in process if v.layout == IDENTITY.layout}
    against = [ORIGINAL, *(v for v in builds if v.form != "scalar" and not v.placement)]
    ratios = [timings.ratio(one, name) for one in against]
    return bool(ratios) and all(r is not None and TIMING.slow_part * r.hi < 1.0 for r in ratios)


def clear_losers(timings: Timings, names: Sequence[Variant], factor: float = 1.0) -> dict[Variant, str]:
    """Candidates whose ``hi`` lies below the leader's ``lo``, by more than ``factor``."""
    intervals = {n: r for n in names if (r := gain(timings, n)) is not None}
    if not intervals:
        return {}
    leader = max(intervals, key=lambda n: intervals[n].lo)
    bar = intervals[leader].lo
    return {
        n: f"slower than {leader} in {timings.restores(n)} restores" for n, r in intervals.items() if factor * r.hi < bar
    }


def is_better_scalar(timings: Timings, name: Variant) -> bool:
    """Whether the unchanged layout seems to be faster without vector instructions: a verdict hangs on it then."""
    ratio = timings.ratio(SCALAR, IDENTITY)
    return name == SCALAR and ratio is not None and ratio.median < 1.0


def beyond(timings: Timings, names: Sequence[Variant], places: int) -> dict[Variant, str]:
    """The candidates that are not among the ``places`` fastest: first the fastest variant of each layout, as layouts are
    what is compared, then their others."""
    speeds = {n: r.median for n in names if (r := gain(timings, n)) is not None}
    ranked: list[tuple[int, Variant]] = []
    seen: dict[str, int] = {}
    for name in sorted(speeds, key=lambda n: -speeds[n]):
        ranked.append((seen.get(name.layout, 0), name))
        seen[name.layout] = seen.get(name.layout, 0) + 1
    slower = [name for _, name in sorted(ranked, key=lambda one: one[0])[places:]]
    return {n: f"timed in {timings.restores(n)} processes: {places} builds were ahead of it then" for n in slower}
