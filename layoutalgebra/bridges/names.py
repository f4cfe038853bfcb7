"""The name of a layout in LLAMA (a mapping) and in Kokkos; ``None`` where they have none for it."""

from __future__ import annotations

from layout_advise.layoutalgebra.bridges.declarations import identifier
from layout_advise.layoutalgebra.derive.structure import Axis, FieldMap, Relayout


def llama_mapping(layout: Relayout) -> str | None:
    """The LLAMA mapping, as C++: ``llama::mapping::MultiBlobSoA<Extents, Record>``.

    ``Extents`` are the structure's dimensions, ``Record`` its accessed fields in their order. LLAMA linearises dimensions
    row by row (``LinearizeArrayIndexRight``) or column by column (``LinearizeArrayIndexLeft``) only.
    """
    first = layout.fields[0]
    order = _order(layout, first)
    linear = {"right": "", "left": ", llama::mapping::LinearizeArrayIndexLeft"}.get(order or "")
    single = len(layout.buffers) == 1
    if any(a.part != "whole" for m in layout.fields for a in m.axes):
        if not single or layout.chosen is not None or not _is_aosoa(layout) or len(layout.structure.dims) > 1:
            return None
        return f"llama::mapping::AoSoA<Extents, Record, {first.axes[-1].block}>"
    if linear is None or any(_order(layout, m) != order for m in layout.fields):
        return None
    if len(layout.buffers) == len(layout.fields):
        return f"llama::mapping::MultiBlobSoA<Extents, Record{linear}>"
    if not single:
        return None
    sizes = [layout.structure.fields[m.field].bytes for m in layout.fields]
    record = min(a.stride for a in first.axes)
    if max(m.offset + size for m, size in zip(layout.fields, sizes, strict=True)) <= record:
        ascending = [m.offset for m in layout.fields] == sorted(m.offset for m in layout.fields)
        kind = "PackedAoS" if record == sum(sizes) and ascending else "AlignedAoS" if ascending else "MinAlignedAoS"
        return f"llama::mapping::{kind}<Extents, Record{linear}>"
    if all(_dense(layout, m) for m in layout.fields):
        return f"llama::mapping::PackedSingleBlobSoA<Extents, Record{linear}>"
    return None


def kokkos_views(layout: Relayout) -> tuple[str, ...] | None:
    """One ``Kokkos::View`` declaration for each buffer, or ``None`` where a dimension is split.

    Records become views of a struct. ``LayoutRight`` is row-major, ``LayoutLeft`` column-major, ``LayoutStride`` any other
    order of the dimensions.
    """
    if any(a.part != "whole" for m in layout.fields for a in m.axes):
        return None
    views = []
    for number, buffer in enumerate(layout.buffers):
        maps = [m for m in layout.fields if m.buffer == number]
        order = {_order(layout, m) for m in maps}
        if len({m.axes for m in maps}) > 1 or (len(maps) > 1 and not _is_record(layout, maps)):
            return None
        kind = {"right": "LayoutRight", "left": "LayoutLeft", None: "LayoutStride"}[order.pop()]
        field = layout.structure.fields[maps[0].field]
        name = identifier(buffer.name)
        scalar = len(maps) == 1 and field.type and field.type.replace(" ", "_").isidentifier()
        what = field.type if scalar else f"{name}_record"
        views.append(f"Kokkos::View<{what}{'*' * len(layout.structure.dims)}, Kokkos::{kind}> {name}")
    return tuple(views)


def _order(layout: Relayout, one: FieldMap) -> str | None:
    """``right`` where the last dimension is fastest, ``left`` where the first is, else ``None``."""
    dims = [a.dim for a in sorted(one.axes, key=lambda a: -a.stride) if layout.structure.dims[a.dim].count > 1]
    if dims == sorted(dims):
        return "right"
    return "left" if dims == sorted(dims, reverse=True) else None


def _is_record(layout: Relayout, maps: list[FieldMap]) -> bool:
    """True if the fields lie side by side in each element."""
    end = max(m.offset + layout.structure.fields[m.field].bytes for m in maps)
    return end <= min(a.stride for a in maps[0].axes)


def _dense(layout: Relayout, one: FieldMap) -> bool:
    """True if the field's values lie one behind the other."""
    return min(a.stride for a in one.axes) == layout.structure.fields[one.field].bytes


def _is_aosoa(layout: Relayout) -> bool:
    """Blocks of lanes, in a block field by field, the lanes side by side; elements in their order."""

    def lanes(axes: tuple[Axis, ...]) -> bool:
        return bool(axes) and axes[-1].part == "mod" and axes[-2].part == "div" and axes[-1].dim == axes[-2].dim

    return all(lanes(m.axes) and m.axes[-1].stride == layout.structure.fields[m.field].bytes for m in layout.fields)
