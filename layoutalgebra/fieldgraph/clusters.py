"""Partitions of the fields by memory distance: Kruskal's algorithm stopped at a length (Kofler et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx

from layout_advise.layoutalgebra.explore.partitions import Partition, partition


def clusterings(fields: Sequence[str], distances: Mapping[tuple[str, str], float]) -> tuple[Partition, ...]:
    """Every partition into fields that a chain of edges shorter than some length joins, from each alone to all that meet.

    All distances that occur are tried; any other length, such as that of a cache line, gives one of the same partitions.
    There are at most as many as fields. Fields are numbered as in ``fields``; pairs without a distance never meet.
    """
    number = {name: k for k, name in enumerate(fields)}
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(fields)))
    edges = [(weight, number[a], number[b]) for (a, b), weight in distances.items()]
    found: dict[Partition, None] = {partition([(k,) for k in range(len(fields))]): None}
    for length in sorted({weight for weight, _, _ in edges}):
        graph.add_edges_from((a, b) for weight, a, b in edges if weight == length)
        found[_joined(graph)] = None
    return tuple(found)


def _joined(graph: nx.Graph[int]) -> Partition:
    return partition([tuple(part) for part in nx.connected_components(graph)])
