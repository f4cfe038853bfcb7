"""A trace in the clone's form, made of what a tracing tool saw in another run of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.tracer.backends.protocol import TracedCall, TraceRequest
from layout_advise.tracer.backends.tool.order import order_of
from layout_advise.tracer.backends.tool.result import Seen
from layout_advise.tracer.backends.tool.run import ToolRun
from layout_advise.tracer.code.frame_alignment import frame_alignment
from layout_advise.tracer.code.instructions import Instruction, decode, references_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.relocate import RSP, AddressMap, Process, move, notes_of
from layout_advise.tracer.objects.lifetimes import translated
from layout_advise.tracer.trace.trace import Control, Reference, Trace

OTHER_OPERANDS = 64
"""Accesses that match no operand of their instruction are numbered from here."""


def parked_trace(seen: ToolRun, request: TraceRequest, backend: str) -> TracedCall:
    """The trace in the addresses of the parked program.

    The references of the hotspot and its callees come first, numbered as the clone numbers them; those of other code that
    ran within the call follow.
    """
    program, region = request.program, request.region
    target = Process(program.mappings(), program.allocations(), program.registers())
    to, lives = translated(seen.process, target, seen.after)
    references, streams, ids, lost = _translated(seen.references, region, to)
    trace = Trace(
        symbol=region.symbol,
        call=request.rerun.call,
        backend=backend,
        references=references,
        streams=streams,
        accesses=seen.accesses,
        truncated=seen.truncated,
        registers=target.registers,
        mappings=target.mappings,
        allocations=target.allocations,
        control=control_of(seen, ids, len(references)),
        watched=lives.watched,
        born=lives.born,
        freed=lives.freed,
        others=seen.foreign > 0,
    )
    off = (seen.process.registers.gpr[RSP] - target.registers.gpr[RSP]) % frame_alignment(region)
    notes = notes_of(to, lost)
    if off:
        notes += (f"the stack begins {off} bytes off: rounded addresses on it may be reported off by that",)
    return TracedCall(trace, notes)


def control_of(seen: ToolRun, ids: Mapping[int, int], references: int) -> Control | None:
    """The order of execution; ``None`` where nothing ran or the tool does not tell."""
    return order_of(seen.order, ids, references) if seen.order is not None and seen.accesses else None


def _translated(
    found: Sequence[Seen], region: Region, to: AddressMap
) -> tuple[tuple[Reference, ...], tuple[Stream | None, ...], dict[int, int], list[int]]:
    moved: list[Seen] = []
    lost: list[int] = []
    for seen in found:
        pc = to.address(seen.pc)
        stream = seen.stream
        if stream is not None:
            result = move(stream, to)
            stream = result.stream
            if result.lost != 0:
                lost.append(seen.pc if pc is None else pc)
        moved.append(replace(seen, pc=seen.pc if pc is None else pc, stream=stream))
    return *assigned(moved, region), lost


def assigned(
    found: Sequence[Seen], region: Region
) -> tuple[tuple[Reference, ...], tuple[Stream | None, ...], dict[int, int]]:
    """References and streams; what belongs to an operand of ``region``'s code gets the number that the clone gives it. And
    the number of each of ``found`` that is among the references, by its position."""
    code = _decoded(region)
    references = list(references_of(code))
    streams: list[Stream | None] = [None] * len(references)
    free: dict[int, list[Reference]] = {}
    for reference in references:
        first_last = code[reference.pc].name.startswith("cmps")  # whose second operand Valgrind reads first
        free.setdefault(reference.pc, []).insert(0 if first_last else len(references), reference)
    ids: dict[int, int] = {}
    for position in sorted(range(len(found)), key=lambda n: (found[n].pc, found[n].ordinal)):
        seen = found[position]
        candidates = free.get(seen.pc, [])
        fit = next((r for r in candidates if (r.kind, r.bytes) == (seen.kind, seen.bytes)), None)
        if fit is not None:
            candidates.remove(fit)
            streams[fit.id] = seen.stream
            ids[position] = fit.id
        elif seen.stream is not None:
            operand = OTHER_OPERANDS + seen.ordinal
            ids[position] = len(references)
            references.append(Reference(len(references), seen.pc, operand, seen.kind, seen.bytes))
            streams.append(seen.stream)
    return tuple(references), tuple(streams), ids


def _decoded(region: Region) -> dict[int, Instruction]:
    """The region's code; nothing where it has instructions that the clone refuses."""
    try:
        return decode(region)
    except TraceError:
        return {}
