"""Layout plans: which fields share a record, and where the field axis stands among the dimensions.

A plan puts groups of fields into buffers. In a group the *field axis* stands somewhere among the dimensions: innermost is
an array of structures, outermost a structure of arrays, before the lanes of a split dimension AoSoA.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Chosen, Structure

LINE = 64
"""Bytes of a cache line."""


@dataclass(frozen=True, slots=True)
class AxisStep:
    """One dimension of the new layout: dimension ``dim`` of the structure, whole, or split by ``block``.

    A remainder is that of the index divided by ``div``, as in :class:`Axis`.
    """

    dim: int
    part: Literal["whole", "div", "mod"] = "whole"
    block: int = 1
    div: int = 1

    def extent(self, structure: Structure) -> int:
        """How many values the index takes."""
        count = structure.dims[self.dim].count
        if self.part == "mod":
            return self.block
        return -(-count // self.block) if self.part == "div" else count


@dataclass(frozen=True, slots=True)
class Group:
    """Fields (by number) that share a record; ``outer`` steps, then the field axis, then ``inner`` steps.

    ``record`` rounds the record up to that many bytes (rule 8); 0 for its natural alignment. ``together`` fields that follow
    one another, of one size, stay side by side behind the inner steps: 2 for the two parts of a complex number.
    """

    fields: tuple[int, ...]
    outer: tuple[AxisStep, ...]
    inner: tuple[AxisStep, ...] = ()
    record: int = 0
    together: int = 1

    @property
    def steps(self) -> tuple[AxisStep, ...]:
        """The steps on both sides of the field axis."""
        return (*self.outer, *self.inner)

    def inner_count(self, structure: Structure) -> int:
        """How many values the inner steps take together."""
        return prod(step.extent(structure) for step in self.inner)


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """Disjoint groups that hold every accessed field of a structure; of all elements, or of the ``chosen`` ones."""

    groups: tuple[Group, ...]
    chosen: Chosen | None = None


def whole(structure: Structure) -> tuple[AxisStep, ...]:
    """All dimensions in their order."""
    return tuple(AxisStep(dim) for dim in range(len(structure.dims)))


def check_plan(structure: Structure, plan: LayoutPlan) -> None:
    """Raises :class:`AlgebraError` if the plan forgets or repeats a field or a dimension."""
    placed = sorted(number for group in plan.groups for number in group.fields)
    if placed != list(range(len(structure.fields))):
        raise AlgebraError("a layout plan must place every accessed field once", f"placed {placed}")
    for group in plan.groups:
        _check_steps(structure, group, plan.chosen)
        sizes = {structure.fields[number].bytes for number in group.fields}
        if group.together > 1 and (len(sizes) > 1 or len(group.fields) % group.together):
            why = f"{len(group.fields)} fields of {len(sizes)} sizes"
            raise AlgebraError(f"fields cannot stay together by {group.together}", why)


def _check_steps(structure: Structure, group: Group, chosen: Chosen | None) -> None:
    """Every dimension once whole, or once as quotient and once as remainder by one block.

    Of the dimension along which elements are chosen only the quotient by their block is left; that may be split again.
    """
    seen = sorted((s.dim, s.part, s.block, s.div) for s in group.steps)
    expected: list[tuple[int, str, int, int]] = []
    for dim in range(len(structure.dims)):
        lanes = [block for d, part, block, _ in seen if d == dim and part == "mod"]
        base = chosen.block if chosen is not None and dim == chosen.dim else 1
        if lanes:
            expected += [(dim, "div", base * lanes[0], 1), (dim, "mod", lanes[0], base)]
        else:
            expected.append((dim, "div", base, 1) if base > 1 else (dim, "whole", 1, 1))
    if seen != expected:
        raise AlgebraError("a layout plan must use every dimension once", f"it uses {seen}")
