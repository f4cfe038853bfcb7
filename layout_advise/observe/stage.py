"""The stage: the program stopped at the chosen call, and what this call touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layout_advise.errors import NotLiftedError, RefusedError, SettleError, TooMuchWrittenError
from layout_advise.mockup.lift.lift import lift
from layout_advise.observe.annotate import annotated
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds, find_kinds
from layout_advise.observe.observe import Observation, is_beyond_the_l2, merge, observed
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.procfs import thread_count
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.function_code import CALLEE_BYTES, CALLEE_LEVELS
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import OTHERS, Mapping
from layout_advise.tracer.trace.trace_file import write_trace


@dataclass(frozen=True, slots=True)
class Observed:
    """The call that the program is stopped at. ``case`` is without its batch where the clone cannot trace the hotspot."""

    case: Case
    seen: Observation


def observe_call(case: Case, parked: AgentProcess) -> Observed:
    """Traces the call that ``parked`` is stopped at and writes the trace's file."""
    progress = case.space.progress
    if not case.profiled.threaded and (beside := thread_count(parked.pid) - 1) > 0:
        progress.note(beside_note(beside), once=True)
    if case.batch is not None and (why := case.clone_refusal(parked)) is not None:
        case = case.unbatched(why)
    case, seen = _with_callees(case, parked)
    if case.batch is None and is_beyond_the_l2(seen):
        case = replace(case, chosen=case.chosen.usual())
    if seen.trace.others:
        progress.note(f"layout-advise: {OTHERS}")
    full = annotated(replace(seen, trace=seen.team or seen.trace), case.main)
    kept = write_trace(full, case.space.region.trace, case.settings.max_bytes)
    if kept is not full:
        for text in kept.limits:
            progress.note(f"layout-advise: {text}")
        cut = replace(observed(parked, case.main, seen.region, kept), varying=seen.varying)
        seen = replace(cut, written=merge((*cut.written, *seen.put)), put=seen.put, puts=seen.puts)
    return Observed(case, seen)


def _with_callees(case: Case, parked: AgentProcess) -> tuple[Case, Observation]:
    """The call, or the batch, traced with the functions of its file that it calls through pointers: which these are is seen
    when it is traced, and once more of what they call in turn. Without them where they make more accesses than are
    recorded: their calls then stay calls."""
    case, seen = _traced(case, parked)
    for _ in range(CALLEE_LEVELS):
        further = called_beside(case.profiled.module, seen) - case.called
        if not further:
            break
        case.space.progress.step(f"looking into {len(further)} functions that are called through pointers")
        with_them, more = _traced(replace(case, called=case.called | further), parked)
        if more.trace.truncated and not seen.trace.truncated and with_them.batch == case.batch:
            case.space.progress.note("they make more accesses than are recorded: calls of them stay calls")
            break
        case, seen = with_them, more
    return case, seen


def called_beside(module: ElfBinary, seen: Observation) -> frozenset[int]:
    """The functions of ``module`` that the call was seen to call through pointers and that are not in its region, as far as
    they can be lifted: by their addresses in the file. Calls of the others stay calls, with accesses of their own."""
    base, known = seen.region.load_base, {function.entry for function in functions_of(seen.region)}
    targets = {target - base for _, targets in seen.trace.called for target in targets if target not in known}
    found = {at: module.function_at(at) for at in targets if at > 0}
    fit = {at: one for at, one in found.items() if one is not None and one.start == at and one.size <= CALLEE_BYTES}
    return frozenset(at for at, one in fit.items() if _is_lifted(module.region(one, base, callees=True)))


def _is_lifted(region: Region) -> bool:
    try:
        lift(region, result="none", opaque=True)
    except NotLiftedError:
        return False
    return True


def _traced(case: Case, parked: AgentProcess) -> tuple[Case, Observation]:
    """The call, or the batch of calls, traced: of fewer where these make more accesses than are recorded, or use memory that
    the program gets only after the first: other data, of which less is known. As few as can be timed have it mapped.
    Of fewer, too, where the program writes more between them than is kept; if that is so of the fewest, all without it."""
    before, whole = parked.mappings_at_park(), case
    while True:
        several = f"{case.batch.size} calls" if case.batch else "one call"
        without = "use memory that is not there at the first of them"
        case.space.progress.step(f"recording the accesses of {several}")
        try:
            seen = case.observe(parked, case.chosen.call)
            if case.batch is None:
                return case, seen
            batch = case.batch
            if seen.puts is not None and batch.outweighs(seen.puts):
                why = "what the program writes between them takes as long to put back as they take"
                case.space.progress.note(f"{several} are not timed together: {why}")
                case = case.unbatched(why)
                parked.unbatch()
                continue
            known = before if batch.shortened() is not None else parked.mappings_at_park()
            if seen.trace.truncated and batch.shortened() is not None and case.settings.usual_room:
                why = without = "make more accesses than are recorded"
            elif seen.trace.truncated or are_mapped(seen.touched, known, parked.own_ranges()):
                return case, seen
            else:
                why = "they use memory that the program gets later"
        except SettleError as error:
            if isinstance(error, TooMuchWrittenError) and case.batch is not None and case.batch.shortened() is not None:
                case = case.with_fewer_calls(error.why)
                continue
            several = f"{whole.batch.size} calls" if whole.batch else several
            case.space.progress.note(f"{several} are repeated without what the program writes between them: {error.why}")
            case = whole.alone(error.why)
            continue
        except RefusedError as error:
            if case.batch is None:
                raise
            why = error.why
        case.space.progress.note(f"{several} cannot be repeated one after the other: {why}")
        case = case.with_fewer_calls(without)
        if case.batch is None:
            parked.unbatch()


def are_mapped(ranges: Sequence[Range], mappings: Sequence[Mapping], own: Sequence[Range]) -> bool:
    """Returns whether all of ``ranges`` is memory of the program and not the agent's ``own``, which may lie where the
    program gets memory next."""
    known = merge([Range(m.start, m.end) for m in mappings], 1)
    inside = all(any(m.start <= r.start and r.end <= m.end for m in known) for r in ranges)
    return inside and not any(o.start < r.end and r.start < o.end for r in ranges for o in own)


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
