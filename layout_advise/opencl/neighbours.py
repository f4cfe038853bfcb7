"""Layouts one step from the best that was measured, with what is left of the layouts that may be: the graph's distances say
which clusters to join first, members that are accessed alike stand for each other (decision 90)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, zip_longest

from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.opencl.candidates import Choice, GraphOfRecord
from layout_advise.opencl.rewrite.layouts import BufferLayout, layout


def near_choices(best: Choice, records: Sequence[GraphOfRecord], seen: Iterable[Choice]) -> list[Choice]:
    """The best layout with two clusters joined, the nearest ones first, and with a member in a cluster of its own, in turns.
    Of layouts that an exchange of alike members turns into each other one; none that is a seen one by such an exchange."""
    kinds = [kinds_of(one) for one in records]
    known = {_signature(choice, kinds) for choice in seen}
    found: dict[object, Choice] = {}
    for number, (own, record) in enumerate(zip(best, records, strict=True)):
        for groups in _in_turns(joined(own.partition, record), split(own.partition, record)):
            new = layout(own.record, groups, _tiles(own, groups))
            choice = (*best[:number], new, *best[number + 1 :])
            same = _signature(choice, kinds)
            if same not in known and not all(one.is_original for one in choice):
                found.setdefault(same, choice)
    return list(found.values())


def joined(groups: Partition, record: GraphOfRecord) -> Iterator[Partition]:
    """Each pair of clusters that are accessed in one, by the distance of their nearest members."""
    used = [group for group in groups if _names(group, record) & record.graph.accessed]
    pairs = sorted(combinations(used, 2), key=lambda pair: _distance(pair[0], pair[1], record))
    for a, b in pairs:
        yield partition([a + b, *(group for group in groups if group not in (a, b))])


def split(groups: Partition, record: GraphOfRecord) -> Iterator[Partition]:
    """Each member that is accessed, and need not stay with others, by itself."""
    names = [member.name for member in record.graph.record.members]
    for group in groups:
        free = [k for k in group if names[k] in record.graph.accessed and names[k] not in record.together]
        for k in free if len(group) > 1 else ():
            yield partition([(k,), tuple(n for n in group if n != k), *(other for other in groups if other != group)])


def kinds_of(record: GraphOfRecord) -> tuple[int, ...]:
    """The number of each member's class of alike ones."""
    number = {name: k for k, names in enumerate(record.alike) for name in names}
    return tuple(number.get(m.name, len(number) + k) for k, m in enumerate(record.graph.record.members))


def _signature(choice: Choice, kinds: list[tuple[int, ...]]) -> object:
    """Equal for layouts that an exchange of alike members turns into each other."""
    return tuple(
        (one.record.usr, tuple(sorted((tuple(sorted(kind[k] for k in group)), tile) for group, tile in pairs)))
        for one, kind in zip(choice, kinds, strict=True)
        for pairs in [list(zip(one.partition, one.tiles, strict=True))]
    )


def _names(group: tuple[int, ...], record: GraphOfRecord) -> set[str]:
    return {record.graph.record.members[k].name for k in group}


def _distance(a: tuple[int, ...], b: tuple[int, ...], record: GraphOfRecord) -> float:
    pairs = ((min(x, y), max(x, y)) for x in _names(a, record) for y in _names(b, record))
    return min((record.graph.distances.get(pair, float("inf")) for pair in pairs), default=float("inf"))


def _tiles(own: BufferLayout, groups: Partition) -> list[int]:
    """The tiles that clusters had before, of a new one the longest of those it is made of; none for a single member."""
    tile = {k: t for group, t in zip(own.partition, own.tiles, strict=True) for k in group}
    return [max(tile[k] for k in group) if len(group) > 1 else 1 for group in groups]


def _in_turns(first: Iterable[Partition], second: Iterable[Partition]) -> Iterator[Partition]:
    return (one for one in chain.from_iterable(zip_longest(first, second)) if one is not None)
