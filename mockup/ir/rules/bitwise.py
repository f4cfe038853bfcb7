"""Rules of ``and``, ``or``, ``xor`` and ``not``: masks made by compares become choices, i64 operations those of halves."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import Ty, mask
from layout_advise.mockup.ir.rules.form import HALF, ExpressionRule, T, ValueForm, is_const, widens_bit

BITWISE = ("and", "or", "xor")
_NARROW: dict[int, Ty] = {mask(ty): ty for ty in HALF.values()}
_OPPOSITE = {"eq": "ne", "ne": "eq"}
_OPPOSITE_SWAPPED = {"slt": "sle", "sle": "slt", "ult": "ule", "ule": "ult"}


def bitwise(name: str) -> ExpressionRule:
    """The rule of ``and``, ``or`` or ``xor``."""

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        a, b = args
        if a == b:
            return f.const(ty, 0) if name == "xor" else a
        if b.op == "const" and (simple := _with_constant(f, name, ty, a, b)) is not None:
            return simple
        if (chosen := _by_mask(f, name, ty, a, b) or _by_mask(f, name, ty, b, a)) is not None:
            return chosen
        return _halves(f, name, a, b) if "pair" in (a.op, b.op) else None

    return rule


def _with_constant(f: ValueForm[T], name: str, ty: Ty, a: T, b: T) -> T | None:
    if b.imm == 0:
        return b if name == "and" else a
    if b.imm == mask(ty):
        return a if name == "and" else b if name == "or" else f.build("not", ty, a)
    if name == "and" and (kept := _NARROW.get(b.imm)) is not None:
        return f.zext(ty, f.trunc(kept, a))
    if a.op == "pair" or (ty == "i64" and a.op in ("zext", "sext") and a.args[0].ty == "i32"):
        return _halves(f, name, a, b)
    return None


def _by_mask(f: ValueForm[T], name: str, ty: Ty, a: T, b: T) -> T | None:
    """The choice that ``and`` with a mask ``a`` makes, or the union of what two such choices leave."""
    if name == "and":
        return f.select(ty, a.args[0], b, f.const(ty, 0)) if widens_bit(a) else None
    both_choose = a.op == "select" and b.op == "select" and a.args[0] == b.args[0]
    if both_choose and is_const(a.args[2], 0) and is_const(b.args[1], 0):
        return f.select(ty, a.args[0], a.args[1], b.args[2])
    return None


def _halves(f: ValueForm[T], name: str, a: T, b: T) -> T:
    half = HALF[a.ty]
    low = f.build(name, half, f.low(a), f.low(b))
    return f.pair(low, f.build(name, half, f.high(a), f.high(b)))


def bit_not(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    (a,) = args
    if a.op == "not":
        return a.args[0]
    if a.op in _OPPOSITE:
        return f.build(_OPPOSITE[a.op], "i1", *a.args)
    if a.op in _OPPOSITE_SWAPPED:
        return f.build(_OPPOSITE_SWAPPED[a.op], "i1", a.args[1], a.args[0])
    if a.op == "pair":
        return f.pair(*(f.build("not", half.ty, half) for half in a.args))
    return f.sext(ty, f.negate(a.args[0])) if widens_bit(a) else None
