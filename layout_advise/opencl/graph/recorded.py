"""The field graph of accesses that were recorded, to hold the one from the source against."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from layout_advise.opencl.graph.fields import FieldGraph
from layout_advise.opencl.source.kernels import BufferRecord


def recorded_graph(record: BufferRecord, items: Sequence[NDArray[np.uint32]]) -> FieldGraph:
    """The graph of the accesses of some work items, each given as the members' numbers in their order.

    It differs from the one of the source in what only one of them knows: here loops run as often as they do and branches
    are those taken, but memory beside the record is not seen, and copies of whole records count with all members."""
    sizes = np.array([member.bytes for member in record.members], dtype=np.int64)
    names = [member.name for member in record.members]
    distances: dict[tuple[str, str], float] = {}
    seen: set[int] = set()
    for item in items:
        starts = np.concatenate([[0], np.cumsum(sizes[item])[:-1]]) if len(item) else np.empty(0, dtype=np.int64)
        places = {int(n): starts[item == n] for n in np.unique(item)}
        seen |= places.keys()
        for a, b in combinations(sorted(places), 2):
            pair = (min(names[a], names[b]), max(names[a], names[b]))
            far = max(_farthest(places[a], places[b]), _farthest(places[b], places[a]))
            distances[pair] = max(far, distances.get(pair, 0.0))
    return FieldGraph(record, distances, frozenset(names[n] for n in seen))


def _farthest(of: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """The greatest distance of a place to the nearest of ``others``, both in ascending order."""
    after = np.searchsorted(others, of)
    right = np.abs(others[np.minimum(after, len(others) - 1)] - of)
    left = np.abs(of - others[np.maximum(after - 1, 0)])
    return float(np.minimum(left, right).max())
