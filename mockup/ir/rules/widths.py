"""Rules of operations that change the width or the type: shuffles vanish, conversions meet their inverse."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Ty, sign_bit
from layout_advise.mockup.ir.rules.bitwise import BITWISE
from layout_advise.mockup.ir.rules.form import HALF, HIGH, ExpressionRule, T, ValueForm, is_const, widens_bit


def extend(name: str) -> ExpressionRule:
    """The rule of ``zext`` or ``sext``."""

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        (a,) = args
        if a.ty == ty:
            return a
        return f.build(a.op, ty, *a.args) if a.op in (name, "zext") else None

    return rule


def trunc(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    (a,) = args
    if a.ty == ty:
        return a
    if (shifted := _shifted_part(f, ty, a)) is not None:
        return shifted
    if a.ty == "i64":
        return f.lo32(a) if ty == "i32" else f.trunc(ty, f.lo32(a))
    if a.op in ("trunc", "pair"):
        return f.trunc(ty, a.args[0])
    if a.op in ("zext", "sext"):
        return _less_widened(f, ty, a)
    if a.op in BITWISE or a.op == "not":
        return f.build(a.op, ty, *(f.trunc(ty, x) for x in a.args))
    if _chooses(a, "zext"):
        return f.select(ty, a.args[0], *(f.trunc(ty, x) for x in a.args[1:]))
    return None


def _shifted_part(f: ValueForm[T], ty: Ty, a: T) -> T | None:
    """The part of a pair that a shift to the right by whole parts has brought down."""
    if a.op != "lshr" or a.args[0].op not in ("pair", "zext") or a.args[1].op != "const" or ty not in HALF.values():
        return None
    number, beside = divmod(int(a.args[1].imm), BITS[ty])
    return f.part(a.args[0], number, ty) if not beside and number < BITS[a.ty] // BITS[ty] else None


def _less_widened(f: ValueForm[T], ty: Ty, widened: T) -> T:
    """A zext or sext cut to ``ty``: the inner value cut, as it is, or widened less."""
    inner = widened.args[0]
    return f.build("trunc" if BITS[inner.ty] >= BITS[ty] else widened.op, ty, inner)


def _chooses(a: T, *ops: str) -> bool:
    """Returns whether ``a`` is a choice between constants and results of ``ops``."""
    return a.op == "select" and all(x.op == "const" or x.op in ops for x in a.args[1:])


def lo32(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    (a,) = args
    if (shifted := _shifted_part(f, ty, a)) is not None:
        return shifted
    if a.op == "pair":
        return a.args[0]
    if a.op in ("zext", "sext"):
        return _less_widened(f, "i32", a)
    if a.op in BITWISE or a.op in ("add", "sub", "mul", "neg", "not"):  # the low half depends on the low halves only
        return f.build(a.op, "i32", *(f.lo32(x) for x in a.args))
    if _chooses(a, "pair", "zext", "sext"):
        return f.select("i32", a.args[0], *(f.lo32(x) for x in a.args[1:]))
    return None


def high(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    (a,) = args
    if a.op == "pair":
        return a.args[1]
    if a.op == "zext":
        return f.const(ty, 0)
    if a.op == "sext":
        narrow = f.sext(ty, a.args[0])
        return narrow if widens_bit(a) else f.build("ashr", ty, narrow, f.const(ty, BITS[ty] - 1))
    if a.op in BITWISE and any(x.op in ("pair", "zext", "const") for x in a.args):
        return f.build(a.op, ty, *(f.high(x) for x in a.args))
    if _chooses(a, "pair", "zext"):
        return f.select(ty, a.args[0], *(f.high(x) for x in a.args[1:]))
    return None


def pair(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    low, high = args
    if high.op == HIGH[ty] and f.low(high.args[0]) == low:
        return high.args[0]
    if is_const(high, 0):
        return f.zext(ty, low)
    if low == high and widens_bit(low):
        return f.sext(ty, low.args[0])
    if _is_sign(low, high):
        return f.sext(ty, low)
    if low.op == "bitcast" and high.op == "bitcast":
        inner = low.args[0], high.args[0]
        if inner[0].op == inner[1].op and inner[0].op in ("lo32", "hi32"):
            return f.pair(*inner)
    return None


def _is_sign(low: T, high: T) -> bool:
    """Returns whether ``high`` has the sign of ``low`` in every bit: shifted there, or compared with 0."""
    if high.op == "ashr":
        return high.args[0] == low and is_const(high.args[1], BITS[low.ty] - 1)
    if not widens_bit(high) or high.args[0].op != "slt":
        return False
    number, zero = high.args[0].args
    return number == low and is_const(zero, 0)


def pick_bytes(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    low, high, numbers = args
    if numbers.op != "const":
        return None
    picked = [
        f.const("i8", 0) if n & 128 else f.part(high if n & 8 else low, n & 7, "i8")
        for n in int(numbers.imm).to_bytes(8, "little")
    ]
    return f.whole(picked)


def bitcast(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
    (a,) = args
    if a.ty == ty:
        return a
    if a.op == "bitcast":
        return f.bitcast(ty, a.args[0])
    if ty not in ("f32", "f64"):
        return None
    if _chooses(a, "bitcast"):
        return f.select(ty, a.args[0], *(f.bitcast(ty, x) for x in a.args[1:]))
    if a.op in BITWISE and a.args[1].op == "const":
        return _sign_operation(f, ty, a)
    return None


def _sign_operation(f: ValueForm[T], ty: Ty, a: T) -> T | None:
    """fabs and fneg, which are compiled to operations on bits, as operations on floats again."""
    number, bits = f.bitcast(ty, a.args[0]), a.args[1].imm
    if a.op == "and" and bits == sign_bit(ty) - 1:
        return f.build("fabs", ty, number)
    if a.op == "xor" and bits == sign_bit(ty):
        return f.build("fneg", ty, number)
    if a.op == "or" and bits == sign_bit(ty):
        return f.build("fneg", ty, f.build("fabs", ty, number))
    return None
