"""Products of index sets on one grid (rows): one index set for each factor, an offset is in all of them at once.

A list of rows stands for their union. ``docs/algebra.md`` calls a row a product of leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from layout_advise.layoutalgebra.sets.index_set import IndexSet
from layout_advise.layoutalgebra.sets.set_operations import subset

Row = tuple[IndexSet, ...]
"""One index set for each factor, the slowest factor first."""

Hull = tuple[tuple[int, int, int], ...]
"""The smallest and greatest element of each factor, and how many it has."""

PAIRWISE, ABSORBED, EXPANDED = 4096, 256, 16
"""At most so many rows are merged in pairs, compared for inclusion, and counted by inclusion and exclusion."""


def overlap(one: Row, other: Row) -> bool:
    """True where the rows share an offset."""
    return not any(a.isdisjoint(b) for a, b in zip(one, other, strict=True))


def common_part(one: Row, other: Row) -> Row | None:
    """The intersection of two rows; ``None`` where it is empty."""
    found: list[IndexSet] = []
    for a, b in zip(one, other, strict=True):
        both = a.intersection(b)
        if both is None:
            return None
        found.append(both)
    return tuple(found)


def merged_rows(rows: Sequence[Row]) -> list[Row]:
    """Equal rows of which no two differ in one factor only and none lies in another, sorted by their first indices.

    Merging goes position by position from the right. More than :data:`PAIRWISE` rows are returned as they are.
    """
    found = list(dict.fromkeys(rows))
    if len(found) > PAIRWISE:
        return found
    changed = True
    while changed and len(found) > 1:
        before = len(found)
        for position in reversed(range(len(found[0]))):
            found = _merged_at(found, position)
        if len(found) <= ABSORBED:
            found = _without_absorbed(found)
        changed = len(found) < before
    return sorted(found, key=lambda row: tuple((indices.first, indices.count) for indices in row))


def _merged_at(rows: Sequence[Row], position: int) -> list[Row]:
    """Unites rows that agree everywhere but at ``position``."""
    groups: dict[Row, IndexSet] = {}
    for row in rows:
        rest, here = row[:position] + row[position + 1 :], row[position]
        groups[rest] = groups[rest].union(here) if rest in groups else here
    return [(*rest[:position], united, *rest[position:]) for rest, united in groups.items()]


def _without_absorbed(rows: Sequence[Row]) -> list[Row]:
    """The rows that lie in no other one. Ends and counts, taken once a row, tell that of nearly all pairs."""
    hulls = [tuple((indices.first, indices.last, indices.count) for indices in row) for row in rows]

    def may_hold(hull: Hull, other: Hull) -> bool:
        return all(o[0] <= h[0] and h[1] <= o[1] and h[2] <= o[2] for h, o in zip(hull, other, strict=True))

    return [
        row
        for row, hull in zip(rows, hulls, strict=True)
        if not any(
            other is not row and may_hold(hull, around) and _inside(row, other)
            for other, around in zip(rows, hulls, strict=True)
        )
    ]


def _inside(row: Row, other: Row) -> bool:
    return all(subset(a, b) for a, b in zip(row, other, strict=True))


def count_rows(rows: Sequence[Row]) -> int | None:
    """The number of offsets in the union of ``rows``; ``None`` where more than :data:`EXPANDED` of them overlap."""
    merged = merged_rows(rows)
    if not any(overlap(a, b) for a, b in combinations(merged, 2)):
        return sum(map(_volume, merged))
    return _inclusion_exclusion(merged) if len(merged) <= EXPANDED else None


def _volume(row: Row) -> int:
    return prod(indices.count for indices in row)


def _inclusion_exclusion(rows: Sequence[Row]) -> int:
    """``|R1 ∪ R2 ∪ ...|``."""
    signed: list[tuple[int, Row]] = []
    for row in rows:
        shared = [(-sign, common_part(other, row)) for sign, other in signed]
        signed.append((1, row))
        signed.extend((sign, part) for sign, part in shared if part is not None)
    return sum(sign * _volume(row) for sign, row in signed)
