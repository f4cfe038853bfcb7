"""Layouts of a record in buffers: which members share one, and how many elements share a tile of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.explore.partitions import Partition
from layout_advise.opencl.source.kernels import BufferMember, BufferRecord


@dataclass(frozen=True, slots=True)
class TiledCluster:
    """Members in one buffer: element g has member f at ``[g / tile][f][g % tile]``. A tile of 1 is an array of structures.

    ``offsets`` are those of the members in a tile of one element; in a longer one they are as many times as large.
    """

    members: tuple[BufferMember, ...]
    tile: int
    offsets: tuple[int, ...]
    stride: int
    """Bytes of a tile."""

    def bytes(self, count: int) -> int:
        """The length of the buffer for so many elements."""
        return -(-count // self.tile) * self.stride


@dataclass(frozen=True, slots=True, eq=False)
class BufferLayout:
    """The new layout of one record: a buffer for each cluster."""

    record: BufferRecord
    clusters: tuple[TiledCluster, ...]

    @property
    def partition(self) -> Partition:
        """BufferMember numbers by cluster."""
        number = {member.name: k for k, member in enumerate(self.record.members)}
        return tuple(tuple(number[member.name] for member in cluster.members) for cluster in self.clusters)

    @property
    def tiles(self) -> tuple[int, ...]:
        """Elements in a tile, by cluster."""
        return tuple(cluster.tile for cluster in self.clusters)

    @property
    def is_original(self) -> bool:
        """True for the array of structures that the program has."""
        return len(self.clusters) == 1 and self.clusters[0].tile == 1

    @property
    def label(self) -> str:
        """The layout in a few words: ``{x y z m} tiles of 64, {vx vy vz}``."""
        if self.is_original:
            return "array of structures"
        if all(len(cluster.members) == 1 for cluster in self.clusters):
            return "structure of arrays"
        parts = []
        for cluster in self.clusters:
            names = " ".join(member.name for member in cluster.members)
            parts.append(f"{{{names}}}" + (f" tiles of {cluster.tile}" if cluster.tile > 1 else ""))
        return ", ".join(parts)

    @property
    def term(self) -> str:
        """The layout with its index, by buffer: ``[g / 64][x y][g % 64]``."""
        texts = []
        for cluster in self.clusters:
            names = " ".join(member.name for member in cluster.members)
            if len(cluster.members) == 1:
                texts.append(f"{names}[g]")
            else:
                texts.append(f"[g][{names}]" if cluster.tile == 1 else f"[g / {cluster.tile}][{names}][g % {cluster.tile}]")
        return "; ".join(texts)


def layout(record: BufferRecord, groups: Partition, tiles: Sequence[int]) -> BufferLayout:
    """The layout with these members (by number) in each buffer, and so many elements in a tile of it."""
    members = record.members
    if len(groups) == 1 and tiles[0] == 1:
        whole = TiledCluster(members, 1, tuple(m.offset for m in members), record.bytes)
        return BufferLayout(record, (whole,))
    made = (
        _cluster([members[k] for k in group], tile if len(group) > 1 else 1)
        for group, tile in zip(groups, tiles, strict=True)
    )
    return BufferLayout(record, tuple(made))


def _cluster(members: Sequence[BufferMember], tile: int) -> TiledCluster:
    """Members with greater alignment come first, so that none needs a gap."""
    ordered = sorted(members, key=lambda member: (-member.align, member.offset))
    align = max(member.align for member in ordered)
    offsets, at = [], 0
    for member in ordered:
        at = -(-at // member.align) * member.align
        offsets.append(at)
        at += member.bytes
    return TiledCluster(tuple(ordered), tile, tuple(offsets), -(-at * tile // align) * align)
