"""What has to be known of calls that stay calls: the ways that end a mock-up, and the memory that the callees write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from layout_advise.mockup.ir.lifted import Lifted, OpaqueCall, Stop, everything
from layout_advise.observe.observe import Observation
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.changed_lines import changed_lines
from layout_advise.tracer.trace.trace import Trace


def kept_calls(lifted: Lifted) -> tuple[OpaqueCall, ...]:
    """The calls of functions that are not lifted, each instruction once."""
    found = {item.origin.pc: item for item in everything(lifted.body) if isinstance(item, OpaqueCall)}
    return tuple(call for call in found.values() if not (call.function or "").startswith("rep "))


def ended_ways(lifted: Lifted) -> tuple[Stop, ...]:
    """The ways that no compared call took, on which mock-ups end; each once."""
    return tuple({item.pc: item for item in everything(lifted.body) if isinstance(item, Stop) and item.reason}.values())


def never_taken(trace: Trace, others: Iterable[Trace], taken: frozenset[int]) -> frozenset[int]:
    """Where code begins that neither the traced call nor ``others`` have run, nor what is ``taken`` at further calls."""
    return frozenset(trace.untaken).intersection(*(other.untaken for other in others)) - taken


def taken_after_all(lifted: Lifted, trace: Trace) -> frozenset[int]:
    """Where ways begin that end the mock-ups and that the traced call took."""
    return frozenset(stop.pc for stop in ended_ways(lifted)) - frozenset(trace.untaken)


def with_all_written(program: AgentProcess, seen: Observation) -> Observation:
    """``seen`` with all that a run of the original changes among what it writes: callees are not traced. Between timed runs
    all of this is put back, the state of the allocator too. Raises SnapshotError when the original cannot be run."""
    with program.fork() as after:
        after.run(0)
        changed = changed_lines(program, after)
    return replace(seen, written=_joined((*seen.written, *changed)))


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    found: list[Range] = []
    for one in sorted(ranges, key=lambda r: r.start):
        if found and one.start <= found[-1].end:
            found[-1] = Range(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return tuple(found)
