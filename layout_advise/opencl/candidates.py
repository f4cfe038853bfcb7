"""The layouts that are tried: partitions that the field graphs suggest, then tiles for the best of them.

At most ``OPENCL.most_measured`` are measured on a device. The partitions do not depend on it, the order in which tiles are
tried follows what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.opencl.graph.fields import FieldGraph
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.rewrite.layouts import BufferLayout, TiledCluster, layout

FURTHER_TILES = (16, 256, 8)
"""Elements in a tile, in the order in which they are tried behind the first."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphOfRecord:
    """A record's graph and the members that must stay in one cluster, as atomic functions use them; and what tiles hang
    on."""

    graph: FieldGraph
    together: frozenset[str]
    elements: int = 0
    """In the launch that has most of them."""
    trips: Mapping[str, int] = field(default_factory=dict)
    """How often a work item accesses a member in its loops, by member."""
    alike: tuple[tuple[str, ...], ...] = ()
    """Members in classes that the kernels access alike."""
    around: Mapping[str, int] = field(default_factory=dict)
    """Of how many elements it reads a member at once, by member."""
    dimensions: int = 1
    """Of the ranges that its kernels run over."""

    def partitions(self) -> tuple[Partition, ...]:
        """The cluster of the paper's length first, then each field alone, then all others from coarse to fine."""
        whole = self.graph.all_clusterings()
        rest = sorted(whole, key=len)
        found = [self.graph.clusters(OPENCL.epsilon), whole[0], *rest]
        return tuple(dict.fromkeys(self._kept(one) for one in found))

    def uses_several(self, cluster: TiledCluster) -> bool:
        """True if several members of a cluster are accessed: else its tiles would change nothing."""
        return sum(member.name in self.graph.accessed for member in cluster.members) > 1

    def _kept(self, groups: Partition) -> Partition:
        """The partition with the members that stay together in one group."""
        kept = {k for k, m in enumerate(self.graph.record.members) if m.name in self.together}
        joined = [n for group in groups if kept & set(group) for n in group]
        return partition([joined, *(group for group in groups if not kept & set(group))])


Choice = tuple[BufferLayout, ...]
"""A layout for each record of a program."""


def first_choices(records: Sequence[GraphOfRecord], most: int) -> list[Choice]:
    """Partitions without tiles; the k-th of each record together, the last one of those that have fewer."""
    options = [one.partitions() for one in records]
    made: dict[tuple[object, ...], Choice] = {}
    for rank in range(max(map(len, options), default=0)):
        choice = tuple(
            layout(one.graph.record, groups[min(rank, len(groups) - 1)], (1,) * len(groups[min(rank, len(groups) - 1)]))
            for one, groups in zip(records, options, strict=True)
        )
        if not all(one.is_original for one in choice):
            made.setdefault(key(choice), choice)
    return list(made.values())[:most]


TileOf = Callable[[GraphOfRecord, TiledCluster], int]
"""The tile that is tried first for a cluster."""


def same_tile(tile: int) -> TileOf:
    """One tile for all clusters."""
    return lambda _record, _cluster: tile


def tiled_choices(
    ranked: Sequence[Choice], records: Sequence[GraphOfRecord], seen: Iterable[Choice], tile: TileOf
) -> list[Choice]:
    """The first tile for the best partition, for that of the field graph, and for the undivided record."""
    whole = tuple(layout(one.graph.record, (tuple(range(len(one.graph.record.members))),), (1,)) for one in records)
    undivided = with_tiles(whole, records, tile)
    graph = tuple(layout(one.graph.record, groups := one.partitions()[0], (1,) * len(groups)) for one in records)
    plain = (*ranked[:1], graph, *ranked[1:2])
    made = [*(with_tiles(choice, records, tile) for choice in plain), undivided]
    return _new(made, seen)


def finer_choices(best: Choice, records: Sequence[GraphOfRecord], seen: Iterable[Choice]) -> list[Choice]:
    """Other tiles for the best choice, for all clusters alike, then for one cluster by itself."""
    made = [with_tiles(best, records, same_tile(tile)) for tile in (OPENCL.first_tiles, *FURTHER_TILES)]
    for number, (one, record) in enumerate(zip(best, records, strict=True)):
        for k, cluster in enumerate(one.clusters):
            if record.uses_several(cluster):
                tile = 1 if cluster.tile > 1 else OPENCL.first_tiles
                tiles = [*one.tiles[:k], tile, *one.tiles[k + 1 :]]
                made.append((*best[:number], layout(one.record, one.partition, tiles), *best[number + 1 :]))
    return _new(made, seen)


def even_choices(records: Sequence[GraphOfRecord], seen: Iterable[Choice]) -> list[Choice]:
    """The clusters of the field graphs cut evenly, in the order of their members, in two parts, then in three, and so on: in
    a straight line all members are near each other, and a graph says no more of them (decision 81)."""
    groups = [one.partitions()[0] for one in records]
    most = max((len(cluster) for one in groups for cluster in one), default=1)
    made = []
    for parts in range(2, most):
        cuts = [_cut(one, record, parts) for one, record in zip(groups, records, strict=True)]
        made.append(tuple(layout(r.graph.record, cut, (1,) * len(cut)) for r, cut in zip(records, cuts, strict=True)))
    return _new(made, seen)


def _cut(groups: Partition, record: GraphOfRecord, parts: int) -> Partition:
    """Each cluster in so many parts; not what must stay together, or is not accessed."""
    names = [member.name for member in record.graph.record.members]
    found: list[tuple[int, ...]] = []
    for group in groups:
        whole = any(names[k] in record.together or names[k] not in record.graph.accessed for k in group)
        size = len(group) if whole else -(-len(group) // parts)
        found += [group[k : k + size] for k in range(0, len(group), size)]
    return partition(found)


def with_tiles(choice: Choice, records: Sequence[GraphOfRecord], tile: TileOf) -> Choice:
    """The same clusters, in tiles where several of their members are used."""
    return tuple(
        layout(one.record, one.partition, [tile(record, c) if record.uses_several(c) else 1 for c in one.clusters])
        for one, record in zip(choice, records, strict=True)
    )


def _new(made: Iterable[Choice], seen: Iterable[Choice]) -> list[Choice]:
    known: Mapping[tuple[object, ...], None] = dict.fromkeys(key(one) for one in seen)
    found = {key(one): one for one in made if key(one) not in known and not all(part.is_original for part in one)}
    return list(found.values())


def key(choice: Choice) -> tuple[object, ...]:
    """Equal for equal layouts."""
    return tuple((one.record.usr, one.partition, one.tiles) for one in choice)


def effort(choice: Choice) -> tuple[int, int]:
    """How much a layout asks of whoever writes it: tiles first, then buffers."""
    return (sum(tile > 1 for one in choice for tile in one.tiles), sum(len(one.clusters) for one in choice))
