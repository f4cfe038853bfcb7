"""Builders of :mod:`layout_advise.mockup.ir.effects` expressions that simplify as they build.

Use :func:`build` (or the short forms below it) instead of ``Op(...)``; after a substitution rebuild with :func:`rewrite`.
All rules are exact for every bit pattern, NaNs and signed zeros included. Canonical forms: constants on the right of
commutative operations and of ``add`` (``sub`` of a constant is an ``add``), ``lo32`` for truncation of i64 to i32, ``zext``
for a pair with high half 0.
"""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Op, Read, Temp, Ty
from layout_advise.mockup.ir.evaluate import evaluate

Args = tuple[Expr, ...]
Rule = Callable[[Ty, Args], Expr | None]

_COMMUTATIVE = frozenset(["add", "mul", "and", "or", "xor", "umin", "umax", "smin", "smax", "eq", "ne", "umulhi", "smulhi"])
_EXACT_ONLY = frozenset(
    [
        "fadd",
        "fsub",
        "fmul",
        "fdiv",
        "fsqrt",
        "fma",
        "fpext",
        "fptrunc",
        "rint",
        "fptosi.rint",
        "fptoui.rint",
        "sitofp",
        "uitofp",
    ]
)
"""Never folded: they depend on MXCSR."""
_BITWISE = frozenset(("and", "or", "xor", "not"))
_INVERSE = {"eq": "ne", "ne": "eq"}
_SWAPPED_INVERSE = {"slt": "sle", "sle": "slt", "ult": "ule", "ule": "ult"}


def const(ty: Ty, value: int) -> Const:
    """The constant ``value`` modulo the width of ``ty``."""
    return Const(ty, value & ((1 << BITS[ty]) - 1))


TRUE, FALSE = Const("i1", 1), Const("i1", 0)


def build(name: str, ty: Ty, *args: Expr) -> Expr:
    """``name(args)`` of type ``ty``, simplified."""
    if name in _COMMUTATIVE and isinstance(args[0], Const) and not isinstance(args[1], Const):
        args = (args[1], args[0])
    if all(isinstance(a, Const) for a in args) and args and not name.startswith(("flags", "cond")):
        folded = _fold(name, ty, args)
        if folded is not None:
            return folded
    rule = _RULES.get(name)
    found = rule(ty, args) if rule is not None else None
    return Op(name, ty, args) if found is None else found


def rewrite(expr: Expr, leaf: Callable[[Read | Temp], Expr]) -> Expr:
    """``expr`` with every Read and Temp replaced by ``leaf`` of it, simplified again."""
    if isinstance(expr, Const):
        return expr
    if isinstance(expr, Op):
        return build(expr.name, expr.ty, *(rewrite(a, leaf) for a in expr.args))
    return leaf(expr)


def bitcast(ty: Ty, x: Expr) -> Expr:
    """The bits of ``x`` as ``ty`` (same width)."""
    return build("bitcast", ty, x)


def lo32(x: Expr) -> Expr:
    """Low half of an i64, as i32."""
    return build("lo32", "i32", x)


def hi32(x: Expr) -> Expr:
    """High half of an i64, as i32."""
    return build("hi32", "i32", x)


def pair(low: Expr, high: Expr) -> Expr:
    """The i64 with these i32 halves."""
    return build("pair", "i64", low, high)


def zext(ty: Ty, x: Expr) -> Expr:
    """``x`` widened with zeros."""
    return build("zext", ty, x)


def sext(ty: Ty, x: Expr) -> Expr:
    """``x`` widened with its sign."""
    return build("sext", ty, x)


def trunc(ty: Ty, x: Expr) -> Expr:
    """Low bits of ``x``."""
    return build("trunc", ty, x)


def negate(condition: Expr) -> Expr:
    """The opposite of an i1."""
    return build("not", "i1", condition)


def _fold(name: str, ty: Ty, args: Args) -> Const | None:
    if name in _EXACT_ONLY:
        return None
    values = tuple(a.value for a in args if isinstance(a, Const))
    try:
        return Const(ty, evaluate(name, ty, values, tuple(a.ty for a in args)))
    except (KeyError, ZeroDivisionError):
        return None


def _is(x: Expr, *names: str) -> bool:
    return isinstance(x, Op) and x.name in names


def _zero(x: Expr) -> bool:
    return isinstance(x, Const) and x.value == 0


def _ones(x: Expr) -> bool:
    return isinstance(x, Const) and x.value == (1 << BITS[x.ty]) - 1


def _add(ty: Ty, args: Args) -> Expr | None:
    a, b = args
    if _zero(b):
        return a
    if isinstance(b, Const) and isinstance(a, Op) and a.name == "add" and isinstance(a.args[1], Const):
        return build("add", ty, a.args[0], const(ty, a.args[1].value + b.value))
    return None


def _sub(ty: Ty, args: Args) -> Expr | None:
    a, b = args
    if a == b:
        return Const(ty, 0)
    if isinstance(b, Const):
        return build("add", ty, a, const(ty, -b.value))
    return build("neg", ty, b) if _zero(a) else None


def _mul(ty: Ty, args: Args) -> Expr | None:
    a, b = args
    if isinstance(b, Const) and b.value == 1:
        return a
    return b if _zero(b) else None


def _and(ty: Ty, args: Args) -> Expr | None:
    a, b = args
    if a == b or _ones(b):
        return a
    if _zero(b):
        return b
    for mask, other in ((a, b), (b, a)):  # a mask made by a compare selects
        if isinstance(mask, Op) and mask.name == "sext" and mask.args[0].ty == "i1":
            return build("select", ty, mask.args[0], other, Const(ty, 0))
    if isinstance(b, Const) and b.value == (1 << (BITS[ty] - 1)) - 1 and isinstance(a, Op) and a.name == "bitcast":
        floating: Ty = a.args[0].ty
        return bitcast(ty, build("fabs", floating, a.args[0]))
    if isinstance(b, Const) and isinstance(a, Op) and a.name == "and" and isinstance(a.args[1], Const):
        return build("and", ty, a.args[0], Const(ty, a.args[1].value & b.value))
    return None


def _or(ty: Ty, args: Args) -> Expr | None:
    a, b = args
    if a == b or _zero(b):
        return a
    if _zero(a):
        return b
    return b if _ones(b) else None


def _xor(ty: Ty, args: Args) -> Expr | None:
    a, b = args
    if a == b:
        return Const(ty, 0)
    if _zero(b):
        return a
    if _ones(b):
        return build("not", ty, a)
    if isinstance(b, Const) and b.value == 1 << (BITS[ty] - 1) and isinstance(a, Op) and a.name == "bitcast":
        return bitcast(ty, build("fneg", a.args[0].ty, a.args[0]))
    return None


def _not(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if not isinstance(a, Op):
        return None
    if a.name == "not":
        return a.args[0]
    if a.name == "sext" and a.args[0].ty == "i1":
        return sext(ty, negate(a.args[0]))
    if a.name in _INVERSE:
        return build(_INVERSE[a.name], "i1", *a.args)
    if a.name in _SWAPPED_INVERSE:
        return build(_SWAPPED_INVERSE[a.name], "i1", a.args[1], a.args[0])
    return None


def _shift(ty: Ty, args: Args) -> Expr | None:
    a, n = args
    return a if _zero(n) or _zero(a) else None


def _lshr(ty: Ty, args: Args) -> Expr | None:
    a, n = args
    if _zero(n) or _zero(a):
        return a
    if ty == "i64" and isinstance(n, Const) and n.value == 32:
        return zext("i64", hi32(a))
    return None


def _shl(ty: Ty, args: Args) -> Expr | None:
    a, n = args
    if _zero(n) or _zero(a):
        return a
    if ty == "i64" and isinstance(n, Const) and n.value == 32:
        return pair(Const("i32", 0), lo32(a))
    return None


def _wrap(name: str, ty: Ty, x: Op) -> Expr:
    return build(name, ty, x.args[0])


def _zext(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if a.ty == ty:
        return a
    return _wrap("zext", ty, a) if isinstance(a, Op) and a.name == "zext" else None


def _sext(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if a.ty == ty:
        return a
    return _wrap(a.name, ty, a) if isinstance(a, Op) and a.name in ("sext", "zext") else None


def _resized(ty: Ty, x: Op) -> Expr:
    """``x`` is a zext or sext and is cut to ``ty``: the inner value cut, itself, or widened less."""
    inner = x.args[0]
    if BITS[inner.ty] == BITS[ty]:
        return inner
    return trunc(ty, inner) if BITS[inner.ty] > BITS[ty] else build(x.name, ty, inner)


def _trunc(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if a.ty == ty:
        return a
    if a.ty == "i64" and ty == "i32":
        return lo32(a)
    if isinstance(a, Op):
        if a.name in ("trunc", "lo32") or (a.name == "pair" and BITS[ty] < 32):
            return trunc(ty, a.args[0])
        if a.name in ("zext", "sext"):
            return _resized(ty, a)
    return None


def _lo32(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if not isinstance(a, Op):
        return None
    if a.name == "pair":
        return a.args[0]
    if a.name in ("zext", "sext"):
        return _resized("i32", a)
    if a.name in _BITWISE or a.name in ("add", "sub", "mul", "neg"):  # the low half depends on the low halves only
        return build(a.name, "i32", *(lo32(x) for x in a.args))
    if a.name == "shl" and isinstance(a.args[1], Const):
        n = a.args[1].value
        return build("shl", "i32", lo32(a.args[0]), Const("i32", n)) if n < 32 else Const("i32", 0)
    if a.name == "lshr" and isinstance(a.args[1], Const) and a.args[1].value >= 32:
        return build("lshr", "i32", hi32(a.args[0]), Const("i32", a.args[1].value - 32))
    return _distribute(lo32, "i32", a)


def _hi32(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if not isinstance(a, Op):
        return None
    if a.name == "pair":
        return a.args[1]
    if a.name == "zext":
        return Const("i32", 0)
    if a.name == "sext":
        return (
            build("ashr", "i32", sext("i32", a.args[0]), Const("i32", 31))
            if a.args[0].ty != "i1"
            else sext("i32", a.args[0])
        )
    if a.name in _BITWISE:
        return build(a.name, "i32", *(hi32(x) for x in a.args))
    if a.name == "lshr" and isinstance(a.args[1], Const) and a.args[1].value >= 32:
        return Const("i32", 0)
    return _distribute(hi32, "i32", a)


def _distribute(half: Callable[[Expr], Expr], ty: Ty, a: Op) -> Expr | None:
    """``half`` of a select is a select of halves; worth it where the halves simplify."""
    if a.name != "select":
        return None
    return build("select", ty, a.args[0], half(a.args[1]), half(a.args[2]))


def _pair(ty: Ty, args: Args) -> Expr | None:
    low, high = args
    if isinstance(low, Op) and isinstance(high, Op):
        if low.name == "lo32" and high.name == "hi32" and low.args == high.args:
            return low.args[0]
        if low.name == "sext" and high == low and low.args[0].ty == "i1":
            return sext("i64", low.args[0])
        if high.name == "ashr" and high.args == (low, Const("i32", 31)):
            return sext("i64", low)
    return zext("i64", low) if _zero(high) else None


def _bitcast(ty: Ty, args: Args) -> Expr | None:
    (a,) = args
    if a.ty == ty:
        return a
    if not isinstance(a, Op):
        return None
    if a.name == "bitcast":
        return bitcast(ty, a.args[0])
    if a.name == "select" and any(isinstance(x, Const) or _is(x, "bitcast") for x in a.args[1:]):
        return build("select", ty, a.args[0], bitcast(ty, a.args[1]), bitcast(ty, a.args[2]))
    if ty in ("f32", "f64") and a.name in ("xor", "and") and isinstance(a.args[1], Const):
        sign = 1 << (BITS[ty] - 1)
        if a.name == "xor" and a.args[1].value == sign:
            return build("fneg", ty, bitcast(ty, a.args[0]))
        if a.name == "and" and a.args[1].value == sign - 1:
            return build("fabs", ty, bitcast(ty, a.args[0]))
    return None


def _select(ty: Ty, args: Args) -> Expr | None:
    condition, yes, no = args
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes == no:
        return yes
    if _is(condition, "not") and isinstance(condition, Op):
        return build("select", ty, condition.args[0], no, yes)
    if isinstance(yes, Op) and yes.name == "select" and yes.args[0] == condition:
        return build("select", ty, condition, yes.args[1], no)
    if isinstance(no, Op) and no.name == "select" and no.args[0] == condition:
        return build("select", ty, condition, yes, no.args[2])
    if _ones(yes) and _zero(no):
        return sext(ty, condition) if ty != "i1" else condition
    return None


def _compare(name: str, when_equal: Const) -> Rule:
    def rule(ty: Ty, args: Args) -> Expr | None:
        a, b = args
        if a == b:
            return when_equal
        widened = isinstance(a, Op) and a.name in ("sext", "zext") and a.args[0].ty == "i1" and _zero(b)
        if widened and isinstance(a, Op):
            if name == "ne" or (name == "slt" and a.name == "sext"):
                return a.args[0]
            if name == "eq":
                return negate(a.args[0])
        return None

    return rule


def _divide(narrow: str, fill: str) -> Rule:
    """``wide.*(high, low, divisor)``: the plain division where the high half only extends the low one."""

    def rule(ty: Ty, args: Args) -> Expr | None:
        high, low, divisor = args
        sign = Const(ty, BITS[ty] - 1)
        extends = _zero(high) if fill == "zero" else high == build("ashr", ty, low, sign)
        if extends:
            return build(narrow, ty, low, divisor)
        if ty == "i32":  # exact in 64 bits: a quotient that does not fit would have trapped
            widen = zext if fill == "zero" else sext
            return lo32(build(narrow, "i64", pair(low, high), widen("i64", divisor)))
        return None

    return rule


_RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "neg": lambda ty, args: args[0].args[0] if isinstance(args[0], Op) and args[0].name == "neg" else None,
    "shl": _shl,
    "lshr": _lshr,
    "ashr": _shift,
    "rotl": _shift,
    "zext": _zext,
    "sext": _sext,
    "trunc": _trunc,
    "lo32": _lo32,
    "hi32": _hi32,
    "pair": _pair,
    "bitcast": _bitcast,
    "select": _select,
    "fneg": lambda ty, args: args[0].args[0] if isinstance(args[0], Op) and args[0].name == "fneg" else None,
    "eq": _compare("eq", TRUE),
    "ne": _compare("ne", FALSE),
    "slt": _compare("slt", FALSE),
    "sle": _compare("sle", TRUE),
    "ult": _compare("ult", FALSE),
    "ule": _compare("ule", TRUE),
    "wide.udiv": _divide("udiv", "zero"),
    "wide.urem": _divide("urem", "zero"),
    "wide.sdiv": _divide("sdiv", "sign"),
    "wide.srem": _divide("srem", "sign"),
}
