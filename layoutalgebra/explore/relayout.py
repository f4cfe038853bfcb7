"""From a plan (which field goes where between the dimensions) to the new layout of a structure.

The rules say what the layout is (:mod:`layout_advise.layoutalgebra.explore.rewritten_parts`): its terms, the rules that
lead to it, and the new place of each accessed unit. A term has one unit. Fields of several sizes share records in bytes, so
the places in bytes are computed here, for a whole record, and compared with the rules' places.
"""

from __future__ import annotations

import re
from itertools import product as cartesian

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Axis, Buffer, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan, aligned, alignment, check_plan, whole
from layout_advise.layoutalgebra.explore.rewritten_parts import check_places, derivation, rewritten_parts, shown_part


def relayout(structure: Structure, plan: LayoutPlan) -> Relayout:
    """The layout that ``plan`` makes of ``structure``: terms and rules by rewriting, the map in bytes checked against them.

    Chosen elements are stored by rule 7 on the factor that tells the neighbours of a block apart: of the dimension only
    the quotient by the block remains. Raises :class:`AlgebraError` if the plan forgets or repeats a field or a dimension,
    or where the rules refuse it.
    """
    check_plan(structure, plan)
    maps: list[FieldMap] = []
    buffers: list[Buffer] = []
    for group in plan.groups:
        more, size = place_group(structure, group, len(buffers))
        buffers.append(Buffer(buffer_name(structure, group), size))
        maps.extend(more)
    parts = rewritten_parts(structure, plan, maps, buffers)
    for part in parts:
        check_places(structure, plan, part, maps, buffers)
    shown = tuple(shown_part(structure, part) for part in parts)
    term = " ; ".join(dict.fromkeys(part.term for part in shown))
    ordered = tuple(sorted(maps, key=lambda m: m.field))
    return Relayout(structure, ordered, tuple(buffers), shown, term, plan.chosen, derivation(parts))


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


def map_key(layout: Relayout) -> tuple[object, ...]:
    """Equal for layouts with the same map; an index that is always 0 does not count."""
    return tuple(
        (m.field, m.buffer, m.offset, tuple(a for a in m.axes if layout.structure.dims[a.dim].count > 1))
        for m in layout.fields
    )


def tight_plan(structure: Structure) -> LayoutPlan:
    """The fields in one array of records, in their order, without what is not used."""
    return LayoutPlan((Group(tuple(range(len(structure.fields))), whole(structure)),))


def drops_bytes(structure: Structure) -> bool:
    """Whether unused bytes of the element would be left out (rule 7)."""
    _, size = place_group(structure, tight_plan(structure).groups[0], 0)
    return size < structure.count * structure.element_bytes


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
