"""A trace in the clone's form, made of what a tracing tool saw in another run of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.nests import Stream
from layout_advise.tracer.clone.decode import Instruction, decode, references_of
from layout_advise.tracer.code import Region
from layout_advise.tracer.relocate import AddressMap, Foreign, Process, move, notes_of
from layout_advise.tracer.snapshot.protocol import StoppedProgram
from layout_advise.tracer.toolresult import Seen
from layout_advise.tracer.toolrun import ToolRun
from layout_advise.tracer.trace import Reference, Trace

OTHER_OPERANDS = 64
"""Accesses that match no operand of their instruction are numbered from here."""

OTHERS = "other threads ran during the call; their accesses are not in the trace"


def parked_trace(
    seen: ToolRun, program: StoppedProgram, region: Region, call: int, backend: Literal["valgrind", "pin"]
) -> Foreign:
    """The trace in the addresses of ``program``, which is parked at the same call; ``region`` is its hotspot's code.

    The references of ``region`` and its callees come first, numbered as the clone numbers them; those of other code that ran
    within the call follow.
    """
    target = Process(program.mappings(), program.allocations(), program.registers())
    to = AddressMap(seen.process, target)
    references, streams, lost = _translated(seen.references, region, to)
    notes = notes_of(to, lost) + ((OTHERS,) if seen.foreign else ())
    trace = Trace(
        symbol=region.symbol,
        call=call,
        backend=backend,
        references=references,
        streams=streams,
        accesses=seen.accesses,
        truncated=seen.truncated,
        registers=target.registers,
        mappings=target.mappings,
        allocations=target.allocations,
    )
    return Foreign(trace, notes)


def _translated(
    found: Sequence[Seen], region: Region, to: AddressMap
) -> tuple[tuple[Reference, ...], tuple[Stream | None, ...], list[int]]:
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
    references, streams = assigned(moved, region)
    return references, streams, lost


def assigned(found: Sequence[Seen], region: Region) -> tuple[tuple[Reference, ...], tuple[Stream | None, ...]]:
    """References and streams; what belongs to an operand of ``region``'s code gets the number that the clone gives it."""
    code = _decoded(region)
    references = list(references_of(code))
    streams: list[Stream | None] = [None] * len(references)
    free: dict[int, list[Reference]] = {}
    for reference in references:
        first_last = code[reference.pc].name.startswith("cmps")  # whose second operand Valgrind reads first
        free.setdefault(reference.pc, []).insert(0 if first_last else len(references), reference)
    for seen in sorted(found, key=lambda s: (s.pc, s.ordinal)):
        candidates = free.get(seen.pc, [])
        fit = next((r for r in candidates if (r.kind, r.bytes) == (seen.kind, seen.bytes)), None)
        if fit is not None:
            candidates.remove(fit)
            streams[fit.id] = seen.stream
        elif seen.stream is not None:
            operand = OTHER_OPERANDS + seen.ordinal
            references.append(Reference(len(references), seen.pc, operand, seen.kind, seen.bytes))
            streams.append(seen.stream)
    return tuple(references), tuple(streams)


def _decoded(region: Region) -> dict[int, Instruction]:
    """The region's code; nothing where it has instructions that the clone refuses."""
    try:
        return decode(region)
    except TraceError:
        return {}
