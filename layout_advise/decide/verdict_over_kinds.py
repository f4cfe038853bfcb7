"""The verdict where calls differ: every kind of calls is measured, and one layout has to serve them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.decide.doubts import doubt_scalar
from layout_advise.decide.mixture import Portion, harms, mixed, sentence, with_kinds
from layout_advise.decide.verdict import VerdictContext, confirm, decide, identity_problem, undecided
from layout_advise.errors import LayoutAdviseError
from layout_advise.measure.entrants import Bench, Contest, built_again, has_vectors
from layout_advise.measure.measured import Measured
from layout_advise.measure.timing import (
    Decision,
    KindTimes,
    context_of,
    first_look,
    lanes_nearer,
    measured,
    measured_again,
)
from layout_advise.mockup.timing.names import IDENTITY, IDENTITY_LANES
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.reports.model.hotspot import Verdict

SAME = Ratio(1.0, 1.0, 1.0, 0)


@dataclass(frozen=True, slots=True)
class Race:
    """The candidates at the calls of one kind. At these some are ``unaffected``, by recipe name: they re-lay memory that the
    calls do not touch; none of the ``contest`` (None) where all are."""

    text: str
    share: float
    contest: Contest | None
    bench: Bench | None
    in_situ_ns: float | None
    unaffected: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Run:
    """A race after its first measurement."""

    race: Race
    times: KindTimes
    lanes: bool
    context: VerdictContext


def decide_mixed(races: Sequence[Race], left_out: Sequence[Portion], context: VerdictContext) -> Decision:
    """Measure at the calls of every kind, decide on what all kinds gain together, and measure the winner again at all of
    them. The first race is that of the call that the report is about. ``left_out`` are kinds that are not measured: they
    count as unchanged."""
    runs = [_first(race, context) for race in races]
    main = runs[0]
    decision = Decision(
        main.times.first, None, main.times.mode, undecided("", ""), None, context.snapshot,
        in_situ_ns=main.times.in_situ_ns, kinds=tuple(r.times for r in runs),
    )  # fmt: skip
    problem = _problem(runs)
    if problem is not None:
        return replace(decision, verdict=problem)
    widest = replace(main.context, noise_hi=max(r.context.noise_hi for r in runs))
    assert main.race.contest is not None
    kinds = {e.id: [_measured(run, e.id) for run in runs] for e in main.race.contest.entrants}
    verdict = first_verdict(kinds, [r.race.share for r in runs], main.race.contest.unmeasured, widest, context)
    for number, run in enumerate(runs):
        if run.race.contest is not None and run.times.mode is not None:
            verdict = doubt_scalar(verdict, run.times.first, [each[number] for each in kinds.values()], run.times.mode)
    if verdict.action != "change" or verdict.candidate is None:
        best = max(kinds, key=lambda name: _middle(_mixed(runs, kinds[name])), default=None)
        if best is None:
            return replace(decision, verdict=verdict)
        whole = _mixed(runs, kinds[best])
        said = sentence(portions(runs, kinds[best], left_out), whole.counted)
        text = f"Calls differ; with {whole.known}, the best layout tried: {said}."
        return replace(decision, verdict=with_kinds(verdict, text))
    return _confirmed(decision, runs, verdict, left_out)


def _middle(one: Measured) -> float:
    return one.middle() if one.speedup is not None else 0.0


def _mixed(runs: Sequence[_Run], kinds: Sequence[Measured]) -> Measured:
    return mixed([r.race.share for r in runs], kinds)


def first_verdict(
    kinds: Mapping[str, Sequence[Measured]],
    shares: Sequence[float],
    unmeasured: Sequence[Measured],
    widest: VerdictContext,
    context: VerdictContext,
) -> Verdict:
    """The verdict on what the candidates gain over all kinds; one that makes the calls of a kind slower is not advised."""
    whole = {name: mixed(shares, each) for name, each in kinds.items()}
    verdict = decide([*whole.values(), *unmeasured], widest if context.rules_apply else context)
    if verdict.action != "change" or verdict.candidate is None or not harms(kinds[verdict.candidate]):
        return verdict
    harmless = [whole[name] for name, each in kinds.items() if not harms(each)]
    second = decide([*harmless, *unmeasured], widest)
    if second.action == "change":
        return second
    text = (
        f"{whole[verdict.candidate].known} makes the hotspot {verdict.gain or 0:.2f} times as fast over all its calls, but "
        "calls of one kind slower, and how many of these there are is the input's doing."
    )
    return undecided("kinds-disagree", text)


def portions(runs: Sequence[_Run], kinds: Sequence[Measured], left_out: Sequence[Portion]) -> list[Portion]:
    """What a candidate gains at each kind, for the sentence about it."""
    return [*(Portion(r.race.text, r.race.share, k.counted) for r, k in zip(runs, kinds, strict=True)), *left_out]


def _first(race: Race, context: VerdictContext) -> _Run:
    if race.contest is None or race.bench is None:
        empty = KindTimes(race.text, race.share, Timings(), "steady", None, race.unaffected, race.in_situ_ns)
        return _Run(race, empty, False, replace(context, identity=SAME))
    first, mode, in_situ, bench = first_look(race.contest, race.bench, race.in_situ_ns)
    race = replace(race, bench=bench)
    lanes = mode is not None and lanes_nearer(first, mode)
    first = first.exchanged(IDENTITY, IDENTITY_LANES) if lanes else first
    times = KindTimes(race.text, race.share, first, mode, None, race.unaffected, in_situ)
    return _Run(race, times, lanes, context_of(context, first, mode) if mode is not None else context)


def _problem(runs: Sequence[_Run]) -> Verdict | None:
    """Why nothing can be said of some kind, and so of all."""
    for run in runs:
        if run.times.mode is None:
            text = (
                f"at {run.race.text} the original takes a different time in the snapshot than in the running program, warm "
                "and cold alike, so the measured ratios may not hold there."
            )
            return undecided("not-in-situ", text)
        found = identity_problem(run.context)
        if found is not None:
            return undecided(found.reason, f"at {run.race.text} {found.text.removeprefix('Undecided: ')}")
    return None


def _measured(run: _Run, name: str, again: Timings | None = None) -> Measured:
    """What a candidate gains at the calls of one kind."""
    if name in run.race.unaffected:
        return Measured(name, "verified", SAME, SAME)
    contest = run.race.contest
    entrant = next((e for e in contest.entrants if e.id == name), None) if contest is not None else None
    if contest is None or entrant is None:
        return Measured(name, "rejected", None, None, reason=f"it could not be measured at {run.race.text}")
    first = run.times.first
    return measured(entrant, again or first, run.times.mode or "steady", contest.conversion(first, name))


def _confirmed(decision: Decision, runs: Sequence[_Run], verdict: Verdict, left_out: Sequence[Portion]) -> Decision:
    """The winner measured again at the calls of all kinds."""
    winner = verdict.candidate or ""
    done, kinds, vectors = [], [], False
    for number, run in enumerate(runs):
        contest, bench = run.race.contest, run.race.bench
        if contest is None or bench is None or winner in run.race.unaffected:
            done.append(run)
            kinds.append(_measured(run, winner))
            continue
        built = built_again(contest, winner)
        if built is None:
            raise LayoutAdviseError("the winner could not be built again", "its compiler refused what it took before")
        again = measured_again(bench, built, run.lanes, run.times.first, run.times.mode or "steady")
        vectors = vectors or (number == 0 and has_vectors(built))
        kinds.append(_measured(run, winner, again))
        mode = run.times.mode or "steady"
        done.append(replace(run, times=replace(run.times, again=again), context=context_of(run.context, again, mode)))
    whole = _mixed(done, kinds)
    final = confirm(verdict, whole, replace(done[0].context, noise_hi=max(r.context.noise_hi for r in done)))
    if final.action == "change" and harms(kinds):
        text = f"{whole.known} makes calls of one kind slower when it is measured again."
        final = undecided("kinds-disagree", text)
    said = f"Calls differ: {sentence(portions(done, kinds, left_out), whole.counted)}."
    main = done[0].times
    return replace(
        decision,
        again=main.again,
        verdict=with_kinds(final, said),
        winner=winner,
        ablation=main.again if vectors else None,
        ablated=winner if vectors else None,
        kinds=tuple(r.times for r in done),
    )
