"""A block length for each cluster of fields, as the calibration of this machine's processor says (Kofler et al. 2015)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.partitions import Partition, Suggested
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Loop, Node, Stream
from layout_advise.observe.observe import Observation, references_of
from layout_advise.propose.policy import PROPOSE
from layout_advise.tiles.processor.shapes import ClusterWalk
from layout_advise.tiles.tree import TileTree

TILES = "tiles"
"""The proposer, as :class:`Candidate` names it."""


def with_tiles(
    seen: Observation, suggested: Mapping[str, Sequence[Suggested]], tree: TileTree | None
) -> dict[str, tuple[Suggested, ...]]:
    """``suggested``, and for each structure of ``seen`` its fields together and in each of these partitions, every cluster
    in the tile that ``tree`` says; as it was where there is no tree."""
    found = {name: tuple(some) for name, some in suggested.items()}
    if tree is None:
        return found
    for structure in seen.structures:
        if _can_be_tiled(structure):
            together: Partition = (tuple(range(len(structure.fields))),)
            trips = trips_of(seen, structure)
            partitions = dict.fromkeys([together, *(one.partition for one in suggested.get(structure.id, ()))])
            tiled = [tiled_partition(structure, one, trips, tree) for one in partitions]
            found[structure.id] = (*found.get(structure.id, ()), *tiled)
    return found


def tiled_partition(structure: Structure, partition: Partition, trips: int, tree: TileTree) -> Suggested:
    """A partition with a tile for each cluster; a field alone is an array."""

    def tile(group: Sequence[int]) -> int:
        size = sum(structure.fields[n].bytes for n in group)
        return 1 if len(group) == 1 else tree.tile(ClusterWalk(size, len(group), structure.count, trips))

    return Suggested(partition, TILES, tuple(map(tile, partition)))


def _can_be_tiled(structure: Structure) -> bool:
    several = 1 < len(structure.fields) <= PROPOSE.most_clustered_fields
    return several and structure.inexact is None and structure.placed and structure.count > 1


def trips_of(seen: Observation, structure: Structure) -> int:
    """How many elements the loops of a call go through one after another before they go on elsewhere, of most accesses: 1
    where elements are picked, or some left out."""
    trace, own = seen.team or seen.trace, references_of(seen).get(structure.id, frozenset())
    runs: list[tuple[ElementRun, int]] = []
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is not None and (reference.pc, reference.operand) in own:
            runs.append((run_of(stream, structure), stream.count))
    places: dict[int, set[int]] = {}
    for run, _ in runs:
        places.setdefault(run.stride, set()).add(run.first % run.stride)
    counted: Counter[int] = Counter()
    for run, count in runs:
        whole = len(places[run.stride]) == run.stride  # a loop that takes several elements a turn
        counted[max(1, min(run.turns * run.stride, structure.count)) if whole else 1] += count
    return max(counted, key=lambda trips: (counted[trips], trips), default=structure.count)


class ElementRun(NamedTuple):
    """``turns`` of a loop that goes on by ``stride`` elements in each, from element ``first`` on."""

    turns: int
    stride: int
    first: int


def run_of(stream: Stream, structure: Structure) -> ElementRun:
    """The longest way of one loop through the elements; one turn where they come in no order."""
    if not isinstance(stream, FoldedStream):
        return ElementRun(1, 1, 0)
    return max((_run(node, (), structure) for node in stream.nodes), default=ElementRun(1, 1, 0))


def _run(node: Node, trips: tuple[int, ...], structure: Structure) -> ElementRun:
    """That of the innermost loop that leaves an element; a loop over the fields of one does not. A loop whose length changes
    is as long as the structure."""
    if isinstance(node, Loop):
        trip = node.trip.const if not any(node.trip.coefs) else structure.count
        return max((_run(one, (*trips, trip), structure) for one in node.body), default=ElementRun(1, 1, 0))
    size = structure.element_bytes
    first = (node.address.const - structure.base) // size
    for depth in reversed(range(len(trips))):
        step = abs(node.address.coefs[depth]) if depth < len(node.address.coefs) else 0
        if step and step % size == 0:
            return ElementRun(trips[depth], step // size, first)
        if step * trips[depth] > size:  # from field to field, and on through all elements
            return ElementRun(step * trips[depth] // size, 1, first)
    return ElementRun(1, 1, first)
