"""Shifts, rotates, bit tests, the carry flag, counts, and the BMI extensions."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Flags, Gpr, Read
from layout_advise.mockup.ir.expressions import build, const, negate, sext, trunc, zext
from layout_advise.mockup.machine.conditions import FALSE, TRUE, negative, parity, undefined, zero
from layout_advise.mockup.machine.disassembly import Immediate, MemoryOperand
from layout_advise.mockup.machine.semantics.context import Context, rule

_RDX = 2
_SHIFTS = {"shl": "shl", "sal": "shl", "shr": "lshr", "sar": "ashr"}


def _bit(value: Expr, number: int) -> Expr:
    shifted = build("lshr", value.ty, value, Const(value.ty, number))
    return build("ne", "i1", build("and", value.ty, shifted, Const(value.ty, 1)), Const(value.ty, 0))


def _no_flags(c: Context) -> None:
    c.set_flags("bits", *(undefined() for _ in range(5)))


def _shifted(name: str, value: Expr, count: Expr) -> Expr:
    """The shift, done in 32 bits where the operand is narrower (counts up to 31 are allowed there)."""
    if BITS[value.ty] >= 32:
        return build(name, value.ty, value, count)
    wide = sext("i32", value) if name == "ashr" else zext("i32", value)
    return trunc(value.ty, build(name, "i32", wide, count))


@rule("shl", "sal", "shr", "sar")
def shift(c: Context) -> None:
    name = _SHIFTS[c.name]
    a = c.integer(c.ops[0])
    bits = BITS[a.ty]
    wide = a.ty if bits >= 32 else "i32"
    mask = 63 if bits == 64 else 31
    count = c.ops[1] if len(c.ops) > 1 else Immediate(1)
    if not isinstance(count, Immediate):
        amount = build("and", wide, zext(wide, c.integer(count, 1)), Const(wide, mask))
        c.set_integer(c.ops[0], _shifted(name, a, amount))
        _no_flags(c)  # a count of 0 leaves them: nothing is known
        return
    n = count.value & mask
    result = _shifted(name, a, Const(wide, n))
    c.set_integer(c.ops[0], result)
    if n == 0:
        return
    if n >= bits:
        _no_flags(c)
        return
    carry = _bit(a, bits - n if name == "shl" else n - 1)
    overflow: Expr = undefined()
    if n == 1:
        overflow = {"shl": build("xor", "i1", negative(result), carry), "lshr": negative(a), "ashr": FALSE}[name]
    c.set_flags("bits", carry, zero(result), negative(result), overflow, parity(result))


@rule("shlx", "shrx", "sarx")
def shift_without_flags(c: Context) -> None:
    name = _SHIFTS[c.name[:3]]
    a, count = c.integer(c.ops[1]), c.integer(c.ops[2])
    c.set_integer(c.ops[0], build(name, a.ty, a, build("and", a.ty, count, Const(a.ty, BITS[a.ty] - 1))))


@rule("rol", "ror")
def rotate(c: Context) -> None:
    a = c.integer(c.ops[0])
    bits = BITS[a.ty]
    count = c.ops[1] if len(c.ops) > 1 else Immediate(1)
    old = Read(Flags(), "flags")
    if isinstance(count, Immediate):
        n = count.value & (63 if bits == 64 else 31)
        left = n % bits if c.name == "rol" else -n % bits
        result = build("rotl", a.ty, a, Const(a.ty, left))
        if n:
            c.set_flags("carry", _bit(result, 0 if c.name == "rol" else bits - 1), old)
    else:
        amount = trunc(a.ty, zext("i64", c.integer(count, 1)))
        amount = amount if c.name == "rol" else build("neg", a.ty, amount)
        result = build("rotl", a.ty, a, build("and", a.ty, amount, Const(a.ty, bits - 1)))
        c.set_flags("carry", undefined(), old)
    c.set_integer(c.ops[0], result)


@rule("rorx")
def rotate_without_flags(c: Context) -> None:
    a = c.integer(c.ops[1])
    c.set_integer(c.ops[0], build("rotl", a.ty, a, Const(a.ty, -c.immediate() % BITS[a.ty])))


@rule("shld", "shrd")
def double_shift(c: Context) -> None:
    a, b = c.integer(c.ops[0]), c.integer(c.ops[1])
    bits = BITS[a.ty]
    if bits == 16 or not isinstance(c.ops[2], Immediate):
        raise c.refuse("double shift by a variable")
    n = c.ops[2].value & (bits - 1)
    if n == 0:
        c.set_integer(c.ops[0], a)
        return
    here, there = ("shl", "lshr") if c.name == "shld" else ("lshr", "shl")
    result = build("or", a.ty, build(here, a.ty, a, Const(a.ty, n)), build(there, a.ty, b, Const(a.ty, bits - n)))
    carry = _bit(a, bits - n if c.name == "shld" else n - 1)
    c.set_flags("bits", carry, zero(result), negative(result), undefined(), parity(result))
    c.set_integer(c.ops[0], result)


@rule("bt", "bts", "btr", "btc")
def bit_test(c: Context) -> None:
    a = c.integer(c.ops[0])
    number: Expr
    if isinstance(c.ops[1], Immediate):
        number = const(a.ty, c.ops[1].value % BITS[a.ty])
    elif isinstance(c.ops[0], MemoryOperand):
        raise c.refuse("bit string in memory")
    else:
        number = build("and", a.ty, c.integer(c.ops[1]), Const(a.ty, BITS[a.ty] - 1))
    one = Const(a.ty, 1)
    found = build("and", a.ty, build("lshr", a.ty, a, number), one)
    c.set_flags("carry", build("ne", "i1", found, Const(a.ty, 0)), Read(Flags(), "flags"))
    mask = build("shl", a.ty, one, number)
    if c.name == "bts":
        c.set_integer(c.ops[0], build("or", a.ty, a, mask))
    elif c.name == "btr":
        c.set_integer(c.ops[0], build("and", a.ty, a, build("not", a.ty, mask)))
    elif c.name == "btc":
        c.set_integer(c.ops[0], build("xor", a.ty, a, mask))


@rule("clc", "stc", "cmc")
def set_carry(c: Context) -> None:
    carry = {"clc": FALSE, "stc": TRUE}.get(c.name) or negate(c.condition("b"))
    c.set_flags("carry", carry, Read(Flags(), "flags"))


@rule("popcnt")
def popcnt(c: Context) -> None:
    a = c.integer(c.ops[1])
    c.set_flags("bits", FALSE, zero(a), FALSE, FALSE, FALSE)
    c.set_integer(c.ops[0], _count("popcnt", a))


def _count(name: str, a: Expr) -> Expr:
    if a.ty != "i16":
        return build(name, a.ty, a)
    if name == "lzcnt":
        return trunc("i16", build("sub", "i32", build("lzcnt", "i32", zext("i32", a)), Const("i32", 16)))
    guarded = build("or", "i32", zext("i32", a), Const("i32", 0x10000)) if name == "tzcnt" else zext("i32", a)
    return trunc("i16", build(name, "i32", guarded))


@rule("lzcnt", "tzcnt")
def zeros(c: Context) -> None:
    a = c.integer(c.ops[1])
    result = _count(c.name, a)
    c.set_flags("bits", zero(a), zero(result), undefined(), undefined(), undefined())
    c.set_integer(c.ops[0], result)


@rule("bsf", "bsr")
def scan(c: Context) -> None:
    """The destination keeps its value where the source is 0: AMD documents it, Intel's processors do it."""
    a = c.integer(c.ops[1])
    dest = c.ops[0]
    assert not isinstance(dest, Immediate | MemoryOperand)
    if a.ty == "i16":
        raise c.refuse("16-bit bit scan")
    found = _count("tzcnt", a) if c.name == "bsf" else build("sub", a.ty, Const(a.ty, BITS[a.ty] - 1), _count("lzcnt", a))
    c.set_flags("bits", undefined(), zero(a), undefined(), undefined(), undefined())
    c.set_gpr(dest.number, build("select", "i64", zero(a), Read(Gpr(dest.number), "i64"), zext("i64", found)))


def _bmi_flags(c: Context, result: Expr, carry: Expr) -> None:
    c.set_flags("bits", carry, zero(result), negative(result), FALSE, undefined())


@rule("andn")
def andn(c: Context) -> None:
    a, b = c.integer(c.ops[1]), c.integer(c.ops[2])
    result = build("and", a.ty, build("not", a.ty, a), b)
    _bmi_flags(c, result, FALSE)
    c.set_integer(c.ops[0], result)


@rule("blsr", "blsi", "blsmsk")
def lowest_bit(c: Context) -> None:
    a = c.integer(c.ops[1])
    less = build("sub", a.ty, a, Const(a.ty, 1))
    if c.name == "blsi":
        result = build("and", a.ty, build("neg", a.ty, a), a)
        _bmi_flags(c, result, negate(zero(a)))
    else:
        result = build("and" if c.name == "blsr" else "xor", a.ty, less, a)
        _bmi_flags(c, result, zero(a))
    c.set_integer(c.ops[0], result)


def _low_bits(value: Expr, count: Expr) -> Expr:
    """The low ``count`` (0 to 255) bits of ``value``."""
    ty = value.ty
    bits = Const(ty, BITS[ty])
    inside = build("ult", "i1", count, bits)
    masked = build("and", ty, count, Const(ty, BITS[ty] - 1))
    mask = build("sub", ty, build("shl", ty, Const(ty, 1), masked), Const(ty, 1))
    return build("select", ty, inside, build("and", ty, value, mask), value)


@rule("bzhi")
def bzhi(c: Context) -> None:
    a, index = c.integer(c.ops[1]), c.integer(c.ops[2])
    count = build("and", a.ty, index, Const(a.ty, 255))
    result = _low_bits(a, count)
    _bmi_flags(c, result, build("ult", "i1", Const(a.ty, BITS[a.ty] - 1), count))
    c.set_integer(c.ops[0], result)


@rule("bextr")
def bextr(c: Context) -> None:
    a, control = c.integer(c.ops[1]), c.integer(c.ops[2])
    ty = a.ty
    start = build("and", ty, control, Const(ty, 255))
    count = build("and", ty, build("lshr", ty, control, Const(ty, 8)), Const(ty, 255))
    inside = build("ult", "i1", start, Const(ty, BITS[ty]))
    shifted = build("lshr", ty, a, build("and", ty, start, Const(ty, BITS[ty] - 1)))
    result = _low_bits(build("select", ty, inside, shifted, Const(ty, 0)), count)
    c.set_flags("bits", FALSE, zero(result), undefined(), FALSE, undefined())
    c.set_integer(c.ops[0], result)


@rule("mulx")
def mulx(c: Context) -> None:
    a = c.integer(c.ops[2])
    b = c.gpr(_RDX, BITS[a.ty] // 8)
    c.set_integer(c.ops[1], build("mul", a.ty, b, a))
    if a.ty == "i64":
        c.set_integer(c.ops[0], build("umulhi", "i64", b, a))  # second: with equal destinations the high half stays
    else:
        product = build("mul", "i64", zext("i64", b), zext("i64", a))
        c.set_integer(c.ops[0], trunc("i32", build("lshr", "i64", product, Const("i64", 32))))
