"""All memory that a call writes, what it calls included: between timed runs it is put back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from layout_advise.observe.observe import Observation
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.changed_lines import changed_lines


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
