"""Rules of compares and ``select``."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import Ty, mask, sign_bit
from layout_advise.mockup.ir.rules.form import ExpressionRule, T, ValueForm, is_const, widens_bit


def equal(name: str) -> ExpressionRule:
    """The rule of ``eq`` or ``ne``."""

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        a, b = args
        if a == b:
            return f.const("i1", int(name == "eq"))
        if b.op == "const" and a.op in ("zext", "sext") and a.args[0].ty == "i1":
            one = 1 if a.op == "zext" else mask(a.ty)
            if b.imm in (0, one):
                return a.args[0] if (b.imm == one) == (name == "eq") else f.negate(a.args[0])
        if b.op == "const" and a.op == "zext" and b.imm <= mask(a.args[0].ty):
            return f.build(name, "i1", a.args[0], f.const(a.args[0].ty, b.imm))
        return f.build(name, "i1", a.args[0], b.args[0]) if _widened_alike(a, b) else None

    return rule


def _widened_alike(a: T, b: T) -> bool:
    return a.op == "zext" and b.op == "zext" and a.args[0].ty == b.args[0].ty


def less(name: str) -> ExpressionRule:
    """The rule of ``slt``, ``sle``, ``ult`` or ``ule``; against a constant ``<=`` becomes ``<``."""
    greatest = sign_bit if name[0] == "s" else lambda ty: 0  # one past the greatest value, modulo the width

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        a, b = args
        if a == b:
            return f.const("i1", int(name[2] == "e"))
        if name[0] == "u" and (found := _unsigned(f, name, a, b)) is not None:
            return found
        if name == "slt" and is_const(b, 0) and widens_bit(a):
            return a.args[0]
        if name[2] == "e" and b.op == "const" and not is_const(b, greatest(b.ty) - 1):
            return f.build(name[:2] + "t", "i1", a, f.const(b.ty, b.imm + 1))
        if name == "sle" and a.op == "const" and not is_const(a, sign_bit(a.ty)):
            return f.build("slt", "i1", f.const(a.ty, a.imm - 1), b)
        return None

    return rule


def _unsigned(f: ValueForm[T], name: str, a: T, b: T) -> T | None:
    if name == "ult" and is_const(a, 0):
        return f.build("ne", "i1", b, a)
    if name == "ult" and is_const(b, 1):
        return f.build("eq", "i1", a, f.const(a.ty, 0))
    if name == "ule" and is_const(b, 0):
        return f.build("eq", "i1", a, b)
    return f.build(name, "i1", a.args[0], b.args[0]) if _widened_alike(a, b) else None


def select(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    condition, yes, no = args
    if yes == no:
        return yes
    if condition.op == "const":
        return yes if condition.imm else no
    if condition.op == "not":
        return f.select(ty, condition.args[0], no, yes)
    if (inner := _same_choice(yes, condition)) is not None:  # merged under a mask, and used under the same one only
        return f.select(ty, condition, f.bitcast(ty, inner.args[1]), no)
    if (inner := _same_choice(no, condition)) is not None:
        return f.select(ty, condition, yes, f.bitcast(ty, inner.args[2]))
    if is_const(yes, -1) and is_const(no, 0) and ty[0] == "i":
        return f.sext(ty, condition)
    if is_const(yes, 0) and is_const(no, -1) and ty[0] == "i":
        return f.sext(ty, f.negate(condition))
    return _select_moved(f, ty, condition, yes, no)


def _same_choice(x: T, condition: T) -> T | None:
    """``x``, but for its type, if it chooses by ``condition``."""
    inner = x.args[0] if x.op == "bitcast" else x
    return inner if inner.op == "select" and inner.args[0] == condition else None


def _select_moved(f: ValueForm[T], ty: Ty, condition: T, yes: T, no: T) -> T | None:
    """The choice between the operands of a conversion that both arms go through (a constant goes through any)."""
    ops = {x.op for x in (yes, no)} - {"const"}
    if ty == "i64" and ops == {"zext"} and (narrow := _narrow_type(yes, no)) is not None:
        return f.zext(ty, f.select(narrow, condition, f.trunc(narrow, yes), f.trunc(narrow, no)))
    if ty == "i64" and "pair" in ops and ops <= {"pair", "zext"}:
        low = f.select("i32", condition, f.lo32(yes), f.lo32(no))
        return f.pair(low, f.select("i32", condition, f.hi32(yes), f.hi32(no)))
    if ty[0] == "i" and ops == {"bitcast"}:
        real: Ty = "f64" if ty == "i64" else "f32"
        return f.bitcast(ty, f.select(real, condition, f.bitcast(real, yes), f.bitcast(real, no)))
    return None


def _narrow_type(a: T, b: T) -> Ty | None:
    """The type that both arms are widened from, wide enough for a constant arm."""
    types = {x.args[0].ty for x in (a, b) if x.op == "zext"}
    if len(types) != 1:
        return None
    ty = types.pop()
    fits = all(x.imm <= mask(ty) for x in (a, b) if x.op == "const")
    return ty if fits and ty != "i1" else None
