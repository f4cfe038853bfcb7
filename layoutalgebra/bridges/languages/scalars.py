"""Shared by all languages: names of scalars, extents of axes, and what a layout leaves out."""

from __future__ import annotations

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.bridges.arrays import field_dtype
from layout_advise.layoutalgebra.derive.structure import Axis, Field, Relayout

CPP = {"f4": "float", "f8": "double", **{f"i{n}": f"std::int{8 * n}_t" for n in (1, 2, 4, 8)},
       **{f"u{n}": f"std::uint{8 * n}_t" for n in (1, 2, 4, 8)}}  # fmt: skip
SHORT = {f"{kind}{n}": f"{kind}{8 * n}" for kind, sizes in (("f", (4, 8)), ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)))
         for n in sizes}  # fmt: skip
"""Those of Rust, Zig and Odin."""


def scalar(field: Field, names: dict[str, str]) -> str:
    """The field's type in a language; where it is none of the scalars, an unsigned integer of its size. Raises AlgebraError
    where there is none of that size."""
    found = names.get(field_dtype(field).str[1:]) or names.get(f"u{field.bytes}")
    if found is None:
        raise AlgebraError(f"no type for {field.name}", f"it has {field.bytes} bytes", "choose --as c or c++")
    return found


def extent(layout: Relayout, axis: Axis) -> int:
    """The number of values that an axis takes."""
    count = layout.structure.dims[axis.dim].count
    if axis.part == "mod":
        return axis.block
    return -(-count // axis.block) if axis.part == "div" else count


def digit(axis: Axis, name: str, quotient: str = "/") -> str:
    """An axis' value as an expression of its dimension's index."""
    if axis.part == "div":
        return f"{name} {quotient} {axis.block}"
    if axis.part == "mod":
        return f"{name} {quotient} {axis.div} % {axis.block}" if axis.div > 1 else f"{name} % {axis.block}"
    return name


def require_whole(layout: Relayout, what: str) -> None:
    """Raises AlgebraError for layouts that split a dimension into blocks, which ``what`` has no name for, and for those
    of chosen elements."""
    if layout.chosen is not None or any(axis.part != "whole" for one in layout.fields for axis in one.axes):
        raise AlgebraError(f"{what} has no name for this layout", "it stores elements in blocks", "choose --as c or c++")


def left_out(layout: Relayout, mark: str) -> list[str]:
    """A line on the members that the layout does not hold."""
    names = ", ".join(field.name for field in layout.structure.cold)
    return [f"{mark} not in it, to be kept in a record of their own: {names}"] if names else []
