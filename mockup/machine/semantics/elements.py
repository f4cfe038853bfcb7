"""Elements of vectors as expressions, and the 64-bit lanes that they are in."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import bitcast, hi32, lo32, pair, part, whole

INTEGER: dict[int, Ty] = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
"""The integer type of so many bytes."""
ZERO = Const("i64", 0)


def split(lanes: Sequence[Expr], ty: Ty) -> list[Expr]:
    """i64 lanes as elements of ``ty``, lowest first."""
    if ty in ("i64", "f64"):
        return [bitcast(ty, lane) for lane in lanes]
    if ty in ("i32", "f32"):
        return [bitcast(ty, half(lane)) for lane in lanes for half in (lo32, hi32)]
    return [part(lane, number, ty) for lane in lanes for number in range(64 // BITS[ty])]


def join(elements: Sequence[Expr]) -> list[Expr]:
    """Elements of one type as i64 lanes; inverse of :func:`split`. Their number fills whole lanes."""
    ty = elements[0].ty
    if BITS[ty] == 64:
        return [bitcast("i64", e) for e in elements]
    numbers = [bitcast("i32", e) for e in elements] if BITS[ty] == 32 else elements
    count = 64 // BITS[ty]
    return [whole(numbers[i : i + count]) for i in range(0, len(numbers), count)]


def recast(elements: Sequence[Expr], ty: Ty) -> list[Expr]:
    """The same bits as elements of ``ty``."""
    if BITS[elements[0].ty] == BITS[ty]:
        return [bitcast(ty, element) for element in elements]
    if sum(BITS[e.ty] for e in elements) < 64:
        raise AssertionError("elements that do not fill a lane")
    return split(join(elements), ty)


def merge(value: Expr, lane: Expr) -> Expr:
    """``lane`` with its low bits replaced by ``value``."""
    if BITS[value.ty] == 64:
        return bitcast("i64", value)
    return pair(bitcast("i32", value), hi32(lane))
