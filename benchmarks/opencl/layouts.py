"""All layouts of a kernel's records: partitions × tiles, of those that differ by exchanges of alike members one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.layoutalgebra.fieldgraph.memory_distance import Step
from layout_advise.opencl.candidates import Choice, GraphOfRecord, key
from layout_advise.opencl.graph.alike import alike
from layout_advise.opencl.rewrite.layouts import BufferLayout, layout
from layout_advise.opencl.source.kernels import BufferRecord

Kinds = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LayoutSpace:
    """The layouts that are raced; none where there are too many. ``alike`` are the classes of each record's members."""

    choices: tuple[Choice, ...]
    figures: dict[str, object]
    alike: tuple[Kinds, ...]

    def exchanged(self, choice: Choice, records: Sequence[GraphOfRecord], chance: random.Random) -> Choice:
        """The same layout with its alike members exchanged by chance."""
        found = []
        for one, record, kinds in zip(choice, records, self.alike, strict=True):
            names = [member.name for member in record.graph.record.members]
            to = list(range(len(names)))
            for kind in kinds:
                own = [names.index(name) for name in kind]
                for a, b in zip(own, chance.sample(own, len(own)), strict=True):
                    to[a] = b
            parts = sorted(
                (tuple(sorted(to[k] for k in group)), t) for group, t in zip(one.partition, one.tiles, strict=True)
            )
            found.append(layout(record.graph.record, tuple(group for group, _ in parts), [tile for _, tile in parts]))
        return tuple(found)


def all_layouts(
    records: Sequence[GraphOfRecord], kernels: Sequence[Sequence[Step]], tiles: Sequence[int], most: int
) -> LayoutSpace:
    """All layouts but the program's own, each cluster with its own tile. Where these are more than ``most``, of layouts that
    are the same but for an exchange of alike members one; then those with the same tile for all clusters; none where these
    are too many as well."""
    kinds = tuple(alike(one.graph.record, kernels) for one in records)
    single = tuple(tuple((m.name,) for m in one.graph.record.members) for one in records)
    whole = [_partitions_of(one) for one in records]
    figures: dict[str, object] = {"partitions": prod(map(len, whole)), "alike": [list(map(list, own)) for own in kinds]}
    for used, each in ((single, True), (kinds, True), (single, False), (kinds, False)):
        parts = [_one_of_each(own, kind, one.graph.record) for one, kind, own in zip(records, used, whole, strict=True)]
        figures |= {"that_differ": prod(map(len, parts)), "tiles_by_cluster": each}
        if prod(map(len, parts)) > most:
            continue
        tiled = [
            _tiled(one.graph.record, own, kind, tiles, each) for one, kind, own in zip(records, used, parts, strict=True)
        ]
        if prod(map(len, tiled)) > most * (1 if each else len(tiles)):
            continue
        made = _choices(tiled, each)
        if len(made) <= most:
            return LayoutSpace(tuple(made), figures | {"layouts": len(made)}, used)
    return LayoutSpace((), figures | {"layouts": None}, kinds)


def partitions(items: Sequence[tuple[int, ...]]) -> Iterator[Partition]:
    """Every partition of items, each some members that stay together."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for groups in partitions(rest):
        yield (first, *groups)
        for k, group in enumerate(groups):
            yield (*groups[:k], (*first, *group), *groups[k + 1 :])


def _partitions_of(one: GraphOfRecord) -> list[Partition]:
    """All partitions; members that are not accessed stay together."""
    names = [member.name for member in one.graph.record.members]
    rest = tuple(k for k, name in enumerate(names) if name not in one.graph.accessed)
    items = [(k,) for k, name in enumerate(names) if name in one.graph.accessed]
    return [partition(groups) for groups in partitions([*items, *([rest] if rest else [])])]


def _kind_numbers(kinds: Kinds, record: BufferRecord) -> list[int]:
    number = {name: k for k, kind in enumerate(kinds) for name in kind}
    return [number[member.name] for member in record.members]


def _one_of_each(found: Sequence[Partition], kinds: Kinds, record: BufferRecord) -> list[Partition]:
    """One of the partitions that are the same but for which of the alike members is where."""
    kind = _kind_numbers(kinds, record)
    return list({tuple(sorted(tuple(sorted(kind[k] for k in group)) for group in one)): one for one in found}.values())


def _tiled(
    record: BufferRecord, found: Sequence[Partition], kinds: Kinds, tiles: Sequence[int], each: bool
) -> list[tuple[int, BufferLayout]]:
    """The layouts of a record with its tile, 0 for clusters of different ones."""
    kind = _kind_numbers(kinds, record)
    made: dict[object, tuple[int, BufferLayout]] = {}
    for groups in found:
        several = sum(len(group) > 1 for group in groups)
        for chosen in product(tiles, repeat=several) if each else ((tile,) * several for tile in tiles):
            given = iter(chosen)
            fitting = [next(given) if len(group) > 1 else 1 for group in groups]
            parts = ((tuple(sorted(kind[k] for k in group)), tile) for group, tile in zip(groups, fitting, strict=True))
            made.setdefault(tuple(sorted(parts)), (0 if each or not chosen else chosen[0], layout(record, groups, fitting)))
    return list(made.values())


def _choices(by_record: Sequence[Sequence[tuple[int, BufferLayout]]], each: bool) -> list[Choice]:
    """The layouts of all records together: any with any, or those of one tile."""
    found: dict[tuple[object, ...], Choice] = {}
    for several in product(*by_record):
        used = {tile for tile, one in several if tile != 1 or any(t > 1 for t in one.tiles)}
        choice = tuple(one for _, one in several)
        if (each or len(used) <= 1) and not all(one.is_original for one in choice):
            found.setdefault(key(choice), choice)
    return list(found.values())
