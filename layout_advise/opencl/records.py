"""The records in the buffers of launches, with what the search and the report need to know of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layout_advise.errors import SourceError
from layout_advise.layoutalgebra.fieldgraph.memory_distance import Step
from layout_advise.opencl.candidates import GraphOfRecord
from layout_advise.opencl.graph.alike import alike
from layout_advise.opencl.graph.elements import elements_around
from layout_advise.opencl.graph.fields import FieldGraph, accesses_of, field_graph, united
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.host.launch import Launch, checked_kernel, mixed_buffers, numbers_of_record
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.rewrite.rewrite import atomics, rewritten
from layout_advise.opencl.source.kernels import BufferRecord, KernelProgram


@dataclass(frozen=True, slots=True, eq=False)
class RecordFound:
    """A record with its graph, made of the accesses of ``kernels``; ``note`` says why it keeps its layout."""

    record: BufferRecord
    graph: GraphOfRecord
    count: int
    note: str | None
    kernels: tuple[tuple[Step, ...], ...]


def records_of(program: KernelProgram, launches: Sequence[Launch]) -> list[RecordFound]:
    """The records in the buffers of these launches."""
    kernels = [checked_kernel(program, launch) for launch in launches]
    mixed = mixed_buffers(program, launches)
    found = []
    for record in program.records:
        users = [kernel for kernel in kernels if record in program.records_of(kernel)]
        if not users:
            continue
        steps = [kernel_steps(program, kernel) for kernel in dict.fromkeys(users)]
        graph = united([field_graph(record, one) for one in steps])
        count = _elements(program, launches, record)
        kinds, around = alike(record, steps), elements_around(record, steps)
        items = [one.global_size for one, kernel in zip(launches, kernels, strict=True) if kernel in users]
        dimensions = max(1, max(sum(size > 1 for size in one) for one in items))
        trips = accesses_of(record, steps)
        own = GraphOfRecord(graph, atomics(program, record), count, trips, kinds, around, dimensions)
        found.append(RecordFound(record, own, count, _obstacle(program, graph, mixed), tuple(steps)))
    return found


def _elements(program: KernelProgram, launches: Sequence[Launch], record: BufferRecord) -> int:
    """Elements in the buffers of the launch that has most of them."""
    counts = [
        sum(len(launch.buffers[n]) // record.bytes for n in numbers_of_record(program, launch, record.usr))
        for launch in launches
    ]
    return max(counts, default=0)


def _obstacle(program: KernelProgram, graph: FieldGraph, mixed: Mapping[str, str]) -> str | None:
    """Why a record must keep its layout; None where it need not."""
    record = graph.record
    if record.obstacle or record.usr in mixed:
        return record.obstacle or mixed[record.usr]
    if len(record.members) < 2:
        return "it has one member"
    singles = tuple((k,) for k in range(len(record.members)))
    try:
        rewritten(program, [layout(record, singles, (1,) * len(singles))])
    except SourceError as error:
        return error.line()
    return None
