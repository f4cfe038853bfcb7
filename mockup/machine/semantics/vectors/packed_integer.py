"""Packed integer arithmetic on 8, 16, 32 and 64-bit elements."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import FALSE, TRUE, build, const, sext, trunc, zext
from layout_advise.mockup.machine.disassembly import Immediate
from layout_advise.mockup.machine.semantics.context import Context, rule

_ELEMENT: dict[str, Ty] = {"b": "i8", "w": "i16", "d": "i32", "q": "i64"}
_WIDER: dict[Ty, Ty] = {"i8": "i16", "i16": "i32", "i32": "i64"}
Binary = Callable[[Expr, Expr], Expr]


def binary(c: Context, ty: Ty, compute: Binary) -> None:
    """``dest = compute(first, second)`` per element of ``ty``."""
    dest, first, second = c.sources()
    size = c.vector_size()
    pairs = zip(c.elements(first, ty, size), c.elements(second, ty, size), strict=True)
    c.set_packed(dest, [compute(a, b) for a, b in pairs])


def _plain(name: str) -> Binary:
    return lambda a, b: build(name, a.ty, a, b)


@rule(*(f"p{name}{size}" for name, size in product(("add", "sub"), "bwdq")), "pmullw", "pmulld", "pmullq")
def add_multiply(c: Context) -> None:
    binary(c, _ELEMENT[c.name[-1]], _plain({"a": "add", "s": "sub", "m": "mul"}[c.name[1]]))


@rule(*(f"p{name}{sign}{size}" for name, sign, size in product(("min", "max"), "su", "bwdq")))
def extreme(c: Context) -> None:
    binary(c, _ELEMENT[c.name[-1]], _plain(c.name[4] + c.name[1:4]))


def integer_predicate(number: int, signed: bool, a: Expr, b: Expr) -> Expr:
    """Predicate ``number`` (0 to 7) of vpcmp as an i1."""
    less, least = ("slt", "sle") if signed else ("ult", "ule")
    forms = (
        build("eq", "i1", a, b), build(less, "i1", a, b), build(least, "i1", a, b), FALSE,
        build("ne", "i1", a, b), build(least, "i1", b, a), build(less, "i1", b, a), TRUE,
    )  # fmt: skip
    return forms[number]


@rule(*(f"pcmp{name}{size}" for name, size in product(("eq", "gt"), "bwdq")))
def compare(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    if c.insn.evex:  # into a mask
        size = c.vector_size()
        pairs = zip(c.elements(c.ops[1], ty, size), c.elements(c.ops[2], ty, size), strict=True)
        c.set_bits(c.ops[0], [integer_predicate(0 if c.name[4:6] == "eq" else 6, True, a, b) for a, b in pairs])
    elif c.name[4:6] == "eq":
        binary(c, ty, lambda a, b: sext(ty, build("eq", "i1", a, b)))
    else:
        binary(c, ty, lambda a, b: sext(ty, build("slt", "i1", b, a)))


def _widened(ty: Ty, signed: bool, compute: Callable[[Expr, Expr], Expr]) -> Binary:
    """``compute`` in elements twice as wide, cut back."""
    widen = sext if signed else zext
    return lambda a, b: trunc(ty, compute(widen(_WIDER[ty], a), widen(_WIDER[ty], b)))


@rule("pmulhw", "pmulhuw", "pmulhrsw")
def multiply_high(c: Context) -> None:
    def high(a: Expr, b: Expr) -> Expr:
        whole = build("mul", "i32", a, b)
        if c.name != "pmulhrsw":
            return build("lshr", "i32", whole, Const("i32", 16))
        half = build("add", "i32", build("ashr", "i32", whole, Const("i32", 14)), Const("i32", 1))
        return build("lshr", "i32", half, Const("i32", 1))

    binary(c, "i16", _widened("i16", c.name != "pmulhuw", high))


@rule("pmuludq", "pmuldq")
def multiply_even(c: Context) -> None:
    widen = zext if c.name == "pmuludq" else sext
    binary(c, "i64", lambda a, b: build("mul", "i64", widen("i64", trunc("i32", a)), widen("i64", trunc("i32", b))))


@rule("pmaddwd")
def multiply_add(c: Context) -> None:
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, "i16", size), c.elements(second, "i16", size)
    products = [build("mul", "i32", sext("i32", x), sext("i32", y)) for x, y in zip(a, b, strict=True)]
    c.set_packed(dest, [build("add", "i32", products[i], products[i + 1]) for i in range(0, len(products), 2)])


def _clamp(value: Expr, low: int, high: int) -> Expr:
    raised = build("smax", value.ty, value, const(value.ty, low))
    return build("smin", value.ty, raised, const(value.ty, high))


def _range(ty: Ty, signed: bool) -> tuple[int, int]:
    bits = BITS[ty]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


@rule(*(f"p{name}{sign}{size}" for name, sign, size in product(("add", "sub"), ("s", "us"), "bw")))
def saturating(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    signed = "us" not in c.name[4:]
    name = c.name[1:4]
    widen = sext if signed else zext

    def compute(a: Expr, b: Expr) -> Expr:
        total = build(name, "i32", widen("i32", a), widen("i32", b))
        return trunc(ty, _clamp(total, *_range(ty, signed)))

    binary(c, ty, compute)


@rule("packsswb", "packssdw", "packuswb", "packusdw")
def pack(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    wide = _WIDER[ty]
    low, high = _range(ty, c.name[4] == "s")
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, wide, size), c.elements(second, wide, size)
    per = 128 // BITS[wide]
    result = [
        trunc(ty, _clamp(sext("i32", x), low, high))
        for at in range(0, len(a), per)
        for source in (a, b)
        for x in source[at : at + per]
    ]
    c.set_packed(dest, result)


@rule("pavgb", "pavgw")
def average(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]

    def compute(a: Expr, b: Expr) -> Expr:
        total = build("add", "i32", build("add", "i32", zext("i32", a), zext("i32", b)), Const("i32", 1))
        return trunc(ty, build("lshr", "i32", total, Const("i32", 1)))

    binary(c, ty, compute)


@rule("pabsb", "pabsw", "pabsd", "pabsq")
def absolute(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    values = c.elements(c.ops[1], ty, c.vector_size())
    c.set_packed(c.vector(c.ops[0]), [build("smax", ty, v, build("neg", ty, v)) for v in values])


@rule("psignb", "psignw", "psignd")
def sign(c: Context) -> None:
    def compute(a: Expr, b: Expr) -> Expr:
        zero = Const(a.ty, 0)
        kept = build("select", a.ty, build("eq", "i1", b, zero), zero, a)
        return build("select", a.ty, build("slt", "i1", b, zero), build("neg", a.ty, a), kept)

    binary(c, _ELEMENT[c.name[-1]], compute)


@rule("phaddw", "phaddd", "phsubw", "phsubd")
def horizontal(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, ty, size), c.elements(second, ty, size)
    per = 128 // BITS[ty]
    result = [
        build(c.name[2:5], ty, source[i], source[i + 1])
        for at in range(0, len(a), per)
        for source in (a, b)
        for i in range(at, at + per, 2)
    ]
    c.set_packed(dest, result)


@rule("psadbw")
def sum_of_differences(c: Context) -> None:
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, "i8", size), c.elements(second, "i8", size)
    result: list[Expr] = []
    for at in range(0, len(a), 8):
        total: Expr = Const("i64", 0)
        for x, y in zip(a[at : at + 8], b[at : at + 8], strict=True):
            apart = build("sub", "i8", build("umax", "i8", x, y), build("umin", "i8", x, y))
            total = build("add", "i64", total, zext("i64", apart))
        result.append(total)
    c.set_packed(dest, result)


_SHIFTS = {"psll": "shl", "psrl": "lshr", "psra": "ashr"}


def _shift(name: str, value: Expr, count: Expr) -> Expr:
    """Counts at or beyond the width give 0, or copies of the sign."""
    ty = value.ty
    bits = BITS[ty]
    if isinstance(count, Const):
        if count.value < bits:
            return build(name, ty, value, Const(ty, count.value))
        return build(name, ty, value, Const(ty, bits - 1)) if name == "ashr" else Const(ty, 0)
    inside = build("ult", "i1", count, Const(count.ty, bits))
    masked = build("and", count.ty, count, Const(count.ty, bits - 1))
    if name == "ashr":
        most = Const(ty, bits - 1)
        return build(name, ty, value, build("select", ty, inside, trunc(ty, masked), most))
    return build("select", ty, inside, build(name, ty, value, trunc(ty, masked)), Const(ty, 0))


@rule("psllw", "pslld", "psllq", "psrlw", "psrld", "psrlq", "psraw", "psrad", "psraq")
def shift_all(c: Context) -> None:
    name, ty = _SHIFTS[c.name[:4]], _ELEMENT[c.name[-1]]
    dest = c.vector(c.ops[0])
    size = c.vector_size()
    source, by = (c.ops[0], c.ops[1]) if len(c.ops) == 2 else (c.ops[1], c.ops[2])
    count: Expr = Const("i64", c.immediate()) if isinstance(by, Immediate) else c.lanes(by, 16)[0]
    c.set_packed(dest, [_shift(name, value, count) for value in c.elements(source, ty, size)])


@rule(*(f"{name}v{size}" for name, size in product(_SHIFTS, "wdq")))
def shift_each(c: Context) -> None:
    name = _SHIFTS[c.name[:4]]
    binary(c, _ELEMENT[c.name[-1]], lambda a, b: _shift(name, a, b))


_EXTENDS = ("bw", "bd", "bq", "wd", "wq", "dq")


@rule(*(f"pmov{sign}x{pair}" for sign, pair in product("sz", _EXTENDS)))
def extend(c: Context) -> None:
    widen = sext if c.name[4] == "s" else zext
    narrow, wide = _ELEMENT[c.name[-2]], _ELEMENT[c.name[-1]]
    dest = c.vector(c.ops[0])
    count = dest.bytes * 8 // BITS[wide]
    values = c.elements(c.ops[1], narrow, count * BITS[narrow] // 8)
    c.set_packed(dest, [widen(wide, value) for value in values])
