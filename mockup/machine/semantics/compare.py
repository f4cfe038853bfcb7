"""Compares: floating-point masks, (u)comis, sign masks, tests of whole vectors."""

from __future__ import annotations

from itertools import product

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import TRUE, build, negate, sext, zext
from layout_advise.mockup.machine.conditions import FALSE
from layout_advise.mockup.machine.disassembly import Register
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.floats import KINDS, elementwise, float_type, is_packed


def predicate(number: int, a: Expr, b: Expr) -> Expr:
    """Predicate ``number`` (0 to 31) of cmpps and its kin as an i1. Those from 16 on differ in signalling only."""

    def less(x: Expr, y: Expr) -> Expr:
        return build("folt", "i1", x, y)

    def least(x: Expr, y: Expr) -> Expr:
        return build("fole", "i1", x, y)

    equal = build("foeq", "i1", a, b)
    unordered = build("funo", "i1", a, b)
    forms = (
        equal, less(a, b), least(a, b), unordered, negate(equal), negate(less(a, b)), negate(least(a, b)),
        negate(unordered), build("or", "i1", equal, unordered), negate(least(b, a)), negate(less(b, a)), FALSE,
        build("and", "i1", negate(equal), negate(unordered)), least(b, a), less(b, a), TRUE,
    )  # fmt: skip
    return forms[number % 16]


@rule(*(f"cmp{kind}" for kind in KINDS))
def compare(c: Context) -> None:
    if not any(isinstance(op, Register) and op.kind == "vector" for op in c.ops):
        raise c.refuse("string operation (cmpsd)")
    number = c.immediate() % (32 if c.vex else 8)
    if c.insn.evex:  # into a mask
        ty = float_type(c.name)
        size = c.vector_size() if is_packed(c.name) else BITS[ty] // 8
        pairs = zip(c.elements(c.ops[1], ty, size), c.elements(c.ops[2], ty, size), strict=True)
        c.set_bits(c.ops[0], [predicate(number, a, b) for a, b in pairs])
        return
    mask: Ty = "i32" if float_type(c.name) == "f32" else "i64"
    elementwise(c, lambda a, b: sext(mask, predicate(number, a, b)))


@rule(*(f"{name}{kind}" for name, kind in product(("comi", "ucomi"), ("ss", "sd"))))
def ordered(c: Context) -> None:
    ty = float_type(c.name)
    c.set_flags("fcmp", c.scalar(c.ops[0], ty), c.scalar(c.ops[1], ty))


@rule("movmskps", "movmskpd", "pmovmskb")
def sign_mask(c: Context) -> None:
    ty: Ty = {"s": "i32", "d": "i64", "b": "i8"}[c.name[-1]]  # type: ignore[assignment]
    dest = c.ops[0]
    total: Expr = Const("i32", 0)
    for i, element in enumerate(c.elements(c.ops[1], ty, c.vector_size())):
        sign = zext("i32", build("slt", "i1", element, Const(ty, 0)))
        total = build("or", "i32", total, build("shl", "i32", sign, Const("i32", i)))
    c.set_integer(dest, zext("i64", total) if c.size(dest) == 8 else total)


@rule("ptest", "testps", "testpd")
def test_vector(c: Context) -> None:
    size = c.vector_size()
    a, b = c.lanes(c.ops[0], size), c.lanes(c.ops[1], size)
    keep = {"ptest": 2**64 - 1, "testps": 0x80000000_80000000, "testpd": 1 << 63}[c.name]
    both: Expr = Const("i64", 0)
    without: Expr = Const("i64", 0)
    for x, y in zip(a, b, strict=True):
        both = build("or", "i64", both, build("and", "i64", x, y))
        without = build("or", "i64", without, build("and", "i64", build("not", "i64", x), y))
    none = Const("i64", 0)
    zero = build("eq", "i1", build("and", "i64", both, Const("i64", keep)), none)
    carry = build("eq", "i1", build("and", "i64", without, Const("i64", keep)), none)
    c.set_flags("bits", carry, zero, FALSE, FALSE, FALSE)
