"""Partitions of a structure's fields into buffers: all of them, good first ones, and neighbours of a given one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Field

Partition = tuple[tuple[int, ...], ...]
"""Groups of field numbers, ascending within and by their first."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """A partition, and by which way it was found: ``proposer`` as in :class:`Candidate`. With ``tiles`` each group is stored
    in blocks of so many elements: 1 for records, as many as there are elements for an array of each field."""

    partition: Partition
    proposer: str
    tiles: tuple[int, ...] = ()


def partition(groups: Iterator[Sequence[int]] | Sequence[Sequence[int]]) -> Partition:
    """The groups in canonical order, empty ones left out."""
    return tuple(sorted(tuple(sorted(group)) for group in groups if group))


def all_partitions(count: int) -> list[Partition]:
    """Every partition of ``range(count)``; there are 52 for 5, and 4,213,597 for 12."""
    found: list[list[list[int]]] = [[]]
    for number in range(count):
        found = [
            [*groups[:k], [*groups[k], number], *groups[k + 1 :]] if k < len(groups) else [*groups, [number]]
            for groups in found
            for k in range(len(groups) + 1)
        ]
    return sorted({partition(groups) for groups in found}, key=lambda p: (len(p), p))


def first_partitions(fields: Sequence[Field], chunks: Sequence[int] = ()) -> list[Partition]:
    """All together, each alone, by size; neighbours in twos, threes, ... (``chunks`` first); written apart, hot apart."""
    numbers = range(len(fields))
    sizes = sorted({f.bytes for f in fields})
    most = max(f.reads + f.writes for f in fields)
    halves = [n for n in numbers if 2 * (fields[n].reads + fields[n].writes) > most]
    written = [n for n in numbers if fields[n].writes]
    parts: list[Partition] = [partition([numbers[k : k + size] for k in numbers[::size]]) for size in chunks]
    parts.append((tuple(numbers),))
    parts.append(tuple((n,) for n in numbers))
    parts.append(partition([[n for n in numbers if fields[n].bytes == size] for size in sizes]))
    for chosen in (halves, written):
        parts.append(partition([chosen, [n for n in numbers if n not in chosen]]))
    parts.extend(partition([numbers[k : k + size] for k in numbers[::size]]) for size in (2, 3, 4, 6))
    parts.extend(partition([numbers[:k], numbers[k:]]) for k in numbers[1:])
    return list(dict.fromkeys(parts))


def neighbours(groups: Partition) -> Iterator[Partition]:
    """Two groups united, one field moved into another group or alone, two fields of different groups exchanged."""
    for a in range(len(groups)):
        for b in range(a + 1, len(groups)):
            yield partition([*groups[:a], *groups[a + 1 : b], *groups[b + 1 :], (*groups[a], *groups[b])])
    for a, group in enumerate(groups):
        if len(group) > 1:
            for field in group:
                rest = tuple(n for n in group if n != field)
                others = (*groups[:a], *groups[a + 1 :])
                yield partition([*others, rest, (field,)])
                for b, goal in enumerate(others):
                    yield partition([*others[:b], (*goal, field), *others[b + 1 :], rest])
    for a, group in enumerate(groups):
        for b in range(a + 1, len(groups)):
            for mine in group:
                for other in groups[b]:
                    one = [other if n == mine else n for n in group]
                    two = [mine if n == other else n for n in groups[b]]
                    yield partition([*groups[:a], one, *groups[a + 1 : b], two, *groups[b + 1 :]])
