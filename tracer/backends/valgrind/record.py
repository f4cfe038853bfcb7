"""The trace of one call from a run under Valgrind, in the addresses of the parked program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from layout_advise.tracer.backends.tool.trace import assigned, control_of, parked_trace
from layout_advise.tracer.backends.valgrind.run import check_instructions, run_tool
from layout_advise.tracer.code.frame_alignment import ABI, frame_alignment
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.relocate import RSP, Foreign
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import StoppedProgram
from layout_advise.tracer.trace.trace import Mapping, Trace


def trace_under_valgrind(
    program: StoppedProgram,
    command: Sequence[str],
    entry: Entry,
    region: Region,
    call: int,
    cap: int,
    *,
    stdin_path: Path | None = None,
    timeout: float | None = None,
    folder: Path | None = None,
) -> Foreign:
    """Trace the call at which ``program`` is parked, in a run of ``command`` under Valgrind.

    Where the code rounds addresses on its stack and the stacks lie otherwise modulo that, the program is run once more.
    Raises the errors of :func:`run_tool` and of :func:`check_instructions`.
    """
    check_instructions(region)
    seen = run_tool(command, entry, call, cap, stdin_path=stdin_path, timeout=timeout, folder=folder)
    off = seen.process.registers.gpr[RSP] - program.registers().gpr[RSP]
    lower = off % frame_alignment(region)
    if lower and lower % ABI == 0:
        seen = run_tool(command, entry, call, cap, stdin_path=stdin_path, timeout=timeout, folder=folder, lower=lower)
    return parked_trace(seen, program, region, call, "valgrind")


def trace_alone(
    command: Sequence[str],
    entry: Entry,
    region_at: Callable[[Sequence[Mapping]], Region],
    call: int,
    cap: int,
    *,
    stdin_path: Path | None = None,
    timeout: float | None = None,
    folder: Path | None = None,
) -> Foreign:
    """Trace a call of a statically linked program, which cannot be parked.

    The addresses are those of the run under Valgrind, and the heap's blocks are not known. ``region_at`` gives the hotspot's
    code in a process with these mappings.
    """
    seen = run_tool(command, entry, call, cap, stdin_path=stdin_path, timeout=timeout, folder=folder, preload=False)
    region = region_at(seen.process.mappings)
    references, streams, ids = assigned(seen.references, region)
    trace = Trace(
        symbol=region.symbol,
        call=call,
        backend="valgrind",
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
    return Foreign(trace, ())
