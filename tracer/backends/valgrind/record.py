"""The trace of one call from a run under Valgrind, in the addresses of the parked program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.tracer.backends.protocol import Backend, Rerun, TracedCall, TraceRequest
from layout_advise.tracer.backends.tool.trace import assigned, control_of, parked_trace
from layout_advise.tracer.backends.valgrind.install import find_valgrind
from layout_advise.tracer.backends.valgrind.run import check_instructions, run_tool
from layout_advise.tracer.code.frame_alignment import ABI, frame_alignment
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.relocate import RSP
from layout_advise.tracer.trace.trace import Mapping, Trace


class ValgrindBackend(Backend):
    """Runs the program once more, under Valgrind with our tool."""

    name = "valgrind"
    manner = "under Valgrind"

    def check(self) -> None:
        """Raises the error of :func:`find_valgrind`."""
        find_valgrind()

    def trace(self, request: TraceRequest) -> TracedCall:
        """Traces the call. The program runs twice where the code rounds addresses on its stack and the stacks differ modulo
        that. Raises the errors of :func:`run_tool` and of :func:`check_instructions`."""
        region = request.region
        check_instructions(region)
        run = run_tool(request.rerun)
        off = run.process.registers.gpr[RSP] - request.program.registers().gpr[RSP]
        lower = off % frame_alignment(region)
        if lower and lower % ABI == 0:
            run = run_tool(request.rerun, lower=lower)
        return parked_trace(run, request, self.name)


def trace_alone(rerun: Rerun, region_at: Callable[[Sequence[Mapping]], Region]) -> Trace:
    """Traces a call of a statically linked program, which cannot be parked.

    The addresses are those of the run under Valgrind, and the heap's blocks are not known. ``region_at`` gives the hotspot's
    code in a process with these mappings.
    """
    seen = run_tool(rerun, preload=False)
    region = region_at(seen.process.mappings)
    references, streams, ids = assigned(seen.references, region)
    return Trace(
        symbol=region.symbol,
        call=rerun.call,
        backend=ValgrindBackend.name,
        references=references,
        streams=streams,
        accesses=seen.accesses,
        truncated=seen.truncated,
        registers=seen.process.registers,
        mappings=seen.process.mappings,
        allocations=(),
        control=control_of(seen, ids, len(references)),
        others=seen.foreign > 0,
    )
