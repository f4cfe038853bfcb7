"""Trials in the running program: which candidates get one, and what it makes of their doubts (``docs/decisions/0069``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.decide.requests import Asking, RunLive, run_live
from layout_advise.decide.verdict import VerdictContext, confirm, decide, reaching
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.measured import Doubt, Measured
from layout_advise.measure.policy import MEASURE
from layout_advise.measure.setup import Entrant
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import Variant
from layout_advise.reports.model.hotspot import Verdict


@dataclass(frozen=True, slots=True)
class LiveOnly:
    """A decision by the running program alone: where calls in the snapshot are not what they are there."""

    verdict: Verdict
    results: tuple[Measured, ...]
    trials: Mapping[Variant, LiveTrial]


SETTLED = ("caches", "program", "apart", "put-back")
"""Doubts about the snapshot that the running program settles: it has its own caches, and writes between its own calls."""


def unlike_program(results: Sequence[Measured]) -> bool:
    """Tells whether the snapshot leaves open what the running program takes."""
    return any(d.name in SETTLED for r in results for d in r.doubts)


def but_for_program(one: Measured) -> Measured:
    """``one`` without the doubts that the running program settles."""
    return replace(one, doubts=tuple(d for d in one.doubts if d.name not in SETTLED))


def to_try(results: Sequence[Measured], verdict: Verdict, context: VerdictContext) -> list[Measured]:
    """The candidates that are tried in the running program: what is going to be advised, else what may gain."""
    asked = context.live == "always"
    if context.live == "never" or not (asked or unlike_program(results)):
        return []
    open_to = sorted(reaching(results, context), key=lambda r: (-r.middle(), r.id))
    best = [r for r in results if r.id in (verdict.candidate, verdict.about if asked else None)]
    return best if verdict.action == "change" or (asked and best) else open_to


def lived(one: Measured, trial: LiveTrial | None) -> Measured:
    """``one`` as the running program has it: its gain over the original is that measured there; what the snapshot tells of
    it in relation to that gain keeps its relation."""
    if trial is None or trial.ratio is None or one.speedup is None or one.net is not None:
        return one
    own = trial.ratio
    scale = own.median / one.speedup.median
    over = one.over_identity
    if over is not None:
        part = over.median / one.speedup.median
        over = Ratio(own.median * part, own.lo * part, own.hi * part, own.restores)
    doubts = tuple(
        Doubt(d.name, d.lo * scale, d.hi * scale, d.how, d.middle * scale if d.middle is not None else None)
        for d in one.doubts
        if d.name not in SETTLED
    )
    return replace(one, speedup=own, over_identity=over, doubts=doubts, live=how_live(trial), code=None)


def how_live(trial: LiveTrial) -> str:
    """The words for it in the error budget."""
    ratio = trial.ratio
    runs = 2 * ratio.restores if ratio is not None else 0
    return f"{trial.timed:,} calls of the running program as the original and as the mock-up, in {runs} runs"


@dataclass(frozen=True, slots=True)
class Settled:
    """Candidates with what the running program tells of some, and the verdict on them."""

    results: tuple[Measured, ...]
    trials: Mapping[Variant, LiveTrial]
    verdict: Verdict


def settled(
    found: Settled, context: VerdictContext, verdict_on: Callable[[Sequence[Measured], Mapping[Variant, LiveTrial]], Verdict]
) -> Asking[Settled]:
    """``found`` after candidates were tried in the running program, one after the other, as long as one that was not may be
    the answer, and the first of them came to something."""
    while len(found.trials) < MEASURE.live_layouts:
        left = [r for r in to_try(found.results, found.verdict, context) if r.name not in found.trials]
        if not left or any(trial.ratio is None for trial in found.trials.values()):
            break  # what stopped one would stop the others
        trials = {**found.trials, left[0].name: (yield from run_live(RunLive(0, left[0].name)))}
        results = tuple(lived(r, trials[r.name]) if r.name == left[0].name else r for r in found.results)
        found = Settled(results, trials, verdict_on(results, trials))
    return found


def decide_live(
    entrants: Sequence[Entrant], identity: Variant, unmeasured: Sequence[Measured], context: VerdictContext, why: Verdict
) -> Asking[LiveOnly]:
    """The decision where only the running program tells times: of the first layout variants of ``entrants``, held against
    the unchanged layout's mock-up there. What is going to be advised is tried once more, and only that counts. ``why`` is
    the verdict where there is no trial."""
    form = yield from run_live(RunLive(0, identity))
    trials: dict[Variant, LiveTrial] = {}
    first = {e.variant.layout: e for e in reversed(entrants)}
    chosen = [e for e in entrants if first[e.variant.layout] is e][: MEASURE.live_layouts]
    for entrant in chosen if form.ratio is not None else ():
        trials[entrant.variant] = yield from run_live(RunLive(0, entrant.variant))
    if form.ratio is None or not any(t.ratio for t in trials.values()):
        return LiveOnly(why, (), trials or {identity: form})
    results = tuple(_live_alone(e, trials.get(e.variant), form.ratio) for e in entrants)
    verdict = decide([*results, *unmeasured], context)
    winner = next((e for e in entrants if str(e.variant) == verdict.candidate), None)
    if winner is None:
        return LiveOnly(verdict, results, trials)
    trials[winner.variant] = yield from run_live(RunLive(0, winner.variant))
    again = _live_alone(winner, trials[winner.variant], form.ratio)
    results = tuple(again if r.name == winner.variant else r for r in results)
    return LiveOnly(confirm(verdict, again, context), results, trials)


def _live_alone(entrant: Entrant, trial: LiveTrial | None, form: Ratio) -> Measured:
    """A candidate of which only the running program tells times; ``form`` is what the unchanged mock-up gains there."""
    ratio = trial.ratio if trial is not None else None
    if trial is None or ratio is None:
        why = trial.reason if trial is not None else "it was not tried in the running program"
        return Measured(entrant.variant, entrant.evidence, None, None, title=entrant.title, reason=why, words=entrant.words)
    over = Ratio(ratio.median / form.median, ratio.lo / form.hi, ratio.hi / form.lo, min(ratio.restores, form.restores))
    return Measured(
        entrant.variant, entrant.evidence, ratio, over, title=entrant.title, blocked=entrant.blocked, words=entrant.words,
        live=how_live(trial),
    )  # fmt: skip
