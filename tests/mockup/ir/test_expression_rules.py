"""Simplification must keep the value: random expressions, built plainly and built with rules, evaluated side by side."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Gpr, Op, Read, Ty
from layout_advise.mockup.ir.evaluate import evaluate, is_nan
from layout_advise.mockup.ir.expressions import build, rewrite
from tests.support.lifting.interpret import State, compute

INTEGERS: tuple[Ty, ...] = ("i8", "i16", "i32", "i64")
BINARY = ("add", "sub", "mul", "and", "or", "xor", "umin", "smax", "umulhi", "smulhi")
COMPARE = ("eq", "ne", "slt", "sle", "ult", "ule")
VALUES = st.one_of(
    st.sampled_from(
        [0, 1, 2, 31, 32, 63, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 0x7FF0000000000001, 0x8000000080000000]
    ),
    st.integers(0, 2**64 - 1),
)


@st.composite
def expressions(draw: st.DrawFn, ty: Ty = "i64", depth: int = 4) -> Expr:
    def sub(of: Ty) -> Expr:
        return draw(expressions(ty=of, depth=depth - 1))

    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if ty == "i64" and draw(st.booleans()):
            return Read(Gpr(draw(st.integers(0, 3))), "i64")
        return Const(ty, draw(VALUES) % 2 ** BITS[ty])
    if ty == "i1":
        of = draw(st.sampled_from(INTEGERS))
        kind = draw(st.integers(0, 2))
        if kind == 0:
            return Op(draw(st.sampled_from(("and", "or", "xor"))), "i1", (sub("i1"), sub("i1")))
        return Op("not", "i1", (sub("i1"),)) if kind == 1 else Op(draw(st.sampled_from(COMPARE)), "i1", (sub(of), sub(of)))
    if ty in ("f32", "f64"):
        integer: Ty = "i32" if ty == "f32" else "i64"
        name = draw(st.sampled_from(("bitcast", "fneg", "fabs", "select", "bitcast")))
        if name == "bitcast":
            return Op("bitcast", ty, (sub(integer),))
        return Op("select", ty, (sub("i1"), sub(ty), sub(ty))) if name == "select" else Op(name, ty, (sub(ty),))
    choice = draw(st.sampled_from(("binary", "binary", "unary", "shift", "select", "widen", "cut", "half", "float")))
    if choice == "unary":
        return Op(draw(st.sampled_from(("neg", "not"))), ty, (sub(ty),))
    if choice == "shift":
        name = draw(st.sampled_from(("shl", "lshr", "ashr", "rotl")))
        return Op(name, ty, (sub(ty), Const(ty, draw(st.integers(0, BITS[ty] - 1)))))
    if choice == "select":
        return Op("select", ty, (sub("i1"), sub(ty), sub(ty)))
    if choice == "widen":
        narrower: list[Ty] = ["i1", *(t for t in INTEGERS if BITS[t] < BITS[ty])]
        return Op(draw(st.sampled_from(("zext", "sext"))), ty, (sub(draw(st.sampled_from(narrower))),))
    if choice == "cut" and ty != "i64":
        return Op("trunc", ty, (sub(draw(st.sampled_from([t for t in INTEGERS if BITS[t] > BITS[ty]]))),))
    if choice == "half" and ty == "i32":
        return Op(draw(st.sampled_from(("lo32", "hi32"))), "i32", (sub("i64"),))
    if choice == "half" and ty == "i64":
        return Op("pair", "i64", (sub("i32"), sub("i32")))
    if choice == "float" and BITS[ty] >= 32:
        return Op("bitcast", ty, (sub("f32" if ty == "i32" else "f64"),))
    return Op(draw(st.sampled_from(BINARY)), ty, (sub(ty), sub(ty)))


@settings(max_examples=600, deadline=None)
@given(expressions(), st.lists(VALUES, min_size=4, max_size=4))
def test_rules_keep_the_value(plain: Expr, values: list[int]) -> None:
    state = State({Gpr(i): value for i, value in enumerate(values)})
    simplified = rewrite(plain, lambda leaf: leaf)
    assert simplified.ty == plain.ty
    assert compute(simplified, state, {}) == compute(plain, state, {})


@settings(max_examples=300, deadline=None)
@given(expressions(ty="i32"), VALUES, st.booleans())
def test_divisions_narrow_when_the_upper_half_extends(low: Expr, divisor: int, signed: bool) -> None:
    d = Const("i32", divisor % 2**32 or 7)
    high = build("ashr", "i32", low, Const("i32", 31)) if signed else Const("i32", 0)
    found = build("wide.sdiv" if signed else "wide.udiv", "i32", high, low, d)
    state = State({Gpr(i): 0x123456789ABCDEF * (i + 1) % 2**64 for i in range(4)})
    want = evaluate("sdiv" if signed else "udiv", "i32", (compute(low, state, {}), d.value), ("i32", "i32"))
    assert compute(found, state, {}) == want
    assert not (isinstance(found, Op) and found.name.startswith("wide."))


def test_unknown_upper_half_of_a_64_bit_division_stays_wide() -> None:
    a, b, c = (Read(Gpr(i), "i64") for i in range(3))
    found = build("wide.udiv", "i64", a, b, c)
    assert isinstance(found, Op)
    assert found.name == "wide.udiv"


def test_shuffles_are_renaming() -> None:
    lane = Read(Gpr(0), "i64")
    halves = build("lo32", "i32", lane), build("hi32", "i32", lane)
    assert build("pair", "i64", *halves) == lane
    assert build("hi32", "i32", build("pair", "i64", halves[1], halves[0])) == halves[0]
    double = build("bitcast", "f64", lane)
    assert build("bitcast", "i64", double) == lane
    flipped = build("xor", "i64", build("bitcast", "i64", build("fsqrt", "f64", double)), Const("i64", 1 << 63))
    assert build("bitcast", "f64", flipped) == build("fneg", "f64", build("fsqrt", "f64", double))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_fma_in_single_precision_is_rounded_once(a: int, b: int, c: int) -> None:
    import ctypes

    libm = ctypes.CDLL("libm.so.6")
    libm.fmaf.restype = ctypes.c_float
    libm.fmaf.argtypes = [ctypes.c_float] * 3
    operands = [ctypes.c_float.from_buffer_copy(x.to_bytes(4, "little")) for x in (a, b, c)]
    want = int.from_bytes(bytes(ctypes.c_float(libm.fmaf(*operands))), "little")
    got = evaluate("fma", "f32", (a, b, c), ("f32",) * 3)
    assert got == want or (is_nan(got, "f32") and is_nan(want, "f32"))
