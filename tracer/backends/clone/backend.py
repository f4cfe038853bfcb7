"""The clone as a backend: one thread's call in a fork, a parallel region in a restored copy."""

from __future__ import annotations

from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.backends.protocol import Backend, TracedCall, TraceRequest


class CloneBackend(Backend):
    """Runs an instrumented copy of the hotspot in a copy of the parked program."""

    name = "clone"
    manner = "by the clone"
    teams = True
    keeps_records = True

    def trace(self, request: TraceRequest) -> TracedCall:
        """See :func:`trace_call` and :func:`trace_region`."""
        program, rerun, most = request.program, request.rerun, request.most_records
        if not request.team:
            return TracedCall(trace_call(program, request.region, rerun.call, most, folder=rerun.folder))
        with program.fork() as copy:
            return TracedCall(trace_region(program, copy, request.region, rerun.call, most, folder=rerun.folder))
