"""Affinity of fields, as ADHA has it: how often loops of a region use them together; and clusters of fields by it.

Majeti, Meel, Barik, Sarkar: Automatic data layout generation and kernel mapping for CPU+GPU architectures (CC 2016). Greedy,
from the field that is used most on; a cluster is as long as a cache line at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from layout_advise.layoutalgebra.derive.structure import Field
from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Step

LEAST = 0.5
"""Fields that are used together in a smaller part of the iterations that use either do not join."""


def together(steps: Sequence[Step]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """In how many executions of a loop's body, or of what lies outside of loops, each field is accessed, and each pair (in
    alphabetical order) in the same one. Accesses in an inner loop are those of its body."""
    used: Counter[str] = Counter()
    both: Counter[tuple[str, str]] = Counter()

    def count(body: Sequence[Step], times: int) -> None:
        own = sorted({step.field for step in body if isinstance(step, FieldAccess) and step.field is not None})
        for name in own:
            used[name] += times
        for pair in combinations(own, 2):
            both[pair] += times
        for step in body:
            if not isinstance(step, FieldAccess):
                count(step.body, times * step.times)

    count(steps, 1)
    return used, both


def affinities(steps: Sequence[Step]) -> dict[tuple[str, str], float]:
    """By pair of fields, in alphabetical order: in which part of the iterations that use either they are used together, 0
    to 1. Pairs that never meet are left out."""
    used, both = together(steps)
    return {(a, b): count / (used[a] + used[b] - count) for (a, b), count in both.items()}


def affine_clusters(
    fields: Sequence[Field], affinity: Mapping[tuple[str, str], float], line: int = LINE, least: float = LEAST
) -> Partition:
    """Greedy clusters, numbered as ``fields``: the field that is used most, then as long as ``line`` bytes hold it the one
    that is most affine to all that are in, ``least`` to each; then the next cluster."""
    left = sorted(range(len(fields)), key=lambda n: (-(fields[n].reads + fields[n].writes), n))

    def near(a: int, b: int) -> float:
        first, second = sorted((fields[a].name, fields[b].name))
        return affinity.get((first, second), 0.0)

    groups = []
    while left:
        group = [left.pop(0)]
        while True:
            room = line - sum(fields[n].bytes for n in group)
            fit = [(min(near(n, m) for m in group), -k, n) for k, n in enumerate(left) if fields[n].bytes <= room]
            best = max(fit, default=(0.0, 0, -1))
            if best[0] < least:
                break
            group.append(best[2])
            left.remove(best[2])
        groups.append(group)
    return partition(groups)
