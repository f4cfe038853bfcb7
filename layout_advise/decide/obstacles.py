"""Why a hotspot is not measured at all."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.choose.batches import obstacle as not_recorded
from layout_advise.choose.by_time import agree
from layout_advise.choose.policy import CHOOSE
from layout_advise.decide.verdict import undecided
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import NotLifted, Verdict
from layout_advise.reports.words.quantities import nanoseconds
from layout_advise.tracer.trace.trace import Trace


def obstacle(case: Case) -> Verdict | None:
    """Why this hotspot is not measured by this version, or None."""
    if case.probe.recursive:
        text = "the hotspot calls itself; its calls are not alike and cannot be timed one by one."
        return undecided(Reason.RECURSIVE, text)
    if case.probe.threads > 1:
        what = "start this parallel region" if case.profiled.threaded else "enter the hotspot"
        text = f"{case.probe.threads} threads {what}; only parallel regions that one thread starts are measured."
        return undecided(Reason.THREADS, text)
    if case.batch is None and case.chosen.in_situ_ns is not None and case.chosen.in_situ_ns < CHOOSE.alone_call_ns:
        one = "an entry" if case.profiled.nest else "a call"
        alone = "loops are not timed several entries at a time" if case.profiled.nest else "there are too few for a batch"
        alone = "parallel regions are not timed several at a time" if case.profiled.threaded else alone
        told = f"{one} takes {nanoseconds(case.chosen.in_situ_ns)}, too short to be timed by itself, and {alone}."
        # what such calls take one by one is mostly what reading the clock takes
        text = f"its calls are too short to be timed by themselves, and {case.no_batch}." if case.no_batch else told
        return undecided(Reason.SHORT_CALLS, text)
    return None


def truncated(case: Case, trace: Trace) -> Verdict | None:
    """Why nothing is claimed where the trace is not whole."""
    if not trace.truncated:
        return None
    text = f"the trace is not whole ({'; '.join(trace.limits)}), so no layout is claimed"
    if not case.no_loop:
        return undecided(Reason.TRACE_TRUNCATED, f"{text}.")
    often = "once" if case.probe.calls == 1 else f"{case.probe.calls} times"
    return undecided(Reason.FEW_CALLS, f"{text}; the hotspot is entered {often} only, and {case.no_loop}.")


def unlifted(stopped: NotLifted, replayed: str) -> Verdict:
    """Why no mock-up could be made, and what a replay of its accesses has shown."""
    place = f"{stopped.file}:{stopped.line}" if stopped.file else stopped.address
    text = f"the hotspot could not be turned into C: not lifted: {stopped.instruction} at {place} ({stopped.reason})."
    return undecided(Reason.NOT_LIFTED, text + replayed)


def unlike_program(case: Case, seen: Observation, ns: Sequence[float], written: int | None) -> Verdict | None:
    """Why the times ``ns`` of a batch, with warm and with flushed caches, say nothing of the program: it takes another time
    there, and between the calls the program has ``written`` bytes that the calls touch, which is not repeated. Where it is
    put back each call has what it has in the program: another time is that of caches and branches, and a doubt."""
    told = case.chosen.in_situ_ns
    if (
        case.batch is None
        or seen.puts is not None
        or not written
        or not told
        or not ns
        or any(agree(one, told) for one in ns)
    ):
        return None
    text = (
        f"its calls are too short to be timed by themselves, and {case.batch.size:,} of them take {nanoseconds(told)} one "
        f"after the other in the program, but {nanoseconds(max(ns))} when they are repeated without what the program writes "
        f"between them ({written:,} bytes of what they touch{f', as {why}' if (why := case.batch.unknown) else ''})."
    )
    return undecided(Reason.NOT_IN_SITU, text)


def unrecorded(lifted: Lifted) -> Verdict | None:
    """Why the calls of a batch cannot be replayed."""
    why = not_recorded(lifted)
    return undecided(Reason.SHORT_CALLS, f"{why}.") if why is not None else None
