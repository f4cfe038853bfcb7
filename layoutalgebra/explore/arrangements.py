"""Arrangements of dimensions and field axis: the part of a layout that all its buffers share in the wide search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, whole


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The order of the dimensions, slowest first; the field axis before number ``place``; ``lanes`` behind all of it."""

    order: tuple[AxisStep, ...]
    place: int
    lanes: AxisStep | None = None

    def group(self, structure: Structure, fields: Sequence[int]) -> Group:
        """The fields of one buffer so arranged; a single field has no axis to place, and no blocks behind one another."""
        inner = (*self.order[self.place :], *((self.lanes,) if self.lanes else ()))
        outer = self.order[: self.place]
        if len(fields) > 1:
            return Group(tuple(fields), outer, inner)
        last = self.order[-1]
        if self.lanes and last.part == "div" and structure.dims[last.dim].count % last.block == 0:
            return Group(tuple(fields), (*self.order[:-1], AxisStep(last.dim)))
        return Group(tuple(fields), (*outer, *inner))


def arrangements(structure: Structure, lanes: tuple[int, ...], more: Sequence[int]) -> Iterator[Arrangement]:
    """As it is first, then the orders of the dimensions with every place of the field axis, then the blocks."""
    steps = whole(structure)
    orders = (
        list(permutations(steps))
        if len(steps) <= 4
        else [steps, *((*steps[:k], *steps[k + 1 :], steps[k]) for k in range(len(steps) - 1))]
    )
    for order in orders:
        for place in range(len(steps), -1, -1):
            yield Arrangement(tuple(order), place)
    sizes = {vector // field.bytes for vector in lanes for field in structure.fields} | set(more)
    for block in sorted(size for size in sizes if size > 1):
        for order in orders:
            for at, step in enumerate(order):
                if structure.dims[step.dim].count > block:
                    split = (*order[:at], AxisStep(step.dim, "div", block), *order[at + 1 :])
                    yield Arrangement(split, len(split), AxisStep(step.dim, "mod", block))
