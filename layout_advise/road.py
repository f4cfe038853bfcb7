"""The road of one region, each stage once: parked, observed, proposed, built, verified, timed, decided."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial

from layout_advise.build.mockups import identity_of_loops
from layout_advise.build.stage import Built, build_ending, build_general, late_loads
from layout_advise.choose.policy import CHOOSE
from layout_advise.decide.decision import Decision, leading
from layout_advise.decide.gain_words import with_more, with_peers
from layout_advise.decide.live import LiveOnly, decide_live
from layout_advise.decide.loop import compiled_in, loop_advice, with_loop
from layout_advise.decide.mixture import Portion
from layout_advise.decide.obstacles import obstacle, truncated, unlifted, unlike_program, unrecorded
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.requests import (
    Answer,
    Asking,
    MeasureAgain,
    MeasureMore,
    Result,
    RunLive,
    TimeCode,
    TimeInProgram,
)
from layout_advise.decide.single import decide_single
from layout_advise.decide.untried import not_all_kinds, with_untried, with_untried_kinds, without_hope
from layout_advise.decide.usage import use_of, with_use
from layout_advise.decide.verdict import VerdictContext, for_program, more_by_blocks, undecided
from layout_advise.decide.verdict_over_kinds import KindRace, decide_over_kinds
from layout_advise.describe import describe
from layout_advise.describe.studied import (
    AnotherKind,
    Decided,
    InBatches,
    LongCall,
    MoreWays,
    SmallerRegion,
    Studied,
    conditions_of,
    modelled_conditions,
)
from layout_advise.errors import NotLiftedError, SnapshotError, TraceError
from layout_advise.further_calls import fastest_first, made_here, time_kinds, traces_ahead, verify_further_and_kinds
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.measure.all_written import with_all_written
from layout_advise.measure.contest import contest_of, raw
from layout_advise.measure.live.bench import LiveBench, LiveSubject
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.live.trial import LiveWays
from layout_advise.measure.mode import times_of_original
from layout_advise.measure.replays import replay_all, sentence
from layout_advise.measure.snapshots import snapshots
from layout_advise.measure.stage import (
    KindTimed,
    measure_again,
    measure_code,
    measure_kind,
    measure_more,
    seconds_left,
    time_original,
)
from layout_advise.measure.thread_counts import Runner, by_threads
from layout_advise.mockup.evidence.kept_calls import kept_calls
from layout_advise.mockup.remap.conversion_view import NOTHING, View
from layout_advise.mockup.timing.plan import Timed
from layout_advise.mockup.timing.ratios import identity_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, Variant
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds, at_kind, look_again
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import Others, in_order, observe_others
from layout_advise.observe.other_users import between_calls
from layout_advise.observe.stage import kinds_of, observe_call
from layout_advise.observe.watch_users import unwatched, watched
from layout_advise.propose.proposals import Proposed, views_of
from layout_advise.propose.source import Source
from layout_advise.propose.stage import propose_layouts
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.threads import ByThreads
from layout_advise.rundir import write_atomically
from layout_advise.tracer.process.stopped_program import Snapshots
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.verify.compare import compared_late
from layout_advise.verify.machine_code import verified_code
from layout_advise.verify.stage import Verified
from layout_advise.verify.verify import Subject
from layout_advise.workspace import Workspace

_RETRIES: dict[str, SmallerRegion | LongCall] = {
    Reason.TRACE_TRUNCATED: SmallerRegion(),
    Reason.FEW_CALLS: SmallerRegion(),
    Reason.SHORT_CALLS: LongCall(),
}


def study(case: Case, kinds: Kinds | None = None) -> Studied | AnotherKind | None:
    """Traces, explores, tries and decides; None when ``--until`` ends the road before the verdict. ``kinds`` of calls, where
    they are known; else, where another call has to stand for all, the request to take it up there. Where a batch of calls
    fails, one call is looked at."""
    try:
        return _study(case, kinds)
    except (SnapshotError, TraceError) as error:
        if case.batch is None:
            raise
        case.space.progress.note(f"{case.batch.size} calls cannot be repeated one after the other: {error.line()}")
        return _study(case.unbatched(f"several in a row cannot be repeated: {error.line()}"), kinds)


def _study(case: Case, kinds: Kinds | None) -> Studied | AnotherKind | None:
    """The stages of a region, once."""
    progress, until, call = case.space.progress, case.settings.until, case.chosen.call
    progress.stage("trace", f"stopping the program at call {call}")
    with case.park(call) as parked, ExitStack() as stack:
        observed = observe_call(case, parked)
        if until == "trace":
            return None
        if kinds is None and obstacle(observed.case) is None and (found := kinds_of(observed)):
            ordered = in_order(found, call, case.settings.call)
            observed = replace(observed, case=at_kind(observed.case, ordered.found))
            if observed.case.chosen.call != call:
                return AnotherKind(ordered)
        progress.stage("explore", "looking for other layouts")
        case = observed.case
        cut = truncated(case, observed.seen.trace)
        if cut is not None and obstacle(case) is None and until != "explore":  # layouts of a part of it tell nothing
            return replace(_modelled(case, observed.seen, (), cut), retry=_RETRIES.get(cut.reason))
        hopeless = obstacle(case) or cut
        others = Others() if hopeless is not None else observe_others(case, stack, snapshots)
        each = (case, *(one.case for one in others.tried))
        ahead = partial(traces_ahead, each) if hopeless is None and until != "explore" else tuple
        proposed = propose_layouts(observed, [one.seen for one in others.tried], parked.read, ahead)
        if until == "explore":
            return None
        progress.stage("measure", "compiling mock-ups")
        return _measured(case, parked, proposed, others, stack)


def _measured(case: Case, parked: AgentProcess, proposed: Proposed, others: Others, stack: ExitStack) -> Studied:
    """The candidates tried, or why they cannot be."""
    seen, source = proposed.seen, proposed.source
    verdict = obstacle(case) or truncated(case, seen.trace)
    if verdict is None and case.batch is not None and isinstance(source, Source):
        verdict = unrecorded(source.lifted)
    if verdict is not None:
        return replace(_modelled(case, seen, proposed.candidates, verdict), retry=_RETRIES.get(verdict.reason))
    if not isinstance(source, Source):
        seen = watched(case, seen) if proposed.candidates else unwatched(seen)
        stopped = describe.not_lifted(source, case.profiled.module, seen.region.load_base)
        replays = replay_all(case, parked, seen, proposed.candidates, lambda: snapshots(case, parked, stack))
        verdict = unlifted(stopped, sentence(replays))
        report = describe.modelled(case, seen, proposed.candidates, verdict, (stopped,), replays)
        return Studied(report, modelled_conditions(case, seen))
    if (verdict := without_hope(seen, proposed.candidates, loops=case.may_have_loops)) is not None:
        return _modelled(case, seen, proposed.candidates, verdict)
    try:
        seen, decided = _tried(case, parked, proposed, source, others, stack)
    except SnapshotError as error:
        return _modelled(case, seen, proposed.candidates, undecided(Reason.NOT_MEASURED, f"{error.line()}."))
    candidates = [r.candidate for r in decided.verified.good if r.candidate is not None]
    decided = replace(decided, verdict=with_untried(decided.verdict, seen, candidates, proposed.unfit))
    if took := decided.verified.took:
        retry_with = MoreWays(took, case.kinds)
        return Studied(describe.measured(case, seen, decided), conditions_of(case, seen, decided), retry=retry_with)
    complete = decided.verdict.action != "undecided" or decided.timings is not None
    apart = source.branches and decided.decision is not None and not decided.decision.alike
    retry: InBatches | LongCall | None = InBatches() if apart else None
    ns = () if decided.settled else times_of_original(decided.timings)
    why = unlike_program(case, seen, ns, decided.verified.unlike)
    decided = decided if why is None else replace(decided, verdict=why)
    if why is not None or (decided.decision is None and decided.verdict.reason == Reason.NOT_IN_SITU):
        complete, retry = True, LongCall()
    conditions = conditions_of(case, seen, decided)
    return Studied(describe.measured(case, seen, decided), conditions, complete, retry, decided.live, decided.took)


def _modelled(case: Case, seen: Observation, candidates: Sequence[Candidate], verdict: Verdict) -> Studied:
    report = describe.modelled(case, unwatched(seen), candidates, verdict, ())
    return Studied(report, modelled_conditions(case, seen))


def _tried(
    case: Case, parked: AgentProcess, proposed: Proposed, source: Source, others: Others, stack: ExitStack
) -> tuple[Observation, Decided]:
    """Mock-ups built, verified, timed, and the decision, with who else uses the structures. What can end it comes before
    what takes long. Raises SnapshotError when the original cannot be run or no snapshot can be taken."""
    if kept_calls(source.lifted):
        proposed = replace(proposed, seen=with_all_written(parked, proposed.seen))
        tried = tuple(replace(one, seen=with_all_written(one.program, one.seen)) for one in others.tried)
        others = replace(others, tried=tried)
    seen, candidates = proposed.seen, proposed.candidates
    taken = lru_cache(1)(lambda: snapshots(case, parked, stack))
    verified = fastest_first(case, seen, made_here(case, parked, proposed, source, others), others, taken)
    verified, kinds = verify_further_and_kinds(case, seen, verified, others)
    if (problem := _problem(verified)) is not None:
        return unwatched(seen), Decided(verified, None, problem)
    copies = taken()
    views = views_of(source, candidates)
    live = _live_ways(case, parked, verified, views)
    if (unlike := _unlike_alone(case, seen, verified, copies)) is not None:
        alone = _decided_live(case, proposed, verified, copies, unlike, live.trial)
        return unwatched(seen), Decided(verified, None, alone.verdict, views, alone=alone, live=live, took=live.bench.took)
    proposed = replace(proposed, seen=watched(case, seen))
    live.bench.begin()
    late = partial(_late_loads, case, parked)
    candidates = verified.in_race(candidates)
    main = measure_kind(case, seen, verified.built, verified.racing, candidates, copies, late)
    timed, others = time_kinds(main, kinds, verified, candidates, others)
    code = partial(_time_code, timed[0], lru_cache(1)(partial(_code_mockups, case, parked, proposed)))
    decision = _answered(_decision(timed, copies, proposed, verified, others), timed, live.trial, code)
    _write_times(case, decision)
    verdict = _completed(decision, case, proposed, others)
    threads = _by_threads(timed[0], parked, verified, proposed, decision, copies)
    took = live.bench.took
    return proposed.seen, Decided(verified, decision, verdict, views, others.left_out, threads, live=live, took=took)


def _live_ways(case: Case, parked: AgentProcess, verified: Verified, views: Mapping[str, View]) -> LiveWays:
    """The way to try in the running program what was verified; the region's seconds begin."""
    bench = LiveBench(case, verified.built.source, parked.allocations(), seconds_left(case))
    bench.begin()
    named = {str(v): m.same_as or v for v, m in verified.built.mockups.items()}
    return LiveWays(bench, partial(_subject, case.space, verified.built, views), named)


def _late_loads(case: Case, parked: AgentProcess, built: Built, variants: Collection[Variant]) -> Built:
    """``built`` with the loads of these candidates in another order, too, where that does what the original does."""
    made = late_loads(case.space, built, variants)
    return replace(built, mockups={**built.mockups, **compared_late(case.space, parked, built.source, made)})


def _problem(verified: Verified) -> Verdict | None:
    """Why nothing is timed, as what was compared shows; None where nothing speaks against it."""
    if verified.took:
        return undecided(Reason.IDENTITY_NOT_VERIFIED, "another call took other ways.")
    return undecided(*verified.problem) if verified.problem is not None else None


def _unlike_alone(case: Case, seen: Observation, verified: Verified, copies: Snapshots) -> Verdict | None:
    """Why a batch is not timed that takes another time than in the program: the original alone shows it in seconds."""
    if case.batch is None or seen.puts is not None or not verified.unlike:
        return None
    return unlike_program(case, seen, times_of_original(time_original(case, seen, copies)), verified.unlike)


def _rules(proposed: Proposed) -> bool:
    """True if a rule gave a layout to try."""
    return any(ALIGN not in c.families for c in proposed.candidates)


def _decision(
    timed: Sequence[KindTimed], copies: Snapshots, proposed: Proposed, verified: Verified, others: Others
) -> Asking[Decision]:
    """The decision over the calls of all kinds, as the first ones have them in ``case.kinds``."""
    main, case = timed[0], timed[0].case
    assert main.times is not None
    allow, evidence = case.settings.allow_reassociation, verified.found[IDENTITY].evidence
    context = VerdictContext(copies.kind, evidence, _rules(proposed), allow, case.settings.live)
    if not case.kinds:
        return (yield from decide_single(main.times, case.chosen.in_situ_ns, context))
    races = [
        KindRace(k.case.kinds[0].text, k.case.kinds[0].share, k.times, k.case.chosen.in_situ_ns, k.unaffected) for k in timed
    ]
    missing = [k for k in case.kinds if k.call in others.left_out]
    rest = [Portion(k.text, k.share, None) for k in missing]
    decision = yield from decide_over_kinds(races, rest, context)
    if any(k.share >= CHOOSE.least_kind_share for k in missing):
        return replace(decision, verdict=not_all_kinds(decision.verdict))
    return decision


def _decided_live(
    case: Case,
    proposed: Proposed,
    verified: Verified,
    copies: Snapshots,
    why: Verdict,
    trial: Callable[[Variant], LiveTrial],
) -> LiveOnly:
    """What the running program alone tells of the candidates, whose calls in the snapshot are ``why`` not the program's."""
    if case.settings.live == "never":
        return LiveOnly(why, (), {})
    built, candidates = verified.built, verified.in_race(proposed.candidates)
    contest = contest_of(candidates, built.source, built.mockups, verified.racing, case.profiled.name, None)
    allow, evidence = case.settings.allow_reassociation, verified.found[IDENTITY].evidence
    context = VerdictContext(copies.kind, evidence, _rules(proposed), allow)
    identity = identity_of_loops(built.mockups).recipe.variant
    asking = decide_live(contest.entrants, identity, contest.unmeasured, context, why)
    result = _answered(asking, (), trial)
    return replace(result, verdict=_for_program(result.verdict, case))


def _for_program(verdict: Verdict, case: Case) -> Verdict:
    run = case.profiled.run
    return for_program(verdict, case.profiled.share, run.waits, run.processors)


def _subject(space: Workspace, built: Built, views: Mapping[str, View], variant: Variant) -> LiveSubject:
    """A candidate as it is tried in the running program."""
    made = built.mockups[variant]
    assert made.path is not None
    candidate = made.recipe.candidate
    view = views.get(candidate.id, NOTHING) if candidate is not None else NOTHING
    general = partial(build_general, space, built, variant)
    ending = partial(build_ending, space, built, variant)
    return LiveSubject(made.path, candidate, view, general, ending)


def _answered(
    asking: Asking[Result],
    timed: Sequence[KindTimed],
    trial: Callable[[Variant], LiveTrial],
    code: Callable[[TimeCode], Timings | None] = lambda request: None,
) -> Result:
    """The decision, with everything measured that it asks for on the way."""
    answer: Answer = None
    while True:
        try:
            request = asking.send(answer)
            if isinstance(request, TimeCode):
                answer = code(request)
            else:
                answer = trial(request.variant) if isinstance(request, RunLive) else _answer(request, timed)
        except StopIteration as done:
            result: Result = done.value
            return result


def _code_mockups(case: Case, parked: AgentProcess, proposed: Proposed, layouts: tuple[str, ...]) -> tuple[Timed, ...]:
    """The region's machine code on these layouts, as far as it does the same there."""
    assert isinstance(proposed.source, Source)
    wanted = [c for c in proposed.candidates if c.id in layouts]
    return verified_code(case.space, parked, proposed.seen.region, proposed.source, wanted, seconds_left(case) / 2)


def _time_code(
    timed: KindTimed, mockups: Callable[[tuple[str, ...]], tuple[Timed, ...]], request: TimeCode
) -> Timings | None:
    """The times of the region's machine code on the layouts that a decision asks for."""
    code = mockups(request.layouts)
    return measure_code(timed, code, request.first, look=request.look, more=request.more) if code else None


def _answer(request: TimeInProgram | MeasureMore | MeasureAgain, timed: Sequence[KindTimed]) -> Answer:
    kind = timed[request.kind]
    if isinstance(request, TimeInProgram):
        return look_again(kind.case, request.canary)
    if isinstance(request, MeasureMore):
        return measure_more(kind, request.first, request.candidates)
    return measure_again(
        kind,
        request.variant,
        request.first,
        request.mode,
        unrolled=request.unrolled,
        places=request.places,
        restores=request.restores,
    )


def _write_times(case: Case, decision: Decision) -> None:
    times = {"first": raw(decision.first), "again": raw(decision.again) if decision.again else None}
    if decision.code is not None:
        times["machine_code"] = raw(decision.code)
    if decision.kinds:
        times["kinds"] = {k.text: raw(k.again or k.first) for k in decision.kinds}
    write_atomically(case.space.region.timings, json.dumps(times, indent=1).encode())


def _completed(decision: Decision, case: Case, proposed: Proposed, others: Others) -> Verdict:
    """The verdict with what it means for the program, which kind of change pays, and which layouts would do as well."""
    source, seen = proposed.source, proposed.seen
    called = () if isinstance(source, NotLiftedError) else compiled_in(seen.region, seen.trace, source.lifted)
    advice = loop_advice(decision, DECIDE.smallest_gain(decision.snapshot), called)
    verdict = with_loop(_for_program(decision.verdict, case), advice, case.profiled.name)
    verdict = with_untried_kinds(verdict, proposed.seen, others)
    # what converting costs is timed around a batch, not a call, and at calls of one kind only
    if not case.settings.temporary and case.batch is None and not case.kinds:
        layout = decision.winner.layout if decision.winner is not None else None
        winner = next((c for c in proposed.candidates if c.id == layout), None)
        between = between_calls(winner, proposed.seen.users) if winner is not None else None
        verdict = with_use(verdict, use_of(decision, case.probe.calls, between))
    won = next((r for r in decision.results if r.name == decision.winner), None)
    more = more_by_blocks(won, decision.results, DECIDE.smallest_gain(decision.snapshot)) if won is not None else None
    return with_more(with_peers(verdict, decision.peers, decision.faster), won, more)


def _by_threads(
    main: KindTimed, parked: AgentProcess, verified: Verified, proposed: Proposed, decision: Decision, copies: Snapshots
) -> ByThreads | None:
    """A parallel region with other thread counts: the original, the identity, the winner or the best layout measured."""
    case, seen, made = main.case, proposed.seen, verified.built.mockups
    if seen.team is None or main.times is None or copies.kind != "criu":
        return None
    mode = decision.mode or "steady"
    best = leading(decision, [v for v, m in made.items() if m.recipe.candidate is not None], mode)
    identity = identity_of(decision.first, best or IDENTITY)
    subjects = []
    for variant in dict.fromkeys(v for v in (IDENTITY, identity, best) if v is not None):
        item = made[variant]
        assert item.path is not None
        subjects.append(Subject(variant, item.path, None, verified.built.source.forbidden(item.recipe.candidate), None))
    case.space.progress.step(step := "running the region with other numbers of threads")
    return by_threads(
        parked,
        seen.team,
        copies,
        Runner(tuple(subjects), identity, best),
        main.times.bench.memory,
        main.times.bench.plan,
        mode,
        len(os.sched_getaffinity(0)),
        lambda i, n: case.space.progress.count(step, i, n),
    )
