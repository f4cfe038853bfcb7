"""The verdict where calls differ: every kind of calls is measured, and one layout has to serve them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from layout_advise.decide.budget import Circumstances, nearest_mode, with_doubts
from layout_advise.decide.decision import Decision, KindTimes, measured, unrolled_nearer
from layout_advise.decide.live import Settled, lived, settled
from layout_advise.decide.mixture import Portion, harms, mixed, sentence, with_kinds
from layout_advise.decide.requests import (
    Asking,
    MeasureAgain,
    MeasureMore,
    measure_again,
    measure_more,
    time_in_program,
)
from layout_advise.decide.verdict import (
    VerdictContext,
    confirm,
    decide,
    identity_problem,
    noise_decides,
    reaching,
    undecided,
)
from layout_advise.errors import LayoutAdviseError
from layout_advise.measure.first_times import FirstTimes
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import mode_of
from layout_advise.measure.setup import Contest
from layout_advise.measure.stage import TimedAgain
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, Variant
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict

SAME = Ratio(1.0, 1.0, 1.0, 0)


@dataclass(frozen=True, slots=True)
class KindRace:
    """The candidates at the calls of one kind. At these some are ``unaffected``: they re-lay memory that the calls do not
    touch; nothing was timed (``times`` None) where all are."""

    text: str
    share: float
    times: FirstTimes | None
    in_situ_ns: float | None
    unaffected: frozenset[Variant] = frozenset()


@dataclass(frozen=True, slots=True)
class _Run:
    """A race whose mode is known. ``measured`` is what its times say of each candidate."""

    race: KindRace
    times: KindTimes
    around: Circumstances
    measured: Mapping[Variant, Measured]


def decide_over_kinds(races: Sequence[KindRace], left_out: Sequence[Portion], context: VerdictContext) -> Asking[Decision]:
    """Decides on what all kinds gain together, and has the winner measured again at the calls of all of them. The first race
    is that of the call that the report is about. ``left_out`` are kinds that are not measured: they
    count as unchanged."""
    runs = []
    for number, race in enumerate(races):
        runs.append((yield from _run(number, race)))
    problem = identity_problem(context)
    if problem is not None:
        return _open(runs, problem, context)
    runs = yield from _until_noise_decides(runs, context)
    kinds, unmeasured, shares = _at_each(runs), _contest(runs).unmeasured, [r.race.share for r in runs]
    verdict = first_verdict(kinds, shares, unmeasured, context)
    decision = replace(_open(runs, verdict, context), results=tuple(_mixed(runs, each) for each in kinds.values()))
    found = yield from settled(
        Settled(decision.results, {}, verdict),
        context,
        lambda _, trials: first_verdict(kinds, shares, unmeasured, context, trials),
    )
    decision, verdict = replace(decision, results=found.results, trials=found.trials), found.verdict
    if verdict.action != "change":
        best = max(kinds, key=lambda name: _middle(_mixed(runs, kinds[name])), default=None)
        if best is None:
            return replace(decision, verdict=verdict)
        whole = lived(_mixed(runs, kinds[best]), decision.trials.get(best))
        said = sentence(portions(runs, kinds[best], left_out), whole.counted)
        text = f"Calls differ; with {whole.known}, the best layout tried: {said}."
        return replace(decision, verdict=with_kinds(verdict, text))
    winner = next(variant for variant in kinds if str(variant) == verdict.candidate)
    return (yield from _confirmed(decision, runs, verdict, winner, left_out, context))


def _contest(runs: Sequence[_Run]) -> Contest:
    assert runs[0].race.times is not None
    return runs[0].race.times.contest


def _at_each(runs: Sequence[_Run]) -> dict[Variant, list[Measured]]:
    """The measurements of each candidate at the calls of each kind."""
    return {e.variant: [_measured(run, e.variant) for run in runs] for e in _contest(runs).entrants}


def _open(runs: Sequence[_Run], verdict: Verdict, context: VerdictContext) -> Decision:
    """The decision on the first times of all kinds."""
    main = runs[0].times
    return Decision(
        main.first, None, main.mode, verdict, None, context.snapshot,
        in_situ_ns=main.in_situ_ns, alike=all(r.around.alike for r in runs), kinds=tuple(r.times for r in runs),
    )  # fmt: skip


def _until_noise_decides(runs: Sequence[_Run], context: VerdictContext) -> Asking[list[_Run]]:
    """``runs``, with the candidates that may gain timed in further processes at the calls of all kinds, as long as it is
    noise that leaves the answer open and there is time."""
    while True:
        kinds = _at_each(runs)
        results = [_mixed(runs, each) for each in kinds.values()]
        verdict = first_verdict(kinds, [r.race.share for r in runs], _contest(runs).unmeasured, context)
        if verdict.reason != Reason.WITHIN_NOISE and not noise_decides(results, verdict, context):
            return list(runs)
        names, more = frozenset(r.name for r in reaching(results, context)), []
        for number, run in enumerate(runs):
            more.append((yield from _more(number, run, names)))
        if all(run is before for run, before in zip(more, runs, strict=True)):
            return more
        runs = more


def _more(number: int, run: _Run, names: frozenset[Variant]) -> Asking[_Run]:
    """The calls of one kind, with further times of these candidates; as they were where there is no time left, or none of
    the candidates concerns them."""
    if run.race.times is None or names <= run.race.unaffected:
        return run
    first = run.times.first
    first = first.exchanged(IDENTITY, IDENTITY_UNROLLED) if run.around.unrolled else first
    more = yield from measure_more(MeasureMore(number, first.origin or first, names - run.race.unaffected))
    if more is None:
        return run
    return _seen(run.race, replace(more, lesser=first.lesser, between=first.between), run.around)


def _middle(one: Measured) -> float:
    return one.middle() if one.speedup is not None else 0.0


def _mixed(runs: Sequence[_Run], kinds: Sequence[Measured]) -> Measured:
    return mixed([r.race.share for r in runs], kinds)


def first_verdict(
    kinds: Mapping[Variant, Sequence[Measured]],
    shares: Sequence[float],
    unmeasured: Sequence[Measured],
    context: VerdictContext,
    trials: Mapping[Variant, LiveTrial] = MappingProxyType({}),
) -> Verdict:
    """The verdict on what the candidates gain over all kinds, as ``trials`` in the running program have it; one that makes
    the calls of a kind slower is not advised."""
    whole = {name: lived(mixed(shares, each), trials.get(name)) for name, each in kinds.items()}
    verdict = decide([*whole.values(), *unmeasured], context)
    winner = next((name for name in kinds if str(name) == verdict.candidate), None)
    if verdict.action != "change" or winner is None or not harms(kinds[winner]):
        return verdict
    harmless = [whole[name] for name, each in kinds.items() if not harms(each)]
    second = decide([*harmless, *unmeasured], context)
    if second.action == "change":
        return second
    text = (
        f"{whole[winner].known} makes the hotspot {verdict.gain or 0:.2f} times as fast over all its calls, but "
        "calls of one kind slower, and how many of these there are is the input's doing."
    )
    return undecided(Reason.KINDS_DISAGREE, text)


def portions(runs: Sequence[_Run], kinds: Sequence[Measured], left_out: Sequence[Portion]) -> list[Portion]:
    """The gain of a candidate at each kind, for the sentence about it."""
    return [*(Portion(r.race.text, r.race.share, k.counted) for r, k in zip(runs, kinds, strict=True)), *left_out]


def _run(number: int, race: KindRace) -> Asking[_Run]:
    if race.times is None:
        empty = KindTimes(race.text, race.share, Timings(), "steady", None, race.unaffected, race.in_situ_ns)
        return _Run(race, empty, Circumstances(race.in_situ_ns, "steady", alike=True), {})
    bench = race.times.bench
    first, between, in_situ_ns = race.times.timings, bench.between_ns, race.in_situ_ns
    mode = mode_of(first, between, in_situ_ns)
    if mode is None and in_situ_ns is not None:
        in_situ_ns = (yield from time_in_program(number, first.best_canary.core)) or in_situ_ns
        mode = mode_of(first, between, in_situ_ns)
    counts = mode or nearest_mode(first, in_situ_ns)
    around = Circumstances(in_situ_ns, counts, mode is not None, bench.branches, counting=bench.counting)
    return _seen(race, first, around)


def _seen(race: KindRace, first: Timings, around: Circumstances) -> _Run:
    """The calls of one kind as their times have them, with the identity that is nearer to the original as the identity."""
    assert race.times is not None
    mode, contest = around.mode, race.times.contest
    unrolled = unrolled_nearer(first, mode)
    first = first.exchanged(IDENTITY, IDENTITY_UNROLLED) if unrolled else first
    around = replace(around, unrolled=unrolled)
    times = KindTimes(race.text, race.share, first, mode, None, race.unaffected, around.in_situ_ns)
    found = [measured(e, first, mode, contest.conversion(first, e.variant)) for e in contest.entrants]
    return _Run(race, times, around, {m.name: m for m in with_doubts(found, first, around)})


def _measured(run: _Run, name: Variant, again: Timings | None = None) -> Measured:
    """The gain of a candidate at the calls of one kind."""
    if name in run.race.unaffected:
        return Measured(name, "verified", SAME, SAME)
    contest = run.race.times.contest if run.race.times is not None else None
    entrant = contest.entrant(name) if contest is not None else None
    if contest is None or entrant is None:
        return Measured(name, "rejected", None, None, reason=f"it could not be measured at {run.race.text}")
    if again is None:
        return run.measured[name]
    one = measured(entrant, again, run.around.mode, contest.conversion(run.times.first, name))
    return with_doubts([one], again, run.around)[0]


def _again(number: int, run: _Run, winner: Variant) -> Asking[TimedAgain | None]:
    """The winner measured again at the calls of one kind; None where it does not concern them."""
    if run.race.times is None or winner in run.race.unaffected:
        return None
    request = MeasureAgain(number, winner, run.times.first, run.around.mode, run.around.unrolled)
    again = yield from measure_again(request)
    if again is None:
        raise LayoutAdviseError("the winner could not be built again", "its compiler refused what it took before")
    return again


def _confirmed(
    decision: Decision,
    runs: Sequence[_Run],
    verdict: Verdict,
    winner: Variant,
    left_out: Sequence[Portion],
    context: VerdictContext,
) -> Asking[Decision]:
    """The winner measured again at the calls of all kinds."""
    done, kinds, vectors = [], [], False
    for number, run in enumerate(runs):
        again = yield from _again(number, run, winner)
        kinds.append(_measured(run, winner, again.timings if again is not None else None))
        if again is not None:
            vectors = vectors or (number == 0 and again.vectors)
            run = replace(run, times=replace(run.times, again=again.timings))
        done.append(run)
    whole = lived(_mixed(done, kinds), decision.trials.get(winner))
    final = confirm(verdict, whole, context)
    if final.action == "change" and harms(kinds):
        text = f"{whole.known} makes calls of one kind slower when it is measured again."
        final = undecided(Reason.KINDS_DISAGREE, text)
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
