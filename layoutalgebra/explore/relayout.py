"""From a plan (which field goes where between the dimensions) to the new layout of a structure.

The rules say what it is (:mod:`layout_advise.layoutalgebra.explore.rewritten_parts`): its terms, and the new place of each
accessed unit, with which the places in bytes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Axis, Buffer, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.explore.placement import buffer_name, place_group
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan, check_plan, whole
from layout_advise.layoutalgebra.explore.rewritten_parts import derivation, runs_of, shown_steps

ALIGN = "align"
"""Family, and step of the derivation: arrays as they are, in blocks that begin with a cache line."""


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


def unchanged(structure: Structure, head: int = 0) -> Relayout:
    """The layout that the structure has, in a buffer of its own that begins ``head`` bytes before it: its fields where they
    are."""
    axes = tuple(Axis(k, "whole", 1, dim.stride) for k, dim in enumerate(structure.dims))
    maps = tuple(FieldMap(k, 0, head + field.offset, axes) for k, field in enumerate(structure.fields))
    size = head + structure.dims[0].count * structure.dims[0].stride
    return Relayout(structure, maps, (Buffer(structure.name, size),), (), "")


def of_another(layout: Relayout, structure: Structure) -> Relayout | None:
    """The same layout of ``structure``, which has the fields of the one laid out, at another place or with other counts;
    None where the plan behind the layout is not known: of chosen elements, of records of several structures."""
    if layout.chosen is not None or layout.merged is not None:
        return None
    groups = [_group_of(layout, number) for number in range(len(layout.buffers))]
    if any(group is None for group in groups):
        return None
    try:
        return relayout(structure, LayoutPlan(tuple(group for group in groups if group is not None)))
    except AlgebraError:
        return None


def _group_of(layout: Relayout, buffer: int) -> Group | None:
    """The group of fields whose places a buffer has; None where no group gives just these."""
    maps = sorted((m for m in layout.fields if m.buffer == buffer), key=lambda m: m.offset)
    wanted = sorted(maps, key=lambda m: m.field)
    for group in _groups(maps):
        found, size = place_group(layout.structure, group, buffer)
        if (sorted(found, key=lambda m: m.field), size) == (wanted, layout.buffers[buffer].bytes):
            return group
    return None


def _groups(maps: Sequence[FieldMap]) -> Iterator[Group]:
    """The groups that may have led to the ``maps`` of a buffer, by where their field axis stands."""
    fields, axes = tuple(m.field for m in maps), maps[0].axes
    steps = tuple(AxisStep(a.dim, a.part, a.block, a.div) for a in axes)
    for place in range(len(steps), -1, -1):
        for together in (k for k in range(1, len(fields) + 1) if len(fields) % k == 0):
            for record in (0, axes[place - 1].stride) if place else (0,):
                yield Group(fields, steps[:place], steps[place:], record, together)


def drops_bytes(structure: Structure) -> bool:
    """True if unused bytes of the element would be left out (rule 7)."""
    _, size = place_group(structure, tight_plan(structure).groups[0], 0)
    return size < structure.count * structure.element_bytes
