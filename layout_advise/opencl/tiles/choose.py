"""The tile that a device's tree says for a cluster of a record."""

from __future__ import annotations

from layout_advise.opencl.candidates import GraphOfRecord, TileOf
from layout_advise.opencl.rewrite.layouts import TiledCluster
from layout_advise.opencl.tiles.samples import ClusterShape
from layout_advise.tiles.tree import TileTree


def shape_of(record: GraphOfRecord, cluster: TiledCluster) -> ClusterShape:
    """A cluster as the tree has it."""
    members = [member for member in cluster.members if member.name in record.graph.accessed]
    trips = max((record.trips.get(member.name, 1) for member in members), default=1)
    around = max((record.around.get(member.name, 1) for member in members), default=1)
    size = sum(m.bytes for m in cluster.members)
    return ClusterShape(size, len(cluster.members), record.elements, trips, around, record.dimensions)


def by_tree(tree: TileTree) -> TileOf:
    """Each cluster its own tile, none longer than the buffer has elements."""

    def tile(record: GraphOfRecord, cluster: TiledCluster) -> int:
        found = tree.tile(shape_of(record, cluster))
        return found if found <= max(record.elements, 1) else 1

    return tile
