"""The new place of each field in a candidate's layout, as an expression that a reader can check.

An element has the indices i, j, k, ... of its structure's dimensions, a field its number ``f`` among the fields of its part.
sympy, which simplifies and prints, is imported when an expression is asked for, not before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from layout_advise.layoutalgebra.bridges.declarations import index_letter
from layout_advise.layoutalgebra.derive.structure import FieldMap, Part, Relayout
from layout_advise.layoutalgebra.rules.map_printing import expr_to_sympy
from layout_advise.layoutalgebra.sets.index_expressions import Expr, Index, constant, digit, evaluate, linear

NAMED = 8
"""So many fields of a part are named."""


def map_expression(layout: Relayout, part: Part) -> Any:
    """The byte of the part's buffer at which a field of an element begins, as a sympy expression in the indices and ``f``.

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
    maps, expression = _maps(layout, part), map_expression(layout, part)
    symbols = {symbol.name for symbol in expression.free_symbols}
    names = [layout.structure.fields[m.field].name for m in maps]
    buffers = list(dict.fromkeys(layout.buffers[m.buffer].name for m in maps))
    keys = {"f": list(range(len(maps))), "at": [m.offset for m in maps]}
    legend = [f"{name}: {_legend(keys[name], names)}" for name in keys if name in symbols]
    legend += [f"{index_letter(k)} < {dim.count}" for k, dim in enumerate(layout.structure.dims) if dim.count > 1]
    if layout.chosen is not None:
        legend.append(f"of the chosen elements, one of {layout.chosen.block} neighbours")
    where = buffers[0] if len(buffers) == 1 else "the array of its field"
    return "; ".join([f"byte = {_printer().doprint(expression)} of {where}", *legend])


def _legend(keys: list[int], names: list[str]) -> str:
    more = f", {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"{key} {name}" for key, name in zip(keys[:NAMED], names, strict=False)) + more


def _maps(layout: Relayout, part: Part) -> list[FieldMap]:
    """The maps of the part's fields; of a part that several buffers of one kind share, of all of them."""
    numbers = {field.name: number for number, field in enumerate(layout.structure.fields)}
    return [layout.fields[numbers[name]] for name in part.fields]


def _printer() -> Any:
    """Prints quotients and remainders as Python does."""
    from sympy.printing.str import StrPrinter

    class IntegerPrinter(StrPrinter):  # type: ignore[misc]
        """``i // 4`` and ``i % 4`` for floor(i/4) and Mod(i, 4)."""

        def _print_floor(self, expr: Any) -> str:
            over, under = expr.args[0].as_numer_denom()
            return f"({self.doprint(over)} // {self.doprint(under)})"

        def _print_Mod(self, expr: Any) -> str:
            value, by = expr.args
            return f"{self.doprint(value)} % {self.doprint(by)}"  # sympy puts parentheses around factors

    return IntegerPrinter()
