"""The stage: the program stopped at the chosen call, and what this call touches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.observe.annotate import annotated
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds, find_kinds
from layout_advise.observe.observe import Observation, is_beyond_the_l2, observed
from layout_advise.tracer.process.procfs import thread_count
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import OTHERS
from layout_advise.tracer.trace.trace_file import write_trace


@dataclass(frozen=True, slots=True)
class Observed:
    """The call that the program is stopped at. ``case`` is without its batch where the clone cannot trace the hotspot."""

    case: Case
    seen: Observation


def observe_call(case: Case, parked: AgentProcess) -> Observed:
    """Traces the call that ``parked`` is stopped at and writes the trace's file."""
    progress, call = case.space.progress, case.chosen.call
    if not case.profiled.threaded and (beside := thread_count(parked.pid) - 1) > 0:
        progress.note(beside_note(beside))
    if case.batch is not None and (why := case.clone_refusal(parked)) is not None:
        case = case.unbatched(why)
    progress.step(f"recording the accesses of {f'{case.batch.size} calls' if case.batch else 'one call'}")
    seen = case.observe(parked, call)
    if case.batch is None and is_beyond_the_l2(seen):
        case = replace(case, chosen=case.chosen.usual())
    if seen.trace.others:
        progress.note(f"layout-advise: {OTHERS}")
    full = annotated(replace(seen, trace=seen.team or seen.trace), case.main)
    kept = write_trace(full, case.space.run.trace, case.settings.max_bytes)
    if kept is not full:
        for text in kept.limits:
            progress.note(f"layout-advise: {text}")
        seen = replace(observed(parked, case.main, seen.region, kept), varying=seen.varying)
    return Observed(case, seen)


def kinds_of(observed: Observed) -> Kinds:
    """The kinds of calls, said to the user where there are several."""
    kinds = find_kinds(observed.case, observed.seen)
    if kinds:
        said = ", ".join(f"{kind.text} ({kind.share:.0%} of its time)" for kind in kinds.found)
        observed.case.space.progress.note(f"calls differ: {said}")
    return kinds


def beside_note(threads: int) -> str:
    """The sentence for a program that has other threads than the one that enters the hotspot."""
    others = "1 other thread lives" if threads == 1 else f"{threads} other threads live"
    return (
        f"layout-advise: {others} beside the hotspot: the trace has none of their accesses, and they may disturb its times; "
        "check that they leave its data alone before you change the layout"
    )
