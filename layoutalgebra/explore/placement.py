"""Places in bytes of the fields of one group in its buffer.

A term has one unit. Fields of several sizes share records in bytes, each with a sub-array of its own.
"""

from __future__ import annotations

import re

from layout_advise.layoutalgebra.derive.structure import Axis, Field, FieldMap, Structure
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group


def aligned(value: int, to: int) -> int:
    """The least multiple of ``to`` that is not below ``value``."""
    return -(-value // to) * to


def alignment(field: Field) -> int:
    """The natural alignment: the largest power of two that divides the size, at most 16."""
    return min(field.bytes & -field.bytes, 16)


def place_group(structure: Structure, group: Group, buffer: int) -> tuple[list[FieldMap], int]:
    """Field maps of one group, and the buffer's size in bytes.

    A field has its own sub-array in the record, so that fields of different sizes may share one; of fields that stay
    together each run of them has one.
    """
    inner_count, together = group.inner_count(structure), group.together
    offsets: list[int] = []
    end = 0
    for place, number in enumerate(group.fields):
        field = structure.fields[number]
        if place % together == 0:
            start = end = aligned(end, alignment(field))
            end += inner_count * field.bytes * together
        offsets.append(start + place % together * field.bytes)
    record = aligned(end, max(alignment(structure.fields[n]) for n in group.fields))
    record = aligned(record, group.record) if group.record else record
    outer, total = _axes(structure, group.outer, record)
    maps = []
    for number, offset in zip(group.fields, offsets, strict=True):
        inner, _ = _axes(structure, group.inner, structure.fields[number].bytes * together)
        maps.append(FieldMap(number, buffer, offset, (*outer, *inner)))
    return maps, total


def _axes(structure: Structure, steps: tuple[AxisStep, ...], stride: int) -> tuple[tuple[Axis, ...], int]:
    """The axes of ``steps``, the last one going on by ``stride`` bytes, and how many bytes they cover."""
    found: list[Axis] = []
    for step in reversed(steps):
        found.insert(0, Axis(step.dim, step.part, step.block, stride, step.div))
        stride *= step.extent(structure)
    return tuple(found), stride


def buffer_name(structure: Structure, group: Group) -> str:
    """``particles_x``, ``particles_x_y``, or ``particles_x_and_3_more``."""
    names = [structure.fields[number].name or f"f{structure.fields[number].offset}" for number in group.fields]
    tail = names if len(names) <= 2 else [names[0], f"and_{len(names) - 1}_more"]
    return re.sub(r"\W+", "_", "_".join([structure.name, *tail])).strip("_")
