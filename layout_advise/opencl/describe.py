"""The report's data of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layout_advise.layoutalgebra.explore.partitions import Partition
from layout_advise.layoutalgebra.fieldgraph.memory_distance import Step
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.opencl.candidates import GraphOfRecord
from layout_advise.opencl.graph.differences import differences
from layout_advise.opencl.graph.fields import FieldGraph
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.rewrite.marshal import marshalling_source
from layout_advise.opencl.searched import Searched, Tried
from layout_advise.opencl.source.kernels import BufferRecord
from layout_advise.opencl.verdict import break_even, net, verdict
from layout_advise.reports.model.candidate import Evidence, Interval, Verification
from layout_advise.reports.model.kernels import (
    ClustersByEpsilon,
    FieldEdge,
    GroupSize,
    KernelDevice,
    KernelLayout,
    Marshalling,
    MemberReport,
    RecordReport,
)


def interval(ratio: Ratio | None) -> Interval | None:
    """A ratio as the report has it."""
    return None if ratio is None else Interval(ratio.median, ratio.lo, ratio.hi, ratio.restores)


def edges(graph: FieldGraph) -> tuple[FieldEdge, ...]:
    """The edges of a field graph, the shortest first."""
    found = sorted(graph.distances.items(), key=lambda item: (item[1], item[0]))
    return tuple(FieldEdge(a, b, float(distance)) for (a, b), distance in found)


def cluster_names(graph: FieldGraph, groups: Partition | None = None) -> tuple[tuple[str, ...], ...]:
    """Clusters by name, of none given those that the report shows; without members that are not accessed."""
    names = [member.name for member in graph.record.members]
    given = groups if groups is not None else graph.clusters(OPENCL.epsilon)
    found = (tuple(names[k] for k in group if names[k] in graph.accessed) for group in given)
    return tuple(group for group in found if group)


def record_report(
    record: BufferRecord,
    one: GraphOfRecord,
    count: int,
    note: str | None,
    recorded: FieldGraph | None,
    kernels: Sequence[Sequence[Step]],
) -> RecordReport:
    """A record with its field graph, of these kernels."""
    members = tuple(MemberReport(m.name, m.type, m.offset, m.bytes, m.name in one.graph.accessed) for m in record.members)
    return RecordReport(
        name=record.name,
        bytes=record.bytes,
        count=count,
        members=members,
        edges=edges(one.graph),
        epsilon=OPENCL.epsilon,
        clusters=cluster_names(one.graph),
        atomic=tuple(sorted(one.together)),
        note=note,
        recorded=edges(recorded) if recorded is not None else (),
        recorded_clusters=cluster_names(recorded) if recorded is not None else (),
        differences=differences(one.graph, recorded, kernels) if recorded is not None else (),
        by_epsilon=tuple(ClustersByEpsilon(above, cluster_names(one.graph, p)) for above, p in one.graph.by_epsilon()),
    )


def device_report(
    device: Any, found: Searched, name: str, sizes: tuple[GroupSize, ...], calibration: str | None = None
) -> KernelDevice:
    """A device with all layouts, the measured ones first."""
    order = sorted(found.tried, key=lambda t: -(t.speedup.median if t.speedup else (t.screened or 0.0) / 1e3))
    return KernelDevice(
        platform=device.platform.name,
        name=device.name.strip(),
        version=device.version.strip(),
        compute_units=device.max_compute_units,
        clock=found.clock,
        original_ns=found.original_ns or None,
        original_wall_ns=found.original_wall_ns or None,
        noise=interval(found.noise),
        layouts=tuple(_layout(one, found) for one in order),
        verdict=verdict(found, name, sizes),
        group_sizes=sizes,
        calibration=calibration,
    )


def _layout(one: Tried, found: Searched) -> KernelLayout:
    compared = one.outcome.compared
    evidence: Evidence = "verified" if one.verified else "rejected"
    return KernelLayout(
        id=one.variant.id,
        label="; ".join(each.label for each in one.variant.layouts),
        layout={each.record.name: each.term for each in one.variant.layouts},
        evidence=evidence,
        reason=one.reason or None,
        verification=Verification(len(one.variant.launches), compared.compared, compared.changed, 0) if compared else None,
        screened=one.screened,
        speedup=interval(one.speedup),
        wall=interval(one.wall),
        net=net(one, found),
        marshalling=_marshalling(one, found),
        source=one.variant.source if one.speedup is not None else "",
        marshalling_source=_marshalling_source(one) if one.speedup is not None else "",
    )


def _marshalling_source(one: Tried) -> str:
    laid = [each for each in one.variant.layouts if not each.is_original]
    return "\n".join(f"/* {each.record.name} */\n{marshalling_source(each)}" for each in laid)


def _marshalling(one: Tried, found: Searched) -> Marshalling | None:
    cost = one.conversion
    if cost is None:
        return None
    return Marshalling(cost.kernel_in, cost.kernel_out, cost.host_in, cost.host_out, break_even(one, found))
