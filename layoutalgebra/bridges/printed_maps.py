"""The new place of each field in a candidate's layout, as an expression that a reader can check.

An element has the indices i, j, k, ... of its structure's dimensions, a field its number ``f`` among the fields of its part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from layout_advise.layoutalgebra.bridges.declarations import index_letter
from layout_advise.layoutalgebra.derive.structure import FieldMap, Part, Relayout
from layout_advise.layoutalgebra.rules.map_printing import expr_to_sympy
from layout_advise.layoutalgebra.sets.index_expressions import (
    Expr,
    Index,
    constant,
    digit,
    evaluate,
    indices_of,
    linear,
    show,
)

NAMED = 8
"""So many fields of a part are named."""


def map_expression(layout: Relayout, part: Part) -> Any:
    """The byte of the part's buffer at which a field of an element begins, as a sympy expression in the indices and ``f``
    (``pip install layout-advise[algebra]``).

    Fields that are not evenly spaced have the symbol ``at`` for their place in the record.
    """
    return expr_to_sympy(_place(layout, _maps(layout, part)))


def _place(layout: Relayout, maps: list[FieldMap]) -> Expr:
    """The axes that the fields have in common, and where a field begins in the record."""
    terms: list[tuple[int, Expr]] = [(1, _field_place([m.offset for m in maps]))]
    for axis in maps[0].axes:
        count = layout.structure.dims[axis.dim].count
        index: Expr = Index(index_letter(axis.dim), count)
        if axis.part == "div":
            index = digit(index, axis.block)
        elif axis.part == "mod":
            index = digit(index, axis.div, axis.block)
        if count > 1:
            terms.append((axis.stride, index))
    return linear(terms)


def _field_place(offsets: list[int]) -> Expr:
    """The place of field number ``f``: by one step, or by two where fields stand in pairs."""
    first, field = offsets[0], Index("f", len(offsets))
    if len(offsets) == 1:
        return constant(first)
    small, large = offsets[1] - first, offsets[2] - first if len(offsets) > 2 else 0
    plain, paired = linear([(small, field)], first), linear([(large, digit(field, 2)), (small, digit(field, 1, 2))], first)
    fitting = (e for e in (plain, paired) if [evaluate(e, {"f": k}) for k in range(len(offsets))] == offsets)
    return next(fitting, Index("at", max(offsets) + 1))


@lru_cache(maxsize=256)
def printed_map(layout: Relayout, part: Part) -> str:
    """``byte = 96*(i // 4) + 8*(i % 4) + 32*f of p_x_y; f: 0 x, 1 y; i < 1000``: the map with a legend of its variables.

    Empty where two fields of the structure have one name.
    """
    if len({field.name for field in layout.structure.fields}) < len(layout.structure.fields):
        return ""
    maps = _maps(layout, part)
    place = _place(layout, maps)
    symbols = indices_of(place)
    names = [layout.structure.fields[m.field].name for m in maps]
    buffers = list(dict.fromkeys(layout.buffers[m.buffer].name for m in maps))
    keys = {"f": list(range(len(maps))), "at": [m.offset for m in maps]}
    legend = [f"{name}: {_legend(keys[name], names)}" for name in keys if name in symbols]
    legend += [f"{index_letter(k)} < {dim.count}" for k, dim in enumerate(layout.structure.dims) if dim.count > 1]
    if layout.chosen is not None:
        legend.append(f"of the chosen elements, one of {layout.chosen.block} neighbours")
    where = buffers[0] if len(buffers) == 1 else "the array of its field"
    return "; ".join([f"byte = {show(place)} of {where}", *legend])


def _legend(keys: list[int], names: list[str]) -> str:
    more = f", {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"{key} {name}" for key, name in zip(keys[:NAMED], names, strict=False)) + more


def _maps(layout: Relayout, part: Part) -> list[FieldMap]:
    """The maps of the part's fields; of a part that several buffers of one kind share, of all of them."""
    numbers = {field.name: number for number, field in enumerate(layout.structure.fields)}
    return [layout.fields[numbers[name]] for name in part.fields]
