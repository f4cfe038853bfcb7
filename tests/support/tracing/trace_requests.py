"""Requests to the tracing backends."""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.tracer.backends.protocol import Rerun, TraceRequest
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.snapshot.agent_process import AgentProcess


def request(program: AgentProcess, region: Region | Callable[[int], Region], rerun: Rerun) -> TraceRequest:
    """The call at which ``program`` is parked. One ``region`` is the hotspot's code at every load base."""
    return TraceRequest(program, (lambda _: region) if isinstance(region, Region) else region, rerun, rerun.most_accesses)
