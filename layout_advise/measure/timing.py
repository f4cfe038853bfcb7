"""Time what was verified, decide, and measure the winner again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.decide.doubts import LOOP_FORM, NOT_IN_SITU, doubt_between, doubt_form, doubt_place, doubt_scalar
from layout_advise.decide.verdict import IN_SITU_TOLERANCE, Mode, VerdictContext, choose_mode, confirm, decide, undecided
from layout_advise.errors import LayoutAdviseError
from layout_advise.measure.entrants import Bench, Contest, Entrant, built_again, has_vectors
from layout_advise.measure.measured import Measured
from layout_advise.mockup.timing.branch_training import as_in_program, unknown_part
from layout_advise.mockup.timing.measure import Timed
from layout_advise.mockup.timing.names import IDENTITY, IDENTITY_BLOCKS, IDENTITY_LANES, ORIGINAL, elsewhere
from layout_advise.mockup.timing.ratios import identity_of, identity_ratio, noise_floor, places_of, summarise
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.quantities import nanoseconds

ABLATION_RESTORES = 3
LOOK_RESTORES = 2


@dataclass(frozen=True, slots=True)
class Decision:
    """Both measurements and what follows from them."""

    first: Timings
    again: Timings | None
    mode: Mode | None
    verdict: Verdict
    winner: str | None
    snapshot: Literal["criu", "fork"]
    ablation: Timings | None = None
    """The best candidate and the unchanged layout, with and without vector instructions; None where there are none."""
    ablated: str | None = None
    """Which candidate that is."""
    in_situ_ns: float | None = None
    """A call in the running program, timed again where the first times did not agree with the snapshot."""
    peers: tuple[Measured, ...] = ()
    """Other layouts that would do as well as the winner: not shown to be slower."""
    kinds: tuple[KindTimes, ...] = ()
    """Where calls differ: of each kind that was measured, the one of the fields above first."""


@dataclass(frozen=True, slots=True)
class KindTimes:
    """The calls of one kind, with ``share`` of the hotspot's time, as they were measured. Layouts of memory that these calls
    do not touch are ``unaffected`` (recipe names). ``in_situ_ns`` is that of one call."""

    text: str
    share: float
    first: Timings
    mode: Mode | None
    again: Timings | None = None
    unaffected: frozenset[str] = frozenset()
    in_situ_ns: float | None = None

    def ratios(self, name: str, again: bool) -> tuple[Ratio | None, Ratio | None]:
        """Speedup and over-identity of one variant."""
        if name in self.unaffected:
            return Ratio(1.0, 1.0, 1.0, 0), Ratio(1.0, 1.0, 1.0, 0)
        timings = self.again if again and self.again is not None else self.first
        return pick(timings, name, self.mode or "steady")


def pick(timings: Timings, name: str, mode: Mode) -> tuple[Ratio | None, Ratio | None]:
    """Speedup and over-identity of one variant in the mode that counts."""
    ratios = summarise(timings, name)
    if ratios is None:
        return None, None
    if mode == "steady":
        return ratios.steady, ratios.steady_over_identity
    return ratios.cold, ratios.cold_over_identity


def measured(entrant: Entrant, timings: Timings, mode: Mode, net_ns: float | None) -> Measured:
    """What the verdict needs of one candidate. ``net_ns`` is the cost of converting around a call, for temporary layouts;
    where calls were timed with the conversion around them, these count."""
    speedup, over = pick(timings, entrant.id, mode)
    net = timings.net(entrant.id, mode) if net_ns is not None else None
    original = timings.nanoseconds(ORIGINAL, mode)
    if net is None and net_ns is not None and speedup is not None and original:
        share = net_ns / original
        median, lo, hi = (1 / (1 / r + share) for r in (speedup.median, speedup.lo, speedup.hi))
        net = Ratio(median, lo, hi, speedup.restores)
    form = identity_of(timings, entrant.id)
    return Measured(
        entrant.id,
        entrant.evidence,
        speedup,
        over,
        net,
        entrant.title,
        blocked=entrant.blocked,
        places=len(places_of(timings, entrant.id)),
        form=form if form != IDENTITY else "",
        words=entrant.words,
    )


def decide_and_confirm(contest: Contest, bench: Bench, in_situ_ns: float | None, context: VerdictContext) -> Decision:
    """Measure, decide, and measure the winner again in new restores, where only those rounds count.

    What the layout and the vector instructions have done each by themselves is measured along with the winner, or, where
    there is none, for the fastest candidate.
    """
    first, mode, in_situ_ns, bench = first_look(contest, bench, in_situ_ns)
    if mode is None and not bench.branches and lies_between(first, in_situ_ns):
        first.lesser = first.between = True
        mode = "steady"
    decision = _decided(contest, bench, context, first, mode, in_situ_ns)
    if in_situ_ns is None and mode is None and decision.verdict.reason == NOT_IN_SITU:
        text = "the call could not be timed in the running program, so whether the measured ratios hold there is not known."
        decision = replace(decision, verdict=undecided(NOT_IN_SITU, text))
    return replace(decision, in_situ_ns=in_situ_ns)


def first_look(contest: Contest, bench: Bench, in_situ_ns: float | None) -> tuple[Timings, Mode | None, float | None, Bench]:
    """Everything timed once, which of steady and cold counts, the time in the running program, and how all further ones are
    measured.

    Candidates are timed with their code at several places where times hang on these and the original takes as long in the
    snapshot as in the program: else several calls in a row are going to be timed."""
    places = False
    if contest.places is not None:
        look = bench.with_unknown(1.0) if bench.forgets else bench
        alone = look.measure((), "timing the original", LOOK_RESTORES)
        alone = alone.origin or alone
        unknown = unknown_part(alone, in_situ_ns, IN_SITU_TOLERANCE) or 0.0
        bench, alone = bench.with_unknown(unknown), as_in_program(alone, unknown)
        places = runs_as_in_program(alone, bench.between_ns, in_situ_ns)
    first = bench.measure(contest.timed(places=places), "measuring")
    first.lesser = bench.lesser
    times = first.nanoseconds(ORIGINAL), first.nanoseconds(ORIGINAL, "cold")
    noise = noise_floor(first)[1]
    mode = choose_mode(in_situ_ns, *times, bench.between_ns, noise)
    if mode is None and in_situ_ns is not None:
        # a phase in which others disturb the machine may have covered all of the program's processes: look after it
        in_situ_ns = bench.look_again(first.best_canary.core) or in_situ_ns
        mode = choose_mode(in_situ_ns, *times, bench.between_ns, noise)
    return first, mode, in_situ_ns, bench


def runs_as_in_program(look: Timings, between_ns: float | None, in_situ_ns: float | None) -> bool:
    """Whether the original alone, timed in a few processes, agrees with the running program."""
    times = look.nanoseconds(ORIGINAL), look.nanoseconds(ORIGINAL, "cold")
    return choose_mode(in_situ_ns, *times, between_ns, noise_floor(look)[1]) is not None


def lies_between(first: Timings, in_situ_ns: float | None) -> bool:
    """Whether a call in the running program takes longer than with warm caches and less than with flushed ones."""
    steady, cold = first.nanoseconds(ORIGINAL), first.nanoseconds(ORIGINAL, "cold")
    return bool(steady and cold and in_situ_ns and steady < in_situ_ns < cold)


def _unlike(first: Timings, in_situ_ns: float | None) -> str:
    """What the original takes in the snapshot and in the running program."""
    took = [
        f"{nanoseconds(ns)} with {what} caches"
        for what, ns in (("warm", first.nanoseconds(ORIGINAL)), ("flushed", first.nanoseconds(ORIGINAL, "cold")))
        if ns
    ]
    return f"a call of the original takes {' and '.join(took)} in the snapshot, but {nanoseconds(in_situ_ns)} in the program"


def _decided(
    contest: Contest, bench: Bench, context: VerdictContext, first: Timings, mode: Mode | None, in_situ_ns: float | None
) -> Decision:
    if not context.rules_apply:
        return Decision(first, None, mode, decide((), context), None, context.snapshot)
    if mode is None:
        text = f"{_unlike(first, in_situ_ns)}, so the measured ratios may not hold there. Another call (--call N) may do."
        return Decision(first, None, None, undecided(NOT_IN_SITU, text), None, context.snapshot)
    lanes = lanes_nearer(first, mode)
    first = first.exchanged(IDENTITY, IDENTITY_LANES) if lanes else first
    now = context_of(context, first, mode)
    results = [measured(e, first, mode, contest.conversion(first, e.id)) for e in contest.entrants]

    def ahead(faster: str, slower: str) -> bool:
        lead = first.ratio(slower, faster, mode)
        return lead is not None and lead.lo > 1.0

    verdict = doubt_scalar(decide([*results, *contest.unmeasured], now, ahead), first, results, mode, lanes)
    verdict = doubt_between(verdict, first, [r.id for r in results], now.bound)
    if verdict.action != "change" or verdict.candidate is None:
        decision = Decision(first, None, mode, verdict, None, context.snapshot)
        return _nothing_won(contest, bench, decision, results, lanes, now)
    decision = _confirmed(contest, bench, context, first, mode, verdict, results, lanes)
    if decision.verdict.reason == LOOP_FORM:  # of blocks, that is; what needs none may gain by itself
        rest = decide([*(r for r in results if not r.blocked), *contest.unmeasured], now)
        if rest.action == "change":
            return _confirmed(contest, bench, context, first, mode, rest, results, lanes)
    return decision


def _confirmed(
    contest: Contest,
    bench: Bench,
    context: VerdictContext,
    first: Timings,
    mode: Mode,
    verdict: Verdict,
    results: Sequence[Measured],
    lanes: bool,
) -> Decision:
    """What remains of a ``change`` when its candidate is built anew and measured again."""
    winner = next(e for e in contest.entrants if e.id == verdict.candidate)
    built = built_again(contest, winner.id)
    if built is None:
        raise LayoutAdviseError("the winner could not be built again", "its compiler refused what it took before")
    second = measured_again(bench, built, lanes, first, mode)
    again = measured(winner, second, mode, contest.conversion(first, winner.id))
    now = context_of(context, second, mode)
    confirmed = doubt_form(confirm(verdict, again, now), again, now.bound, second, mode)
    ablation = second if has_vectors(built) else None
    return Decision(
        first,
        second,
        mode,
        confirmed,
        winner.id,
        context.snapshot,
        ablation,
        winner.id if ablation else None,
        peers=as_fast(results, winner.id, first, now.bound, mode) if confirmed.action == "change" else (),
    )


def as_fast(results: Sequence[Measured], winner: str, first: Timings, bound: float, mode: Mode) -> tuple[Measured, ...]:
    """Of the other layouts that gain, those that are not shown to gain less than the winner; of each its fastest variant,
    the fastest layout first."""
    layout = winner.partition("-")[0]
    found: dict[str, Measured] = {}
    for result in sorted(results, key=lambda r: -r.middle()):
        lead = first.ratio(result.id, winner, mode)
        if result.layout != layout and result.floor() > bound and lead is not None and lead.lo <= 1.0:
            found.setdefault(result.layout, result)
    return tuple(found.values())


def _nothing_won(
    contest: Contest, bench: Bench, decision: Decision, results: Sequence[Measured], lanes: bool, now: VerdictContext
) -> Decision:
    """What layout and vector instructions do each by themselves, measured of the best candidate; and whether that loses only
    where its code happens to lie."""
    mode = decision.mode or "steady"
    best = max((r for r in results if r.speedup), key=lambda r: r.speedup.median if r.speedup else 0.0, default=None)
    extra = built_again(contest, best.id, places=decision.verdict.action == "keep") if best is not None else None
    if best is None or extra is None:
        return decision
    extra = [v for v in extra if v.name != IDENTITY_BLOCKS]
    vectors = has_vectors(extra)
    if not vectors and not any(v.name in elsewhere(best.id) for v in extra):
        return decision
    timed = bench.measure(extra, "measuring the best layout again", ABLATION_RESTORES, drop=False)
    timed = timed.exchanged(IDENTITY, IDENTITY_LANES) if lanes else timed
    verdict = doubt_place(decision.verdict, timed, best.id, now.bound, mode, branches=bench.branches)
    decision = replace(decision, verdict=verdict)
    return replace(decision, ablation=timed, ablated=best.id) if vectors else decision


def measured_again(bench: Bench, built: Sequence[Timed], lanes: bool, first: Timings, mode: Mode) -> Timings:
    """The winner and what it is compared with, built anew, in new restores; with the conversion around each call too."""
    plan = bench.again if mode == "cold" or first.lesser else replace(bench.again, cold_calls=0)
    second = replace(bench, plan=plan).measure(built, "measuring the winner again", drop=False)
    times = {(name, mode): first.nanoseconds(name, mode) for name in (ORIGINAL, IDENTITY)}
    second.lesser, second.between = first.lesser, first.between
    second.known = {name: ns for name, ns in times.items() if ns}
    return second.exchanged(IDENTITY, IDENTITY_LANES) if lanes else second


def lanes_nearer(timings: Timings, mode: Mode) -> bool:
    """Whether the identity that was not rerolled is nearer to the original."""
    ratios = [timings.ratio(name, ORIGINAL, mode) for name in (IDENTITY, IDENTITY_LANES)]
    rolled, lanes = (abs(math.log(r.median)) if r is not None else math.inf for r in ratios)
    return lanes < rolled


def context_of(context: VerdictContext, timings: Timings, mode: Mode) -> VerdictContext:
    return VerdictContext(
        context.snapshot,
        context.identity_evidence,
        identity_ratio(timings, mode),
        noise_floor(timings, mode)[1],
        context.rules_apply,
        context.allow_reassociation,
    )
