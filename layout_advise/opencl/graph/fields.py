"""The field graph of each record in a kernel's buffers, and the clusters that it suggests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.layoutalgebra.fieldgraph.clusters import clusterings
from layout_advise.layoutalgebra.fieldgraph.memory_distance import Repeat, Step, memory_distances
from layout_advise.opencl.source.kernels import BufferRecord

EPSILON = 64
"""Bytes. Fields that are never farther apart lie in one cluster: the line of the first cache of most devices."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldGraph:
    """Members of a record and the memory distances, in bytes, of pairs of those that are accessed."""

    record: BufferRecord
    distances: Mapping[tuple[str, str], float]
    accessed: frozenset[str]

    def clusters(self, epsilon: float = EPSILON) -> Partition:
        """The partition that chains of edges shorter than ``epsilon`` join; what is not accessed is one cluster more."""
        near = {pair: distance for pair, distance in self.distances.items() if distance < epsilon}
        names = [m.name for m in self.record.members]
        return self._with_rest(clusterings(names, near)[-1])

    def all_clusterings(self) -> tuple[Partition, ...]:
        """The partitions for every ``epsilon``, from each field alone on."""
        found = clusterings([m.name for m in self.record.members], self.distances)
        return tuple(dict.fromkeys(self._with_rest(one) for one in found))

    def by_epsilon(self) -> tuple[tuple[float, Partition], ...]:
        """The clusters for every ``epsilon``: each partition with the bytes that ``epsilon`` must exceed for it."""
        lengths = [0.0, *sorted(set(self.distances.values()))]
        found: dict[Partition, float] = {}
        for length in lengths:
            found.setdefault(self.clusters(math.nextafter(length, math.inf)), length)
        return tuple((length, groups) for groups, length in found.items())

    def _with_rest(self, groups: Partition) -> Partition:
        used = {k for k, m in enumerate(self.record.members) if m.name in self.accessed}
        rest = [k for k in range(len(self.record.members)) if k not in used]
        return partition([*(group for group in groups if used & set(group)), rest])


def field_graph(record: BufferRecord, steps: Sequence[Step]) -> FieldGraph:
    """The field graph of one record, of the accesses of a work item."""
    prefix = f"{record.name}."
    distances = {
        (a.removeprefix(prefix), b.removeprefix(prefix)): distance
        for (a, b), distance in memory_distances(steps).items()
        if a.startswith(prefix) and b.startswith(prefix)
    }
    accessed = frozenset(name.removeprefix(prefix) for step in steps for name in step.fields if name.startswith(prefix))
    return FieldGraph(record, distances, accessed)


def united(graphs: Sequence[FieldGraph]) -> FieldGraph:
    """The graph over several kernels that use a record: of each pair the greatest distance, as it must suit all of them."""
    distances: dict[tuple[str, str], float] = {}
    for graph in graphs:
        for pair, distance in graph.distances.items():
            distances[pair] = max(distance, distances.get(pair, 0.0))
    return FieldGraph(graphs[0].record, distances, frozenset[str]().union(*(graph.accessed for graph in graphs)))


def accesses_of(record: BufferRecord, kernels: Sequence[Sequence[Step]]) -> dict[str, int]:
    """How often a work item accesses each member at most in one place, with the turns of the loops around it."""
    found: dict[str, int] = {}

    def gone_through(steps: Sequence[Step], turns: int) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                gone_through(step.body, turns * step.times)
            elif step.field is not None and step.field.startswith(f"{record.name}."):
                name = step.field.removeprefix(f"{record.name}.")
                found[name] = max(turns, found.get(name, 1))

    for steps in kernels:
        gone_through(steps, 1)
    return found
