"""The decision where all calls are of one kind: measure, decide, and measure the winner again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.decide.decision import Decision, as_fast, context_of, measured, unrolled_nearer
from layout_advise.decide.doubts import doubt_between, doubt_form, doubt_place, doubt_scalar
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.requests import Asking, MeasureAgain, measure_again, time_in_program
from layout_advise.decide.verdict import VerdictContext, confirm, decide, undecided
from layout_advise.errors import LayoutAdviseError
from layout_advise.measure.first_times import FirstTimes
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import Mode, lies_between, mode_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, ORIGINAL
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.quantities import nanoseconds


def decide_single(times: FirstTimes, in_situ_ns: float | None, context: VerdictContext) -> Asking[Decision]:
    """Decides on the first times, and has the winner measured again in new restores, where only those rounds count.

    What the layout and the vector instructions have done each by themselves is measured along with the winner, or, where
    there is none, for the fastest candidate.
    """
    first, bench = times.timings, times.bench
    mode = mode_of(first, bench.between_ns, in_situ_ns)
    if mode is None and in_situ_ns is not None:
        # a phase in which others disturb the machine may have covered all of the program's processes: look after it
        in_situ_ns = (yield from time_in_program(0, first.best_canary.core)) or in_situ_ns
        mode = mode_of(first, bench.between_ns, in_situ_ns)
    if mode is None and not bench.branches and lies_between(first, in_situ_ns):
        first, mode = replace(first, lesser=True, between=True), "steady"
    decision = yield from _decided(replace(times, timings=first), context, mode, in_situ_ns)
    if in_situ_ns is None and mode is None and decision.verdict.reason == Reason.NOT_IN_SITU:
        text = "the call could not be timed in the running program, so whether the measured ratios hold there is not known."
        decision = replace(decision, verdict=undecided(Reason.NOT_IN_SITU, text))
    return replace(decision, in_situ_ns=in_situ_ns)


def _unlike(first: Timings, in_situ_ns: float | None) -> str:
    """A sentence on the original's times in the snapshot and in the running program."""
    took = [
        f"{nanoseconds(ns)} with {what} caches"
        for what, ns in (("warm", first.nanoseconds(ORIGINAL)), ("flushed", first.nanoseconds(ORIGINAL, "cold")))
        if ns
    ]
    return f"a call of the original takes {' and '.join(took)} in the snapshot, but {nanoseconds(in_situ_ns)} in the program"


def _decided(times: FirstTimes, context: VerdictContext, mode: Mode | None, in_situ_ns: float | None) -> Asking[Decision]:
    first, contest = times.timings, times.contest
    if not context.rules_apply:
        return Decision(first, None, mode, decide((), context), None, context.snapshot)
    if mode is None:
        text = f"{_unlike(first, in_situ_ns)}, so the measured ratios may not hold there. Another call (--call N) may do."
        return Decision(first, None, None, undecided(Reason.NOT_IN_SITU, text), None, context.snapshot)
    unrolled = unrolled_nearer(first, mode)
    first = first.exchanged(IDENTITY, IDENTITY_UNROLLED) if unrolled else first
    times = replace(times, timings=first)
    now = context_of(context, first, mode)
    results = [measured(e, first, mode, contest.conversion(first, e.variant)) for e in contest.entrants]

    def ahead(faster: Measured, slower: Measured) -> bool:
        lead = first.ratio(slower.name, faster.name, mode)
        return lead is not None and lead.lo > 1.0

    verdict = doubt_scalar(decide([*results, *contest.unmeasured], now, ahead), first, results, mode, unrolled)
    verdict = doubt_between(verdict, first, results, now.bound)
    if verdict.action != "change":
        decision = Decision(first, None, mode, verdict, None, context.snapshot)
        return (yield from _nothing_won(times, decision, results, unrolled, now))
    decision = yield from _confirmed(times, context, mode, verdict, results, unrolled)
    if decision.verdict.reason == Reason.LOOP_FORM:  # of blocks, that is; what needs none may gain by itself
        rest = decide([*(r for r in results if not r.blocked), *contest.unmeasured], now)
        if rest.action == "change":
            return (yield from _confirmed(times, context, mode, rest, results, unrolled))
    return decision


def _confirmed(
    times: FirstTimes,
    context: VerdictContext,
    mode: Mode,
    verdict: Verdict,
    results: Sequence[Measured],
    unrolled: bool,
) -> Asking[Decision]:
    """Returns what remains of a ``change`` when its candidate is built anew and measured again."""
    first, contest = times.timings, times.contest
    winner = next(e for e in contest.entrants if str(e.variant) == verdict.candidate)
    again = yield from measure_again(MeasureAgain(0, winner.variant, first, mode, unrolled))
    if again is None:
        raise LayoutAdviseError("the winner could not be built again", "its compiler refused what it took before")
    result = measured(winner, again.timings, mode, contest.conversion(first, winner.variant))
    now = context_of(context, again.timings, mode)
    confirmed = doubt_form(confirm(verdict, result, now), result, now.bound, again.timings, mode)
    peers = as_fast(results, winner.variant, first, now.bound, mode) if confirmed.action == "change" else ()
    return Decision(
        first,
        again.timings,
        mode,
        confirmed,
        winner.variant,
        context.snapshot,
        again.timings if again.vectors else None,
        winner.variant if again.vectors else None,
        peers=peers,
    )


def _nothing_won(
    times: FirstTimes, decision: Decision, results: Sequence[Measured], unrolled: bool, now: VerdictContext
) -> Asking[Decision]:
    """Measures layout and vector instructions each by themselves, of the best candidate, and whether that loses only
    where its code happens to lie."""
    mode, keep = decision.mode or "steady", decision.verdict.action == "keep"
    best = max((r for r in results if r.speedup), key=lambda r: r.speedup.median if r.speedup else 0.0, default=None)
    if best is None:
        return decision
    request = MeasureAgain(0, best.name, times.timings, mode, unrolled, keep, DECIDE.ablation_restores)
    again = yield from measure_again(request)
    if again is None:
        return decision
    branches = times.bench.branches
    verdict = doubt_place(decision.verdict, again.timings, best, now.bound, mode, branches=branches)
    decision = replace(decision, verdict=verdict)
    return replace(decision, ablation=again.timings, ablated=best.name) if again.vectors else decision
