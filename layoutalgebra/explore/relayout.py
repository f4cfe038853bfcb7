"""From a plan (which field goes where between the dimensions) to the new layout of a structure.

The rules say what it is (:mod:`layout_advise.layoutalgebra.explore.rewritten_parts`): its terms, and the new place of each
accessed unit, with which the places in bytes are compared.
"""

from __future__ import annotations

from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Axis, Buffer, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.explore.placement import buffer_name, place_group
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan, check_plan, whole
from layout_advise.layoutalgebra.explore.rewritten_parts import derivation, runs_of, shown_steps


def relayout(structure: Structure, plan: LayoutPlan, *, checked: bool = True) -> Relayout:
    """The layout that ``plan`` makes of ``structure``: terms and rules by rewriting, the map in bytes checked against them.

    A search that lays out thousands of plans leaves the check out (``checked``) until one of them is to be used.

    Chosen elements are stored by rule 7 on the factor that tells the neighbours of a block apart: of the dimension only
    the quotient by the block remains. Raises :class:`AlgebraError` if the plan forgets or repeats a field or a dimension,
    or where the rules refuse it.
    """
    check_plan(structure, plan)
    maps: dict[int, FieldMap] = {}
    buffers: dict[int, Buffer] = {}
    runs = runs_of(structure, plan, checked=checked)
    for numbers, run in runs:
        for number, size, own in zip(numbers, run.bytes, run.maps, strict=True):
            buffers[number] = Buffer(buffer_name(structure, plan.groups[number]), size)
            maps |= {m.field: replace(m, buffer=number) for m in own}
    parts = tuple(part for _, run in runs for part in run.shown)
    term = " ; ".join(dict.fromkeys(part.term for part in parts))
    ordered = tuple(maps[number] for number in range(len(maps)))
    rewritten = [part for _, run in runs for part in run.parts]
    rules, steps = derivation(rewritten), shown_steps(rewritten) if checked else ()
    stored = tuple(buffers[k] for k in range(len(buffers)))
    return Relayout(structure, ordered, stored, parts, term, plan.chosen, rules, steps=steps)


def map_key(layout: Relayout) -> tuple[object, ...]:
    """Equal for layouts with the same map; an index that is always 0 does not count."""
    return tuple(
        (m.field, m.buffer, m.offset, tuple(a for a in m.axes if layout.structure.dims[a.dim].count > 1))
        for m in layout.fields
    )


def tight_plan(structure: Structure) -> LayoutPlan:
    """The fields in one array of records, in their order, without what is not used."""
    return LayoutPlan((Group(tuple(range(len(structure.fields))), whole(structure)),))


def unchanged(structure: Structure) -> Relayout:
    """The layout that the structure has, in a buffer of its own: its fields where they are."""
    axes = tuple(Axis(k, "whole", 1, dim.stride) for k, dim in enumerate(structure.dims))
    maps = tuple(FieldMap(k, 0, field.offset, axes) for k, field in enumerate(structure.fields))
    return Relayout(structure, maps, (Buffer(structure.name, structure.dims[0].count * structure.dims[0].stride),), (), "")


def drops_bytes(structure: Structure) -> bool:
    """True if unused bytes of the element would be left out (rule 7)."""
    _, size = place_group(structure, tight_plan(structure).groups[0], 0)
    return size < structure.count * structure.element_bytes
