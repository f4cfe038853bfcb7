"""From a plan (which field goes where between the dimensions) to the index map of a structure.

A plan puts groups of fields into buffers. In a group the *field axis* stands somewhere among the dimensions: innermost
is an array of structures, outermost a structure of arrays, before the lanes of a split dimension AoSoA. Each field keeps
its own size in its own sub-array, so that fields of different sizes may share a record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as cartesian
from math import prod
from typing import Literal

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Axis, Buffer, Chosen, Field, FieldMap, Part, Relayout, Structure
from layout_advise.layoutalgebra.terms.term import A, S, Term, product

LINE = 64


@dataclass(frozen=True, slots=True)
class AxisStep:
    """One dimension of the new layout: dimension ``dim`` of the structure, whole, or split by ``block``."""

    dim: int
    part: Literal["whole", "div", "mod"] = "whole"
    block: int = 1

    def extent(self, structure: Structure) -> int:
        """How many values the index takes."""
        count = structure.dims[self.dim].count
        if self.part == "mod":
            return self.block
        return -(-count // self.block) if self.part == "div" else count


@dataclass(frozen=True, slots=True)
class Group:
    """Fields (by number) that share a record; ``outer`` steps, then the field axis, then ``inner`` steps.

    ``record`` rounds the record up to that many bytes (rule 8); 0 for its natural alignment.
    """

    fields: tuple[int, ...]
    outer: tuple[AxisStep, ...]
    inner: tuple[AxisStep, ...] = ()
    record: int = 0


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """Disjoint groups that hold every accessed field of a structure; of all elements, or of the ``chosen`` ones."""

    groups: tuple[Group, ...]
    chosen: Chosen | None = None


def whole(structure: Structure) -> tuple[AxisStep, ...]:
    """All dimensions in their order."""
    return tuple(AxisStep(dim) for dim in range(len(structure.dims)))


def relayout(structure: Structure, plan: LayoutPlan) -> Relayout:
    """The map that ``plan`` induces on ``structure``; injective by construction, and checked.

    Chosen elements are stored by rule 7 on the factor that tells the neighbours of a block apart: of the dimension only
    the quotient by the block remains. Raises :class:`AlgebraError` if the plan forgets or repeats a field or a dimension.
    """
    placed = sorted(number for group in plan.groups for number in group.fields)
    if placed != list(range(len(structure.fields))):
        raise AlgebraError("a layout plan must place every accessed field once", f"placed {placed}")
    maps: list[FieldMap] = []
    buffers: list[Buffer] = []
    parts: list[Part] = []
    for group in plan.groups:
        _check_steps(structure, group, plan.chosen)
        more, size = _place(structure, group, len(buffers))
        buffers.append(Buffer(_buffer_name(structure, group), size))
        maps.extend(more)
        parts.extend(_parts(structure, group, plan.chosen, more, size))
    parts = _share(parts)
    term = " ; ".join(dict.fromkeys(part.term for part in parts))
    return Relayout(structure, tuple(sorted(maps, key=lambda m: m.field)), tuple(buffers), tuple(parts), term, plan.chosen)


def _check_steps(structure: Structure, group: Group, chosen: Chosen | None) -> None:
    """Every dimension once whole, or once as quotient and once as remainder by one block; of chosen ones the quotient."""
    seen = sorted((s.dim, s.part, s.block) for s in (*group.outer, *group.inner))
    expected: list[tuple[int, str, int]] = []
    for dim in range(len(structure.dims)):
        blocks = {block for d, part, block in seen if d == dim and part != "whole"}
        if chosen is not None and dim == chosen.dim:
            expected.append((dim, "div", chosen.block))
        elif blocks:
            expected.extend((dim, part, min(blocks)) for part in ("div", "mod"))
        else:
            expected.append((dim, "whole", 1))
    if seen != expected:
        raise AlgebraError("a layout plan must use every dimension once", f"it uses {seen}")


def _aligned(value: int, to: int) -> int:
    return -(-value // to) * to


def alignment(field: Field) -> int:
    """The natural alignment: the largest power of two that divides the size, at most 16."""
    return min(field.bytes & -field.bytes, 16)


def _place(structure: Structure, group: Group, buffer: int) -> tuple[list[FieldMap], int]:
    """Field maps of one group and the buffer's size in bytes."""
    inner_count = 1
    for step in group.inner:
        inner_count *= step.extent(structure)
    offsets: list[int] = []
    end = 0
    for number in group.fields:
        field = structure.fields[number]
        end = _aligned(end, alignment(field))
        offsets.append(end)
        end += inner_count * field.bytes
    record = _aligned(end, max(alignment(structure.fields[n]) for n in group.fields))
    record = _aligned(record, group.record) if group.record else record
    total = record
    outer: list[Axis] = []
    for step in reversed(group.outer):
        outer.insert(0, Axis(step.dim, step.part, step.block, total))
        total *= step.extent(structure)
    maps = []
    for number, offset in zip(group.fields, offsets, strict=True):
        stride, inner = structure.fields[number].bytes, list[Axis]()
        for step in reversed(group.inner):
            inner.insert(0, Axis(step.dim, step.part, step.block, stride))
            stride *= step.extent(structure)
        maps.append(FieldMap(number, buffer, offset, (*outer, *inner)))
    return maps, total


def _buffer_name(structure: Structure, group: Group) -> str:
    """``particles_x``, ``particles_x_y``, or ``particles_x_and_3_more``."""
    names = [structure.fields[number].name or f"f{structure.fields[number].offset}" for number in group.fields]
    tail = names if len(names) <= 2 else [names[0], f"and_{len(names) - 1}_more"]
    return re.sub(r"\W+", "_", "_".join([structure.name, *tail])).strip("_")


def _parts(structure: Structure, group: Group, chosen: Chosen | None, maps: Sequence[FieldMap], total: int) -> list[Part]:
    """One part per field size: its own unit, its own term. Of elements by class, the chosen ones are class 0. ``maps`` say
    where the fields are in a record, ``total`` is the size of all records: fields of several sizes in one record leave room
    in each other's term."""
    offsets = {m.field: m.offset for m in maps}
    by_size: dict[int, list[int]] = {}
    for number in group.fields:
        by_size.setdefault(structure.fields[number].bytes, []).append(number)
    classes: list[Term] = [S([0], chosen.block)] if chosen is not None else []
    outer = [*classes, *(A(step.extent(structure)) for step in group.outer)]
    inner = [A(step.extent(structure)) for step in group.inner]
    padded = group.record > 0 and len(by_size) == 1
    parts = []
    for size, numbers in sorted(by_size.items()):
        used = len(numbers) * prod(step.extent(structure) for step in group.inner)
        record = _aligned(used * size, group.record) if padded else 0
        whole = total // prod(step.extent(structure) for step in group.outer)
        mixed = len(by_size) > 1 and not group.inner
        if mixed and all(place % size == 0 for place in (whole, *(offsets[n] for n in numbers))):
            term = product([*outer, S([offsets[n] // size for n in numbers], whole // size)])
        elif padded and record % size == 0:  # what is inside joined by rule 6, then padded by rule 8
            term = product([*outer, S([range(used)], record // size)])
        else:
            term = product([*outer, A(len(numbers)), *inner])
        parts.append(Part(tuple(structure.fields[n].name for n in numbers), size, str(term)))
    return parts


def _share(parts: list[Part]) -> list[Part]:
    """Fields in buffers of their own with one term and size share a part ``A_k ⊗ L`` (a structure of arrays)."""
    groups: dict[tuple[int, str], list[Part]] = {}
    for part in parts:
        groups.setdefault((part.unit_bytes, part.term), []).append(part)
    shared = []
    for (unit, term), same in groups.items():
        names = tuple(name for part in same for name in part.fields)
        single = all(len(part.fields) == 1 for part in same) and len(same) > 1
        shared.append(Part(names, unit, f"A_{len(same)} ⊗ {term}" if single else term))
        if not single and len(same) > 1:
            shared[-1:] = same
    return shared


def is_injective(layout: Relayout, limit: int = 1 << 20) -> bool:
    """Whether no byte of the buffers is used twice and none is out of bounds, by trying every element (up to ``limit``)."""
    used: set[tuple[int, int]] = set()
    structure = layout.structure
    if structure.count > limit:
        raise AlgebraError("structure too large to try every element", f"{structure.count} elements")
    for index in filter(layout.holds, cartesian(*(range(dim.count) for dim in structure.dims))):
        for field in layout.fields:
            start = field.place(index)
            size = structure.fields[field.field].bytes
            if start < 0 or start + size > layout.buffers[field.buffer].bytes:
                return False
            places = {(field.buffer, start + k) for k in range(size)}
            if used & places:
                return False
            used |= places
    return True
