"""The decision where all calls are of one kind: measure, decide, measure more, and measure the winner again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from layout_advise.decide.budget import Circumstances, nearest_mode, place_doubts, read_again, with_doubts
from layout_advise.decide.decision import Decision, as_fast, measured, shown_faster, unrolled_nearer
from layout_advise.decide.live import Settled, lived, settled
from layout_advise.decide.machine_code import may_tell, with_code, worth_a_look
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.requests import (
    Asking,
    MeasureAgain,
    MeasureMore,
    TimeCode,
    measure_again,
    measure_more,
    time_code,
    time_in_program,
)
from layout_advise.decide.verdict import VerdictContext, confirm, decide, noise_decides, reaching
from layout_advise.errors import LayoutAdviseError
from layout_advise.measure.first_times import FirstTimes
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import lies_between, mode_of
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_BLOCKS, IDENTITY_UNROLLED, Variant
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict


@dataclass(frozen=True, slots=True)
class _Results:
    """Times, and what they say of each candidate."""

    times: FirstTimes
    around: Circumstances
    results: tuple[Measured, ...]
    trials: Mapping[Variant, LiveTrial] = field(default_factory=dict)
    code: Timings | None = None
    code_of: tuple[str, ...] = ()
    """The layouts by whose machine code ``code`` was timed."""

    @property
    def timings(self) -> Timings:
        return self.times.timings


def decide_single(times: FirstTimes, in_situ_ns: float | None, context: VerdictContext) -> Asking[Decision]:
    """Decides on the first times, and has the winner measured again in new restores, where only those rounds count.

    As long as noise leaves the answer open and there is time, the candidates that matter are timed in further processes.
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
    counts = mode or nearest_mode(first, in_situ_ns)
    around = Circumstances(in_situ_ns, counts, mode is not None, bench.branches, counting=bench.counting)
    now = _results(replace(times, timings=first), around)
    if not context.rules_apply and not times.contest.entrants:
        decision = Decision(now.timings, None, around.mode, decide((), context), None, context.snapshot)
    else:
        decision = yield from _decided(now, context)
    return replace(decision, in_situ_ns=in_situ_ns, alike=around.alike)


def _results(times: FirstTimes, around: Circumstances, code: Timings | None = None) -> _Results:
    """What the times say, with the identity that is nearer to the original as the identity."""
    first, contest = times.timings, times.contest
    unrolled = unrolled_nearer(first, around.mode)
    first = first.exchanged(IDENTITY, IDENTITY_UNROLLED) if unrolled else first
    around = replace(around, unrolled=unrolled)
    found = [measured(e, first, around.mode, contest.conversion(first, e.variant)) for e in contest.entrants]
    results = with_code(with_doubts(found, first, around), code, around)
    return _Results(replace(times, timings=first), around, results, code=code)


def _verdict(now: _Results, context: VerdictContext) -> Verdict:
    def ahead(faster: Measured, slower: Measured) -> bool:
        lead = now.timings.ratio(slower.name, faster.name, now.around.mode)
        return lead is not None and lead.lo > 1.0

    return decide([*now.results, *now.times.contest.unmeasured], context, ahead)


def _decided(now: _Results, context: VerdictContext) -> Asking[Decision]:
    now = yield from _by_code(now, _verdict(now, context), context)
    verdict = _verdict(now, context)
    while verdict.reason == Reason.WITHIN_NOISE or noise_decides(now.results, verdict, context):
        more = yield from _more(now, context)
        if more is None:
            break
        now, verdict = more, _verdict(more, context)
    now, verdict = yield from _settled(now, verdict, context)
    while now.trials and verdict.reason == Reason.WITHIN_NOISE:  # all but noise is settled
        more = yield from _more(now, context)
        if more is None:
            break
        results = tuple(lived(r, now.trials.get(r.name)) for r in more.results)
        now = replace(more, results=results, trials=now.trials)
        verdict = _verdict(now, context)
    if verdict.action != "change":
        decision = Decision(
            now.timings,
            None,
            now.around.mode,
            verdict,
            None,
            context.snapshot,
            results=now.results,
            trials=now.trials,
            code=now.code,
        )
        return (yield from _nothing_won(now, decision, context))
    for _ in range(DECIDE.most_confirmed):
        decision, again = yield from _confirmed(now, context, verdict)
        if decision.verdict.action == "change":
            return (yield from _rivals_confirmed(now, context, decision, again))
        now = _with_second(now, again)
        if again.form == IDENTITY_BLOCKS:  # it is blocks that gain; what needs none may gain by itself
            rest = tuple(r for r in now.results if not r.blocked or r.name == again.name)
            now = replace(now, results=rest)
        now, verdict = yield from _settled(now, _verdict(now, context), context)
        decision = replace(decision, trials=now.trials)
        if verdict.action != "change":
            break
    return replace(decision, verdict=verdict) if verdict.action == "keep" else decision


def _rivals_confirmed(now: _Results, context: VerdictContext, decision: Decision, again: Measured) -> Asking[Decision]:
    """``decision``, or that on another candidate whose first times stay surely above what the winner gained when it was
    measured ``again``: it is measured again, too, and what is advised follows from the second times of both."""
    found = {again.name: decision}
    while len(found) < DECIDE.most_confirmed:
        now = _with_second(now, again)
        verdict = _verdict(now, context)
        rival = next((r for r in now.results if r.id == verdict.candidate), None)
        if verdict.action != "change" or rival is None or rival.name in found or not _surely_above(rival, again):
            break
        other, again = yield from _confirmed(now, context, verdict)
        found[again.name] = other
    now = _with_second(now, again)
    known = replace(now, results=tuple(r for r in now.results if r.name in found))
    wanted = _verdict(known, context).candidate
    chosen = next((one for name, one in found.items() if str(name) == wanted), decision)
    best = chosen if chosen.verdict.action == "change" else decision
    rivals = {name: one.again for name, one in found.items() if one is not best and one.again is not None}
    return replace(best, results=now.results, rivals=rivals)


def _with_second(now: _Results, again: Measured) -> _Results:
    return replace(now, results=tuple(again if r.name == again.name else r for r in now.results))


def _surely_above(one: Measured, other: Measured) -> bool:
    """Tells whether the times of ``one`` leave it no less than the most that those of ``other`` leave that."""
    return one.counted is not None and other.counted is not None and one.counted.lo > other.counted.hi


def _settled(now: _Results, verdict: Verdict, context: VerdictContext) -> Asking[tuple[_Results, Verdict]]:
    """The candidates that may be the answer as the running program has them."""
    found = yield from settled(
        Settled(now.results, now.trials, verdict),
        context,
        lambda results, _: _verdict(replace(now, results=tuple(results)), context),
    )
    return replace(now, results=found.results, trials=found.trials), found.verdict


def _by_code(now: _Results, verdict: Verdict, context: VerdictContext) -> Asking[_Results]:
    """Where the answer is open, and not only for what the running program alone can settle, the original's machine code on
    the layouts that may gain: what a compiler made of a mock-up is no doubt then."""
    layouts = worth_a_look(now.results, context) if verdict.doubt is not None else ()
    code = (yield from time_code(TimeCode(0, layouts, now.timings, look=True))) if layouts else None
    results = with_code(now.results, code, now.around)
    if code is not None and any(may_tell(one) for one in results):
        code = (yield from time_code(TimeCode(0, layouts, now.timings, more=code.origin or code))) or code
        results = with_code(now.results, code, now.around)
    return replace(now, results=results, code=code, code_of=layouts)


def _more(now: _Results, context: VerdictContext) -> Asking[_Results | None]:
    """The candidates that may gain, timed in further processes; None where there is no time left. Those of which machine
    code tells most are timed by that."""
    by_code = yield from _more_code(now, context)
    if by_code is not None:
        return by_code
    names = frozenset(r.name for r in reaching(now.results, context))
    first = now.timings.exchanged(IDENTITY, IDENTITY_UNROLLED) if now.around.unrolled else now.timings
    more = yield from measure_more(MeasureMore(0, first.origin or first, names))
    if more is None:
        return None
    more = replace(more, lesser=first.lesser, between=first.between)
    found = _results(replace(now.times, timings=more), replace(now.around, unrolled=False), now.code)
    return replace(found, code_of=now.code_of)


def _more_code(now: _Results, context: VerdictContext) -> Asking[_Results | None]:
    """Machine code timed in further processes, where it tells most of a candidate that may gain; None where it does not, or
    there is no time left."""
    if now.code is None or all(r.told_by is r for r in reaching(now.results, context)):
        return None
    known = now.code.origin or now.code
    code = yield from time_code(TimeCode(0, now.code_of, now.timings, more=known))
    if code is None or len(code.steady) <= len(known.steady):
        return None
    return replace(now, results=with_code(now.results, code, now.around), code=code)


def _confirmed(now: _Results, context: VerdictContext, verdict: Verdict) -> Asking[tuple[Decision, Measured]]:
    """What remains of a ``change`` when its candidate is built anew and measured again, and what it then gains."""
    first, contest, mode = now.timings, now.times.contest, now.around.mode
    winner = next(e for e in contest.entrants if str(e.variant) == verdict.candidate)
    again = yield from measure_again(MeasureAgain(0, winner.variant, first, mode, now.around.unrolled))
    if again is None:
        raise LayoutAdviseError("the winner could not be built again", "its compiler refused what it took before")
    result = measured(winner, again.timings, mode, contest.conversion(first, winner.variant))
    others = [r for r in now.results if r.layout == winner.variant.layout and r.name != winner.variant]
    (result, *_) = with_doubts([result, *others], again.timings, now.around)
    won = next(r for r in now.results if r.name == winner.variant)
    if won.floor() > replace(won, code=None).floor():  # the change rests on it
        code = yield from time_code(TimeCode(0, (result.layout,), first))
        (result,) = with_code([result], code, now.around)
    result = lived(result, now.trials.get(result.name))
    confirmed = confirm(verdict, result, context)
    peers = as_fast(now.results, winner.variant, first, context.bound, mode) if confirmed.action == "change" else ()
    decision = Decision(
        first,
        again.timings,
        mode,
        confirmed,
        winner.variant,
        context.snapshot,
        again.timings if again.vectors else None,
        winner.variant if again.vectors else None,
        results=tuple(result if r.name == result.name else r for r in now.results),
        peers=peers,
        faster=shown_faster(peers, winner.variant, first, mode),
        trials=now.trials,
        code=now.code,
    )
    return decision, result


def _nothing_won(now: _Results, decision: Decision, context: VerdictContext) -> Asking[Decision]:
    """Measures layout and vector instructions each by themselves, of the best candidate, whether that loses only where its
    code happens to lie, where it was timed at one place, and what a source of it may lose that reads again."""
    best = max((r for r in now.results if r.speedup), key=lambda r: r.speedup.median if r.speedup else 0.0, default=None)
    if best is None or best.speedup is None or TIMING.slow_part * best.speedup.hi < 1.0:  # nothing there to be explained
        return decision
    mode, unrolled, doubted = now.around.mode, now.around.unrolled, decision.verdict.action == "keep" and best.places == 1
    request = MeasureAgain(0, best.name, now.timings, mode, unrolled, doubted, DECIDE.ablation_restores)
    again = yield from measure_again(request)
    if again is None:
        return decision
    found = [*read_again(best, again.timings, now.around)]
    found += place_doubts(best, again.timings, now.around) if doubted else ()
    results = tuple(replace(r, doubts=(*r.doubts, *found)) if r.name == best.name else r for r in now.results)
    now = replace(now, results=results)
    if found and not doubted:
        wider, before = _verdict(now, context), decision.verdict
        same = (wider.action, wider.about, wider.reason) == (before.action, before.about, before.reason)
        decision = replace(decision, verdict=wider if same else before, results=now.results)
    if doubted:
        now = yield from _by_code(now, _verdict(now, context), context)  # which is timed at other places, too
        while noise_decides(now.results, verdict := _verdict(now, context), context):
            more = yield from _more_code(now, context)
            if more is None:
                break
            now = more
        decision = replace(decision, verdict=verdict, results=now.results, code=now.code or decision.code)
    return replace(decision, ablation=again.timings, ablated=best.name) if again.vectors else decision
