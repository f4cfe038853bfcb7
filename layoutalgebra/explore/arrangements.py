"""Arrangements of dimensions and field axis: the part of a layout that all its buffers share in the wide search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, whole


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The order of the dimensions, slowest first; the field axis before number ``place``; ``lanes`` behind all of it.

    Fields stay ``together`` by so many where a group is made of whole runs of them, of one size.
    """

    order: tuple[AxisStep, ...]
    place: int
    lanes: AxisStep | None = None
    together: int = 1

    def group(self, structure: Structure, fields: Sequence[int]) -> Group:
        """The fields of one buffer so arranged; a single field has no axis to place, and no blocks behind one another."""
        inner = (*self.order[self.place :], *((self.lanes,) if self.lanes else ()))
        outer = self.order[: self.place]
        if len(fields) > 1:
            alike = inner and len({structure.fields[n].bytes for n in fields}) == 1
            together = self.together if alike and _whole_runs(structure, fields, self.together) else 1
            return Group(tuple(fields), outer, inner, together=together)
        last = self.order[-1]
        if self.lanes and last.part == "div" and structure.dims[last.dim].count % last.block == 0:
            return Group(tuple(fields), (*self.order[:-1], AxisStep(last.dim)))
        return Group(tuple(fields), (*outer, *inner))


def _whole_runs(structure: Structure, fields: Sequence[int], together: int) -> bool:
    """True if ``fields`` are runs of ``together`` that are neighbours in the element, as the parts of complex numbers."""
    runs = [fields[k : k + together] for k in range(0, len(fields), together)]
    pairs = [(structure.fields[a], structure.fields[b]) for run in runs for a, b in pairwise(run)]
    return len(fields) % together == 0 and all(a.offset + a.bytes == b.offset for a, b in pairs)


def arrangements(
    structure: Structure, lanes: tuple[int, ...], more: Sequence[int], together: Sequence[int] = ()
) -> Iterator[Arrangement]:
    """As it is first, then the orders of the dimensions with every place of the field axis, then the blocks; all of these
    once more with the fields ``together`` by so many."""
    plain = list(_arrangements(structure, lanes, more))
    yield from plain
    for members in together:
        yield from (replace(one, together=members) for one in plain if one.lanes or one.place < len(one.order))


def _arrangements(structure: Structure, lanes: tuple[int, ...], more: Sequence[int]) -> Iterator[Arrangement]:
    """The arrangements in which every field stands by itself."""
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
