"""Boxes of addresses as products on a grid: what a loop nest touches, factor by factor, without listing addresses."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.footprints import Box, Touched
from layout_advise.layoutalgebra.sets.index_set import IndexSet, index_set
from layout_advise.layoutalgebra.sets.products import Row
from layout_advise.layoutalgebra.terms.normal_form import normal_rows, term_of_rows
from layout_advise.layoutalgebra.terms.pattern_term import RUNS, TERMS
from layout_advise.layoutalgebra.terms.term import Term

BOXES, UNROLLED = 512, 64
"""More products, or a longer loop that would have to be unrolled, and the set is left to be written out."""

Level = tuple[int, int]
"""(stride in units, trip)."""


def rows_on_grid(items: Sequence[tuple[Touched, int]], base: int, unit: int, sizes: Sequence[int]) -> list[Row] | None:
    """Products on factors of ``sizes`` units that cover exactly what is touched; ``None`` where that takes too many.

    ``items`` are what a reference touches and how many bytes an access has; ``unit`` divides all of it.
    """
    if any(item.chosen is not None for item, _ in items) or sum(len(item.boxes) for item, _ in items) > BOXES:
        return None
    grid = _Grid(sizes)
    for item, size in items:
        for box in item.boxes:
            if not grid.add(_start(box, base, unit), _joined(_levels(box, unit, size))):
                return None
    return list(dict.fromkeys(grid.rows))


def _start(box: Box, base: int, unit: int) -> int:
    return (box.start - base) // unit


def _levels(box: Box, unit: int, size: int) -> list[Level]:
    levels = [(stride // unit, trip) for stride, trip in box.levels]
    return [*levels, (1, size // unit)] if size > unit else levels


def bounded_term(rows: list[Row], sizes: Sequence[int]) -> Term | None:
    """The normal form of ``rows``; ``None`` where it is too long to be called a pattern."""
    try:
        found = normal_rows(rows)
    except AlgebraError:
        return None
    if len(found) > TERMS or any(len(part.runs) > RUNS for row in found for part in row):
        return None
    return term_of_rows(found, sizes)


class _Grid:
    """Gathers the products of boxes on factors of ``sizes``."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.weights = [prod(self.sizes[k + 1 :]) for k in range(len(self.sizes))]
        self.rows: list[Row] = []

    def add(self, start: int, levels: list[Level]) -> bool:
        """Append the products of one box; ``False`` where it would take too many."""
        if len(self.rows) > BOXES:
            return False
        levels = [level for level in levels if level[1] > 1]
        mine: list[list[Level]] = [[] for _ in self.sizes]
        for level in levels:
            k = next(k for k, weight in enumerate(self.weights) if level[0] >= weight)
            if level[0] % self.weights[k]:
                return self._unrolled(start, levels, level)  # a diagonal
            mine[k].append(level)
        row: list[IndexSet] = []
        for k, (size, weight) in enumerate(zip(self.sizes, self.weights, strict=True)):
            first = start // weight % size if k else start // weight
            steps = [(stride // weight, trip) for stride, trip in mine[k]]
            if first + sum(stride * (trip - 1) for stride, trip in steps) >= size:
                if k == 0:
                    raise AlgebraError("an access lies outside the memory object", f"beyond {size} elements")
                return self._carried(start, levels, k, mine[k])
            found = _sums(first, steps)
            if found is None:
                return False
            row.append(found)
        self.rows.append(tuple(row))
        return True

    def _unrolled(self, start: int, levels: list[Level], level: Level) -> bool:
        rest = [other for other in levels if other is not level]
        return level[1] <= UNROLLED and all(self.add(start + level[0] * i, rest) for i in range(level[1]))

    def _carried(self, start: int, levels: list[Level], k: int, mine: list[Level]) -> bool:
        """A walk that runs on into the next row: its first row, whole rows, its last row."""
        longest = max(mine, key=lambda level: level[0] * (level[1] - 1))
        stride, trip = longest[0] // self.weights[k], longest[1]
        size, rest = self.sizes[k], [level for level in levels if level is not longest]
        if len(mine) > 1 or size % stride:
            return self._unrolled(start, levels, longest)
        first = start // self.weights[k] % size
        head, turn = min(trip, -(-(size - first) // stride)), size // stride
        if first < stride:
            head = 0
        whole, tail = divmod(trip - head, turn)
        parts = [(0, head, 1), (head, turn, whole), (head + whole * turn, tail, 1)]
        for begin, steps, turns in parts:
            walk = [*rest, (longest[0], steps), (size * self.weights[k], turns)]
            if steps and turns and not self.add(start + begin * longest[0], walk):
                return False
        return True


def _joined(levels: list[Level]) -> list[Level]:
    """Largest stride first; two levels that make one evenly spaced walk become one."""
    found: list[Level] = []
    for stride, trip in sorted(levels, reverse=True):
        if found and found[-1][0] == stride * trip:
            found[-1] = (stride, trip * found[-1][1])
        elif found and found[-1][0] == stride:
            found[-1] = (stride, trip + found[-1][1] - 1)
        else:
            found.append((stride, trip))
    return found


def _sums(first: int, levels: list[Level]) -> IndexSet | None:
    """All ``first + sum(stride * i)``."""
    runs = [range(first, first + 1)]
    for stride, trip in sorted(levels):
        if len(runs) == 1 and len(runs[0]) == 1:
            runs = [range(first, first + stride * (trip - 1) + 1, stride)]
        elif len(runs) * trip > BOXES:
            return None
        else:
            runs = [range(r.start + stride * i, r.stop + stride * i, r.step) for r in runs for i in range(trip)]
    return index_set(runs)
