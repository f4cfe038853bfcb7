"""Rules of integer arithmetic: sums, products, shifts, and divisions of 128 bits."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Ty, sign_bit
from layout_advise.mockup.ir.rules.form import HALF, ExpressionRule, T, ValueForm, is_const


def add(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, b = args
    if is_const(b, 0):
        return a
    if b.op == "const" and a.op == "add" and a.args[1].op == "const":
        return f.build("add", ty, a.args[0], f.const(ty, a.args[1].imm + b.imm))
    return None


def sub(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, b = args
    if a == b:
        return f.const(ty, 0)
    if b.op == "const":
        return f.build("add", ty, a, f.const(ty, -b.imm))
    return f.build("neg", ty, b) if is_const(a, 0) else None


def mul(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, b = args
    if is_const(b, 1):
        return a
    return b if is_const(b, 0) else None


def shift(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, count = args
    return a if is_const(count, 0) or is_const(a, 0) else None


def shl(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, count = args
    if ty == "i64" and is_const(count, 32):
        return f.pair(f.const("i32", 0), f.lo32(a))
    return shift(f, ty, args)


def lshr(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, count = args
    if _is_half(ty, count):
        return f.zext(ty, f.high(a))
    if count.op == "const" and a.op == "zext" and count.imm >= BITS[a.args[0].ty]:
        return f.const(ty, 0)
    if _takes_high_half(a, count):
        return f.zext(ty, _rest(f, "lshr", a, count))
    return shift(f, ty, args)


def ashr(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    a, count = args
    if _is_half(ty, count):
        return f.sext(ty, f.high(a))
    if _takes_high_half(a, count):
        return f.sext(ty, _rest(f, "ashr", a, count))
    return shift(f, ty, args)


def _is_half(ty: Ty, count: T) -> bool:
    """Returns whether a shift to the right by ``count`` leaves the high half."""
    return ty in HALF and is_const(count, BITS[HALF[ty]])


def _takes_high_half(a: T, count: T) -> bool:
    """Returns whether a shift to the right leaves nothing of the low half of a pair."""
    return a.op == "pair" and count.op == "const" and BITS[HALF[a.ty]] <= count.imm < BITS[a.ty]


def _rest(f: ValueForm[T], name: str, a: T, count: T) -> T:
    half = HALF[a.ty]
    return f.build(name, half, a.args[1], f.const(half, count.imm - BITS[half]))


def inverse(name: str) -> ExpressionRule:
    """The rule of an operation that undoes itself."""

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        return args[0].args[0] if args[0].op == name else None

    return rule


def divide(narrow: str) -> ExpressionRule:
    """``wide.*(high, low, divisor)``: the plain division ``narrow`` where the high half only extends the low one."""
    unsigned = narrow[0] == "u"

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        high, low, divisor = args
        sign = f.build("ashr", ty, low, f.const(ty, BITS[ty] - 1))
        extends = is_const(high, 0) if unsigned else (high == sign or (is_const(high, 0) and nonnegative(low)))
        if extends:
            return f.build(narrow, ty, low, divisor)
        if ty == "i32":  # exact in 64 bits: a quotient that does not fit would have trapped
            wide = f.build("zext" if unsigned else "sext", "i64", divisor)
            return f.lo32(f.build(narrow, "i64", f.pair(low, high), wide))
        return None

    return rule


def nonnegative(x: T) -> bool:
    """Returns whether the sign bit of an integer is known to be clear."""
    if x.op == "const":
        return not x.imm & sign_bit(x.ty)
    return x.op == "zext" or (x.op == "lshr" and x.args[1].op == "const" and bool(x.args[1].imm > 0))
