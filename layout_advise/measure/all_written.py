"""All memory that a call writes, what it calls included: between timed runs it is put back."""

from __future__ import annotations

from dataclasses import replace

from layout_advise.observe.observe import Observation, merge
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.changed_lines import changed_lines


def with_all_written(program: AgentProcess, seen: Observation) -> Observation:
    """``seen`` with all that a run of the original changes among what it writes: callees are not traced. Between timed runs
    all of this is put back, the state of the allocator too. Raises SnapshotError when the original cannot be run."""
    with program.fork() as after:
        after.run(0)
        changed = changed_lines(program, after)
    return replace(seen, written=merge((*seen.written, *changed), 1))
