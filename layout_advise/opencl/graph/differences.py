"""Edges in which the field graph of the source and that of recorded accesses differ, and why."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.layoutalgebra.fieldgraph.memory_distance import Repeat, Step
from layout_advise.opencl.graph.fields import FieldGraph, field_graph, united
from layout_advise.opencl.source.kernels import BufferRecord
from layout_advise.reports.model.kernels import DifferenceCause, EdgeDifference


def differences(source: FieldGraph, recorded: FieldGraph, kernels: Sequence[Sequence[Step]]) -> tuple[EdgeDifference, ...]:
    """The edges that are not in both graphs with one distance; ``kernels`` are the accesses that ``source`` is made of."""
    alone = united([field_graph(source.record, only_of(source.record, steps)) for steps in kernels])
    found = []
    for a, b in sorted(source.distances.keys() | recorded.distances.keys()):
        here, there = source.distances.get((a, b)), recorded.distances.get((a, b))
        if here == there:
            continue
        cause: DifferenceCause = "turns"
        if there is None:
            cause = "not-run"
        elif here is None:
            cause = "copied-whole"
        elif alone.distances.get((a, b)) == there:
            cause = "other-memory"
        found.append(EdgeDifference(a, b, here, there, cause))
    return tuple(found)


def only_of(record: BufferRecord, steps: Sequence[Step]) -> list[Step]:
    """The accesses to members of one record."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            kept += [Repeat(step.times, body)] if (body := tuple(only_of(record, step.body))) else []
        elif step.field is not None and step.field.startswith(f"{record.name}."):
            kept.append(step)
    return kept
