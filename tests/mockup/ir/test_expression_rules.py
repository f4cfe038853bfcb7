"""Simplification keeps the value: random expressions, built plainly and with the rules in both forms, evaluated alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Gpr, Op, Read, Ty, mask
from layout_advise.mockup.ir.evaluate import evaluate, is_nan, signed
from layout_advise.mockup.ir.expressions import build, rewrite
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.ir.rules.form import DOUBLE, HALF
from layout_advise.mockup.ir.rules.table import RULES
from layout_advise.mockup.ir.value_graph import Graph, parts
from tests.support.lifting.interpret import State, compute

WHOLE: tuple[Ty, ...] = ("i1", "i8", "i16", "i32", "i64")
INTEGERS = WHOLE[1:]
COMPARE = ("eq", "ne", "slt", "sle", "ult", "ule")
SAME_WIDTH: dict[Ty, Ty] = {"f32": "i32", "i32": "f32", "f64": "i64", "i64": "f64"}
RESULTS: dict[str, tuple[Ty, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "umin", "smin", "smax", "umulhi", "smulhi", "neg"), INTEGERS),
    **dict.fromkeys(("shl", "lshr", "ashr", "rotl"), INTEGERS),
    **dict.fromkeys(("and", "or", "xor", "not"), WHOLE),
    **dict.fromkeys(("zext", "sext"), INTEGERS),
    **dict.fromkeys(COMPARE, ("i1",)),
    **dict.fromkeys(("fneg", "fabs"), ("f32", "f64")),
    "trunc": WHOLE[:4], "lo32": ("i32",), "hi32": ("i32",), "hi16": ("i16",), "hi8": ("i8",),
    "pair": INTEGERS[1:], "pickbytes": ("i64",),
    "bitcast": ("i32", "i64", "f32", "f64"), "select": (*WHOLE, "f32", "f64"),
}  # fmt: skip
"""The types that each operation can have; wide divisions are drawn at the root only, where they may trap."""
VALUES = st.one_of(
    st.sampled_from(
        [0, 1, 2, 31, 32, 63, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 0x7FF0000000000001, 0x8000000080000000]
    ),
    st.integers(0, 2**64 - 1),
)


class Drawer:
    """Draws expressions; now and then one that was drawn before, so that rules of equal operands apply."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.drawn: dict[Ty, list[Expr]] = {}

    def of(self, ty: Ty, depth: int) -> Expr:
        """An expression of type ``ty``, so many operations deep at most."""
        known = self.drawn.setdefault(ty, [])
        if known and self.draw(st.integers(0, 3)) == 0:
            return self.draw(st.sampled_from(known))
        made = self._leaf(ty) if depth == 0 or self.draw(st.integers(0, 5)) == 0 else self._operation(ty, depth - 1)
        known.append(made)
        return made

    def _leaf(self, ty: Ty) -> Expr:
        if self.draw(st.booleans()):
            lane = Read(Gpr(self.draw(st.integers(0, 3))), "i64")
            return lane if ty == "i64" else Op("bitcast", ty, (lane,)) if ty == "f64" else _cut(lane, ty)
        return Const(
            ty,
            self.draw(st.sampled_from((0, 1, 2**64 - 1, 2 ** (BITS[ty] - 1), 2 ** (BITS[ty] - 1) - 1)) | VALUES)
            % 2 ** BITS[ty],
        )

    def _operation(self, ty: Ty, depth: int) -> Expr:
        name = self.draw(st.sampled_from([name for name, made in RESULTS.items() if ty in made]))
        return self.operation(name, ty, depth)

    def operation(self, name: str, ty: Ty, depth: int) -> Expr:
        """The operation ``name`` on expressions."""

        def arg(of: Ty) -> Expr:
            return self.of(of, depth)

        match name:
            case "select":
                return Op(name, ty, (arg("i1"), arg(ty), arg(ty)))
            case "pair":
                return Op(name, ty, (arg(HALF[ty]), arg(HALF[ty])))
            case "lo32" | "hi32" | "hi16" | "hi8":
                return Op(name, ty, (arg(DOUBLE[ty]),))
            case "pickbytes":
                numbers = Const("i64", int.from_bytes(self.draw(st.binary(min_size=8, max_size=8)), "little"))
                return Op(name, ty, (arg(ty), arg(ty), numbers))
            case "bitcast":
                return Op(name, ty, (arg(SAME_WIDTH[ty]),))
            case "zext" | "sext":
                return Op(name, ty, (arg(self.draw(st.sampled_from([t for t in WHOLE if BITS[t] < BITS[ty]]))),))
            case "trunc":
                return Op(name, ty, (arg(self.draw(st.sampled_from([t for t in WHOLE if BITS[t] > BITS[ty]]))),))
            case "shl" | "lshr" | "ashr" | "rotl":
                count = self.draw(st.sampled_from((0, BITS[ty] // 2, BITS[ty] - 1)) | st.integers(0, BITS[ty] - 1))
                return Op(name, ty, (arg(ty), Const(ty, count)))
            case "neg" | "not" | "fneg" | "fabs":
                return Op(name, ty, (arg(ty),))
            case _ if name in COMPARE:
                of = self.draw(st.sampled_from(INTEGERS))
                return Op(name, ty, (arg(of), arg(of)))
            case _ if name.startswith("wide."):
                return Op(name, ty, self._dividend(name, ty, depth))
        return Op(name, ty, (arg(ty), arg(ty)))

    def _dividend(self, name: str, ty: Ty, depth: int) -> tuple[Expr, Expr, Expr]:
        low, divisor = self.of(ty, depth), self.of(ty, depth)
        sign = Op("ashr", ty, (low, Const(ty, BITS[ty] - 1)))
        return self.draw(st.sampled_from((sign, Const(ty, 0), self.of(ty, depth)))), low, divisor


def _cut(lane: Expr, ty: Ty) -> Expr:
    if ty == "f32":
        return Op("bitcast", ty, (_cut(lane, "i32"),))
    return Op("lo32" if ty == "i32" else "trunc", ty, (lane,))


@st.composite
def expressions(draw: st.DrawFn, ty: Ty = "i64", depth: int = 4) -> Expr:
    return Drawer(draw).of(ty, depth)


@st.composite
def operations(draw: st.DrawFn, name: str) -> Expr:
    return Drawer(draw).operation(name, draw(st.sampled_from(RESULTS.get(name, ("i32", "i64")))), 3)


def in_graph(graph: Graph, expr: Expr) -> Node:
    """``expr`` as a node of the value graph, simplified."""
    match expr:
        case Const(ty, value):
            return graph.const(ty, value)
        case Read(place, ty):
            return graph.named.setdefault((place,), graph.raw("livein", ty, (), place))
        case Op(name, ty, args):
            return graph.build(name, ty, *(in_graph(graph, a) for a in args))
    raise TypeError(expr)


def worth(node: Node, state: State) -> int:
    """The bit pattern of a node in ``state``."""
    if node.op == "const":
        return int(node.imm)
    if node.op == "livein":
        return state.registers[node.imm]
    if node.op == "lin":
        const, terms = parts(node)
        return (const + sum(c * worth(atom, state) for atom, c in terms)) & mask(node.ty)
    return evaluate(node.op, node.ty, tuple(worth(a, state) for a in node.args), tuple(a.ty for a in node.args))


def check(plain: Expr, values: list[int]) -> None:
    """Both forms of ``plain``, simplified, have its type and its value; nothing to compare where it traps."""
    state = State({Gpr(i): value for i, value in enumerate(values)})
    try:
        want = compute(plain, state, {})
    except ZeroDivisionError:
        return
    if isinstance(plain, Op) and plain.name.startswith("wide.") and not fits(plain, state):
        return
    simplified = rewrite(plain, lambda leaf: leaf)
    assert simplified.ty == plain.ty
    assert compute(simplified, state, {}) == want
    node = in_graph(Graph(), plain)
    assert node.ty == plain.ty
    assert worth(node, state) == want


def fits(division: Op, state: State) -> bool:
    """Returns whether the quotient fits: where it does not, the processor traps."""
    high, low, divisor = (compute(a, state, {}) for a in division.args)
    bits = BITS[division.ty]
    whole = high << bits | low
    if "s" in division.name.removeprefix("wide."):
        a, b = signed(whole, 2 * bits), signed(divisor, bits)
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return -(1 << (bits - 1)) <= quotient < 1 << (bits - 1)
    return whole // divisor < 1 << bits


REGISTERS = st.lists(VALUES, min_size=4, max_size=4)


@settings(max_examples=600, deadline=None)
@given(expressions(), REGISTERS)
def test_rules_keep_the_value(plain: Expr, values: list[int]) -> None:
    check(plain, values)


@pytest.mark.parametrize("examples", [30, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(RULES))
def test_each_rule_keeps_the_value(name: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(operations(name), REGISTERS)
    def holds(plain: Expr, values: list[int]) -> None:
        check(plain, values)

    holds()


A, B, C = (Read(Gpr(i), "i64") for i in range(3))
BELOW, OTHER = Op("folt", "i1", (Op("bitcast", "f64", (A,)), Op("bitcast", "f64", (B,)))), Op("ult", "i1", (A, C))
LOW, HIGH = Op("lo32", "i32", (A,)), Op("hi32", "i32", (A,))
FLOAT, SINGLE = Op("bitcast", "f64", (A,)), Op("bitcast", "f32", (LOW,))
BYTE, WORD, OTHER_WORD = (
    Op("trunc", "i8", (LOW,)),
    Op("trunc", "i16", (Op("lo32", "i32", (B,)),)),
    Op("hi16", "i16", (HIGH,)),
)
SIGN, SIGN_F = Const("i64", 1 << 63), Const("i32", 1 << 31)
NONE, ALL = Const("i64", 0), Const("i64", 2**64 - 1)


def op(name: str, ty: Ty, *args: Expr) -> Op:
    return Op(name, ty, args)


def masked(value: Expr, otherwise: Expr) -> Op:
    return op("select", value.ty, BELOW, value, otherwise)


CASES: list[tuple[Expr, Expr]] = [
    (op("or", "i64", masked(A, NONE), masked(NONE, B)), masked(A, B)),
    (op("and", "i64", op("sext", "i64", BELOW), A), masked(A, NONE)),
    (op("not", "i64", op("sext", "i64", OTHER)), op("sext", "i64", op("ule", "i1", C, A))),
    (op("slt", "i1", op("sext", "i64", BELOW), NONE), BELOW),
    (op("pair", "i64", LOW, HIGH), A),
    (op("pair", "i64", op("sext", "i32", BELOW), op("sext", "i32", BELOW)), op("sext", "i64", BELOW)),
    (op("pair", "i64", LOW, op("ashr", "i32", LOW, Const("i32", 31))), op("sext", "i64", LOW)),
    (op("lshr", "i64", op("pair", "i64", LOW, HIGH), Const("i64", 32)), op("zext", "i64", HIGH)),
    (op("trunc", "i8", op("select", "i64", BELOW, op("zext", "i64", BYTE), NONE)), masked(BYTE, Const("i8", 0))),
    (op("zext", "i32", op("hi8", "i8", op("pair", "i16", BYTE, BYTE))), op("zext", "i32", BYTE)),
    (op("and", "i32", LOW, Const("i32", 255)), op("zext", "i32", BYTE)),
    (op("ashr", "i32", op("pair", "i32", WORD, WORD), Const("i32", 16)), op("sext", "i32", WORD)),
    (op("smax", "i32", op("smin", "i32", op("zext", "i32", BYTE), Const("i32", 255)), Const("i32", 0)),
     op("zext", "i32", BYTE)),
    (op("trunc", "i16", op("lshr", "i64", op("pair", "i64", op("pair", "i32", WORD, OTHER_WORD), LOW), Const("i64", 16))),
     OTHER_WORD),
    (masked(op("zext", "i64", BYTE), Const("i64", 9)), op("zext", "i64", masked(BYTE, Const("i8", 9)))),
    (masked(op("zext", "i64", BYTE), op("zext", "i64", WORD)), masked(op("zext", "i64", BYTE), op("zext", "i64", WORD))),
    (op("hi32", "i32", masked(op("pair", "i64", HIGH, LOW), NONE)), masked(LOW, Const("i32", 0))),
    (masked(op("bitcast", "i64", op("fneg", "f64", FLOAT)), NONE),
     op("bitcast", "i64", masked(op("fneg", "f64", FLOAT), Const("f64", 0)))),
    (masked(op("bitcast", "f64", masked(A, B)), op("bitcast", "f64", C)), masked(FLOAT, op("bitcast", "f64", C))),
    (masked(Const("f64", 2**64 - 1), Const("f64", 0)), masked(Const("f64", 2**64 - 1), Const("f64", 0))),
    (op("bitcast", "f64", op("and", "i64", A, Const("i64", 2**63 - 1))), op("fabs", "f64", FLOAT)),
    (op("bitcast", "f64", op("or", "i64", A, SIGN)), op("fneg", "f64", op("fabs", "f64", FLOAT))),
    (op("bitcast", "f32", op("xor", "i32", SIGN_F, LOW)), op("fneg", "f32", SINGLE)),
    (op("pair", "i64", op("bitcast", "i32", SINGLE), op("bitcast", "i32", op("bitcast", "f32", HIGH))), A),
]  # fmt: skip
"""Expressions, and what the table makes of them."""


@pytest.mark.parametrize(("plain", "wanted"), CASES)
@settings(max_examples=10, deadline=None)
@given(REGISTERS)
def test_rules_simplify(plain: Expr, wanted: Expr, values: list[int]) -> None:
    check(plain, values)
    assert rewrite(plain, lambda leaf: leaf) == wanted
    graph = Graph()
    assert in_graph(graph, plain) is in_graph(graph, wanted)


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
