"""One hotspot from the parked call to its part of the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from layout_advise.case import Case
from layout_advise.choose.batches import obstacle as not_recorded
from layout_advise.choose.calls import Stretch, stretches
from layout_advise.choose.find_kinds import Kinds, at_kind, find_kinds
from layout_advise.choose.profile import call_times
from layout_advise.decide.untried import doubt_scattered, doubt_sparse, doubt_steps, doubt_unknown
from layout_advise.decide.verdict import FEWEST_CALLS, SHORT_CALL_NS, undecided
from layout_advise.describe import describe, shown
from layout_advise.describe.assemble import Conditions
from layout_advise.errors import NotLiftedError, SnapshotError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.experiment import Trials, run_trials
from layout_advise.measure.replays import Replays, replay_all, sentence
from layout_advise.mockup.ir.data_branches import branches_on_data
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.entry_values import Known
from layout_advise.mockup.timing.canary import CALM
from layout_advise.observe.annotate import annotated
from layout_advise.observe.chosen_elements import select
from layout_advise.observe.exchanged_buffers import with_further_calls
from layout_advise.observe.gather import gather
from layout_advise.observe.linear_index import linearise
from layout_advise.observe.observe import Observation, is_beyond_the_l2, observed
from layout_advise.observe.other_kinds import Others, in_order, observe_others
from layout_advise.observe.untaken_fields import with_reachable
from layout_advise.observe.watch_users import find_users
from layout_advise.propose.proposals import propose, refused
from layout_advise.reports.model.hotspot import HotspotReport, NotLifted, Verdict
from layout_advise.rundir import write_atomically
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.procfs import thread_count
from layout_advise.tracer.program.dwarf_types import ResultKind
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.criu import find_criu
from layout_advise.tracer.snapshot.snapshots import CriuSnapshots, ForkSnapshots
from layout_advise.tracer.trace.trace import OTHERS
from layout_advise.tracer.trace.trace_file import write_trace


@dataclass(frozen=True, slots=True)
class Studied:
    """The hotspot's part of the report, and how the experiment went."""

    report: HotspotReport
    conditions: Conditions
    complete: bool
    branches: bool = False
    """Whether the way it takes depends on the data."""


def study(case: Case) -> Studied | None:
    """Trace, explore, try and decide; None when ``--until`` ends the road before the verdict."""
    outcome = _study(case, None)
    if isinstance(outcome, Kinds):  # the calls differ, and another one has to stand for them
        outcome = _study(at_kind(case, outcome.found), outcome)
    assert not isinstance(outcome, Kinds)
    return outcome


def _study(case: Case, kinds: Kinds | None) -> Studied | Kinds | None:
    """The study at the call chosen; the ``kinds`` of calls, where they were not known and another call is to be chosen."""
    settings, profiled, chosen, run, progress = case.settings, case.profiled, case.chosen, case.run, case.progress
    progress.stage("trace", f"stopping the program at call {chosen.call}")
    with case.park(chosen.call) as parked, ExitStack() as stack:
        if not profiled.threaded and (beside := thread_count(parked.pid) - 1) > 0:
            progress.note(beside_note(beside))
        if case.batch is not None and (why := case.clone_refusal(parked)) is not None:
            case = case.unbatched(why)
        progress.step(f"recording the accesses of {f'{case.batch.size} calls' if case.batch else 'one call'}")
        seen = case.observe(parked, chosen.call)
        if case.batch is None and is_beyond_the_l2(seen):
            case = replace(case, chosen=case.chosen.usual())
        if seen.trace.others:
            progress.note(f"layout-advise: {OTHERS}")
        full = annotated(replace(seen, trace=seen.team or seen.trace), case.main)
        kept = write_trace(full, run.trace, settings.max_bytes)
        if kept is not full:
            for text in kept.limits:
                progress.note(f"layout-advise: {text}")
            seen = replace(observed(parked, case.main, seen.region, kept), varying=seen.varying)
        if settings.until == "trace":
            return None
        if kinds is None and obstacle(case) is None:
            kinds = find_kinds(case, seen)
            if kinds:
                said = ", ".join(f"{kind.text} ({kind.share:.0%} of its time)" for kind in kinds.found)
                progress.note(f"calls differ: {said}")
                ordered = in_order(kinds, chosen.call, settings.call)
                case = at_kind(case, ordered.found)
                if case.chosen.call != chosen.call:
                    return ordered
        progress.stage("explore", "looking for other layouts")
        others = observe_others(case, stack, snapshots)
        seen = with_further_calls(case, seen, [one.seen for one in others.tried])
        kind = "none" if profiled.threaded else profiled.module.result_kind(profiled.function)
        lifted = attempt(seen.region, kind, case.outs, case.known)
        if isinstance(lifted, Lifted):
            seen = gather(select(with_reachable(linearise(seen, lifted), lifted), lifted), lifted, parked.read)
        unfit = refused(seen, lifted) if isinstance(lifted, Lifted) else frozenset()
        candidates = propose(seen, settings.candidates, unfit)
        write_atomically(run.candidates, json.dumps([shown.plain(c) for c in candidates], indent=1).encode())
        if settings.until == "explore":
            return None
        progress.step("watching who else uses the data")
        seen = replace(seen, users=find_users(case, seen))
        progress.stage("measure", "compiling mock-ups")
        return _measure(case, parked, seen, candidates, lifted, others)


def beside_note(threads: int) -> str:
    """What is said where the program has other threads than the one that enters the hotspot."""
    others = "1 other thread lives" if threads == 1 else f"{threads} other threads live"
    return (
        f"layout-advise: {others} beside the hotspot: the trace has none of their accesses, and they may disturb its times; "
        "check that they leave its data alone before you change the layout"
    )


def obstacle(case: Case) -> Verdict | None:
    """Why this hotspot is not measured at all by this version, or None."""
    if case.probe.calls < FEWEST_CALLS:
        often = "once" if case.probe.calls == 1 else f"{case.probe.calls} times"
        text = f"the hotspot is entered {often} only; at least {FEWEST_CALLS} calls are needed to measure one"
        text += f", and {case.no_loop}." if case.no_loop else "."
        return undecided("few-calls", text)
    if case.probe.recursive:
        return undecided("recursive", "the hotspot calls itself; its calls are not alike and cannot be timed one by one.")
    if case.probe.threads > 1:
        what = "start this parallel region" if case.profiled.threaded else "enter the hotspot"
        text = f"{case.probe.threads} threads {what}; only parallel regions that one thread starts are measured."
        return undecided("threads", text)
    if case.batch is None and case.chosen.in_situ_ns is not None and case.chosen.in_situ_ns < SHORT_CALL_NS:
        alone = "loops are not timed several entries at a time" if case.profiled.nest else "there are too few for a batch"
        alone = "parallel regions are not timed several at a time" if case.profiled.threaded else alone
        why = case.no_batch or alone
        one = "an entry" if case.profiled.nest else "a call"
        text = f"{one} takes {case.chosen.in_situ_ns / 1000:.1f} µs, too short to be timed by itself, and {why}."
        return undecided("short-calls", text)
    return None


def attempt(
    region: Region, result: ResultKind, outs: tuple[Gpr | Lane, ...] = (), known: Known = ()
) -> Lifted | NotLiftedError:
    """The lifted hotspot, or what stopped the lifter. Of the registers that a function leaves, only what it returns counts;
    of those that a loop leaves, ``outs``. ``known`` is what it finds in vector registers."""
    try:
        return lift(region, result=result, outs=outs, known=known)
    except NotLiftedError as error:
        return error


def _measure(
    case: Case,
    parked: AgentProcess,
    seen: Observation,
    candidates: Sequence[Candidate],
    lifted: Lifted | NotLiftedError,
    others: Others,
) -> Studied:
    blocked = obstacle(case)
    if blocked is not None:
        return _modelled(case, seen, candidates, blocked, ())
    if seen.trace.truncated:
        text = f"the trace is not whole ({'; '.join(seen.trace.limits)}), so no layout is claimed."
        return _modelled(case, seen, candidates, undecided("trace-truncated", text), ())
    if isinstance(lifted, NotLiftedError):
        stopped = describe.not_lifted(lifted, case.profiled.module, seen.region.load_base)
        place = f"{stopped.file}:{stopped.line}" if stopped.file else stopped.address
        text = f"the hotspot could not be turned into C: not lifted: {lifted.instruction} at {place} ({lifted.reason})."
        with ExitStack() as stack:
            replays = replay_all(case, parked, seen, candidates, lambda: snapshots(case, parked, stack))
        text += sentence(replays)
        return _modelled(case, seen, candidates, undecided("not-lifted", text), (stopped,), replays)
    if case.batch is not None and (why := not_recorded(lifted)) is not None:
        return _modelled(case, seen, candidates, undecided("short-calls", f"{why}."), ())
    with ExitStack() as stack:
        return _try(case, parked, seen, candidates, lifted, stack, others)


def _try(
    case: Case,
    parked: AgentProcess,
    seen: Observation,
    candidates: Sequence[Candidate],
    lifted: Lifted,
    stack: ExitStack,
    others: Others,
) -> Studied:
    try:
        trials = run_trials(case, parked, seen, candidates, lifted, lambda: snapshots(case, parked, stack), others)
    except SnapshotError as error:
        return _modelled(case, seen, candidates, undecided("not-measured", f"{error.line()}."), ())
    trials = doubt_unknown(doubt_steps(doubt_sparse(trials, seen), seen.derived), seen)
    trials = doubt_scattered(trials, seen)
    report = describe.measured(case, seen, trials)
    complete = trials.verdict.action != "undecided" or trials.timings is not None
    return Studied(report, _conditions(case, seen, trials), complete, branches_on_data(lifted))


def snapshots(case: Case, parked: AgentProcess, stack: ExitStack) -> CriuSnapshots | ForkSnapshots:
    """CRIU where it works, else forks; what the user forces is not replaced."""
    wish = case.settings.snapshot
    if isinstance(parked.copies, CriuSnapshots):
        return parked.copies
    made: CriuSnapshots | ForkSnapshots | None = None
    if wish != "fork":
        criu = find_criu()
        if criu is None and wish == "criu":
            raise SnapshotError("cannot snapshot the program", "no CRIU works here", "see `layout-advise doctor`")
        if criu is not None:
            try:
                made = CriuSnapshots(parked, criu, case.work)
            except SnapshotError as error:
                if wish == "criu":
                    raise
                case.progress.note(f"layout-advise: {error.line()}: taking forks instead")
    if made is None:
        made = ForkSnapshots(parked)
    stack.callback(made.close)
    return made


def _modelled(
    case: Case,
    seen: Observation,
    candidates: Sequence[Candidate],
    verdict: Verdict,
    not_lifted: tuple[NotLifted, ...],
    replays: Replays | None = None,
) -> Studied:
    report = describe.modelled(case, seen, candidates, verdict, not_lifted, replays)
    conditions = Conditions(
        None,
        case.chosen.in_situ_ns,
        case.chosen.spread,
        None,
        seen.trace.truncated,
        None,
        0,
        _same_end(case),
        case.timed_calls,
    )
    return Studied(report, conditions, complete=True)


def _conditions(case: Case, seen: Observation, trials: Trials) -> Conditions:
    return Conditions(
        timings=trials.timings,
        in_situ_ns=trials.decision.in_situ_ns if trials.decision else case.chosen.in_situ_ns,
        spread=case.chosen.spread,
        mode=trials.mode,
        truncated=seen.trace.truncated,
        wrong_map_caught=trials.wrong_map_caught,
        calls_verified=trials.calls,
        deterministic=_same_end(case),
        same_blocks=trials.same_addresses,
        batch=case.timed_calls,
        unlike=trials.unlike,
        stretches=_stretches(case),
    )


def _stretches(case: Case) -> tuple[Stretch, ...]:
    """Of calls that are timed one by one; where their kinds are told apart, these say what differs."""
    if case.batch is not None or case.kinds:
        return ()
    seen = case.probe.times
    limit = CALM * case.chosen.canary
    return tuple(stretches(call_times(case.profiled, case.probe), [s.canary for s in seen], limit))


def _same_end(case: Case) -> bool:
    return case.profiled.run.exit_status == case.probe.exit_status
