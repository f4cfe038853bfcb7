"""Operations on the value graph, simplified where they are built.

The rules make shuffles vanish (``lo32``/``hi32``/``pair``/``bitcast``), masks become selects, and integer arithmetic linear
forms. Each rule is an equality of bit patterns, NaN included; nothing is rounded or reassociated here.
"""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.mockup.ir.effects import BITS, Ty
from layout_advise.mockup.ir.evaluate import evaluate
from layout_advise.mockup.ir.value_graph import Graph, Node, mask, parts, signed

Rule = Callable[[Graph, Ty, tuple[Node, ...]], Node | None]

SIGN64, SIGN32 = 1 << 63, 1 << 31
LINEAR = ("i32", "i64")
BITWISE = ("and", "or", "xor")
_ROUNDED = "fadd fsub fmul fdiv fsqrt fma fpext fptrunc rint floor ceil fptosi.rint fptoui.rint sitofp uitofp fmin fmax"
NEVER_FOLDED = frozenset(_ROUNDED.split(" "))
"""Left to run time: they depend on the rounding mode."""
_INVERSE = {"eq": "ne", "ne": "eq"}


def build(g: Graph, name: str, ty: Ty, args: tuple[Node, ...]) -> Node:
    """The simplified node for ``name(args)`` of type ``ty``; names as in :class:`layout_advise.mockup.ir.effects.Op`."""
    if name not in NEVER_FOLDED and args and all(a.op == "const" for a in args):
        try:
            return g.const(ty, evaluate(name, ty, tuple(a.imm for a in args), tuple(a.ty for a in args)))
        except (KeyError, ZeroDivisionError):
            return g.raw(name, ty, args)
    if name in ("bitcast", "lo32", "hi32", "trunc") and args[0].op == "undef":
        return g.raw("undef", ty, (), args[0].imm)
    rule = RULES.get(name)
    found = rule(g, ty, args) if rule is not None else None
    return found if found is not None else g.raw(name, ty, args)


def bitcast(g: Graph, ty: Ty, node: Node) -> Node:
    """``node`` reinterpreted as ``ty``."""
    return build(g, "bitcast", ty, (node,))


def lo32(g: Graph, node: Node) -> Node:
    """The low half of an i64."""
    return build(g, "lo32", "i32", (node,))


def hi32(g: Graph, node: Node) -> Node:
    """The high half of an i64."""
    return build(g, "hi32", "i32", (node,))


def negate(g: Graph, condition: Node) -> Node:
    """``not condition`` for an i1."""
    return build(g, "not", "i1", (condition,))


def is_const(node: Node, value: int) -> bool:
    """Whether ``node`` is the constant ``value`` (bit pattern)."""
    return node.op == "const" and node.imm == value & mask(node.ty)


def _add(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    return g.add(*args) if ty in LINEAR else _commuted(g, "add", ty, args)


def _sub(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    return g.sub(*args) if ty in LINEAR else None


def _neg(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    return g.scale(args[0], -1) if ty in LINEAR else None


def _mul(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if ty in LINEAR and (a.op == "const" or b.op == "const"):
        value, factor = (b, a.imm) if a.op == "const" else (a, b.imm)
        return g.scale(value, factor)
    return _commuted(g, "mul", ty, args)


def _shl(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if ty in LINEAR and b.op == "const":
        return g.scale(a, 1 << b.imm) if b.imm < BITS[ty] else g.const(ty, 0)
    return None


def _lshr(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_const(b, 0):
        return a
    if ty == "i64" and is_const(b, 32):
        return build(g, "zext", "i64", (hi32(g, a),))
    if b.op == "const" and a.op == "zext" and b.imm >= BITS[a.args[0].ty]:
        return g.const(ty, 0)
    return None


def _ashr(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    a, b = args
    if is_const(b, 0):
        return a
    if ty == "i64" and is_const(b, 32):
        return build(g, "sext", "i64", (hi32(g, a),))
    return None


def _commuted(g: Graph, name: str, ty: Ty, args: tuple[Node, ...]) -> Node:
    a, b = args
    return g.raw(name, ty, (a, b) if a.uid <= b.uid else (b, a))


def _bitwise(name: str) -> Rule:
    def rule(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node:
        a, b = args
        if a is b:
            return g.const(ty, 0) if name == "xor" else a
        if a.op == "const":
            a, b = b, a
        if name == "and" and a.op == "frame" and b.op == "const" and signed(b.imm, ty) < 0:
            return g.aligned(a, b.imm)
        if b.op == "const" and (simple := _with_constant(g, name, ty, a, b)) is not None:
            return simple
        if (masked := _masks(g, name, ty, a, b) or _masks(g, name, ty, b, a)) is not None:
            return masked
        if ty == "i64" and (a.op == "pair" or b.op == "pair"):
            return _halves(g, name, a, b)
        return _commuted(g, name, ty, (a, b))

    return rule


def _with_constant(g: Graph, name: str, ty: Ty, a: Node, b: Node) -> Node | None:
    if b.imm == 0:
        return b if name == "and" else a
    if b.imm == mask(ty):
        return {"and": a, "or": b, "xor": None}[name] or build(g, "not", ty, (a,))
    if ty == "i64" and name == "and" and b.imm == mask("i32"):
        return build(g, "zext", "i64", (lo32(g, a),))
    if ty == "i64" and a.op in ("zext", "sext", "pair") and (a.op == "pair" or a.args[0].ty == "i32"):
        return _halves(g, name, a, b)
    return None


def _masks(g: Graph, name: str, ty: Ty, a: Node, b: Node) -> Node | None:
    """``a`` a lane mask made by a compare: and, or with it choose between values."""
    zero = g.const(ty, 0)
    if name == "and" and a.op == "sext" and a.args[0].ty == "i1":
        return build(g, "select", ty, (a.args[0], b, zero))
    if name == "and" and a.op == "not" and a.args[0].op == "sext" and a.args[0].args[0].ty == "i1":
        return build(g, "select", ty, (a.args[0].args[0], zero, b))
    if name in ("or", "xor") and a.op == "select" and b.op == "select" and a.args[0] is b.args[0]:
        if is_const(a.args[2], 0) and is_const(b.args[1], 0):
            return build(g, "select", ty, (a.args[0], a.args[1], b.args[2]))
    elif name == "and" and a.op == "select" and all(x.op == "const" and x.imm in (0, mask(ty)) for x in a.args[1:]):
        chosen = tuple(b if x.imm else zero for x in a.args[1:])
        return build(g, "select", ty, (a.args[0], *chosen))
    return None


def _halves(g: Graph, name: str, a: Node, b: Node) -> Node:
    low = build(g, name, "i32", (lo32(g, a), lo32(g, b)))
    return build(g, "pair", "i64", (low, build(g, name, "i32", (hi32(g, a), hi32(g, b)))))


def _not(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    (a,) = args
    if a.op == "not":
        return a.args[0]
    if ty == "i1":
        if a.op in _INVERSE:
            return g.raw(_INVERSE[a.op], "i1", a.args)
        if a.op in ("slt", "ult", "sle", "ule"):
            return build(g, a.op[:2] + ("e" if a.op[2] == "t" else "t"), "i1", (a.args[1], a.args[0]))
        return None
    if a.op == "pair":
        return build(g, "pair", ty, tuple(build(g, "not", "i32", (x,)) for x in a.args))
    if a.op == "sext" and a.args[0].ty == "i1":
        return build(g, "sext", ty, (negate(g, a.args[0]),))
    return None


def _bitcast(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    (a,) = args
    if a.ty == ty:
        return a
    if a.op == "bitcast":
        return bitcast(g, ty, a.args[0])
    if ty[0] == "f" and a.op == "select" and all(x.op in ("bitcast", "const") for x in a.args[1:]):
        return build(g, "select", ty, (a.args[0], *(bitcast(g, ty, x) for x in a.args[1:])))
    if (ty in ("f64", "f32") and a.op in BITWISE and a.args[1].op == "const") or (
        a.op in BITWISE and a.args[0].op == "const"
    ):
        return _sign_operation(g, ty, a)
    return None


def _sign_operation(g: Graph, ty: Ty, a: Node) -> Node | None:
    """fabs and fneg are compiled to bit operations; as float operations the C compiler knows them again."""
    value, constant = a.args if a.args[1].op == "const" else (a.args[1], a.args[0])
    sign = 1 << (BITS[ty] - 1)
    inner = bitcast(g, ty, value)
    if a.op == "and" and constant.imm == sign - 1:
        return build(g, "fabs", ty, (inner,))
    if a.op == "xor" and constant.imm == sign:
        return build(g, "fneg", ty, (inner,))
    if a.op == "or" and constant.imm == sign:
        return build(g, "fneg", ty, (build(g, "fabs", ty, (inner,)),))
    return None


def _lo32(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    (a,) = args
    if a.op == "pair":
        return a.args[0]
    if a.op in ("zext", "sext"):
        inner = a.args[0]
        return inner if inner.ty == "i32" else build(g, a.op, "i32", (inner,))
    if a.op == "lin":
        const, terms = parts(a)
        return g.lin("i32", const, ((lo32(g, x), c) for x, c in terms))
    if a.op in BITWISE or a.op in ("mul", "not"):
        return build(g, a.op, "i32", tuple(lo32(g, x) for x in a.args))
    if a.op == "select" and all(x.op in ("pair", "zext", "const", "sext") for x in a.args[1:]):
        return build(g, "select", "i32", (a.args[0], *(lo32(g, x) for x in a.args[1:])))
    return None


def _hi32(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    (a,) = args
    if a.op == "pair":
        return a.args[1]
    if a.op == "zext":
        return g.const("i32", 0)
    if a.op == "sext" and a.args[0].ty == "i1":
        return build(g, "sext", "i32", a.args)
    if a.op == "lin" and a.imm[0] & mask("i32") == 0 and all(c & mask("i32") == 0 for c in a.imm[1]):
        const, terms = parts(a)
        return g.lin("i32", const >> 32, ((lo32(g, x), c >> 32) for x, c in terms))
    if a.op in BITWISE and any(x.op in ("pair", "zext", "const") for x in a.args):
        return build(g, a.op, "i32", tuple(hi32(g, x) for x in a.args))
    if a.op == "select" and all(x.op in ("pair", "zext", "const") for x in a.args[1:]):
        return build(g, "select", "i32", (a.args[0], *(hi32(g, x) for x in a.args[1:])))
    return None


def _pair(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    low, high = args
    if low.op == "lo32" and high.op == "hi32" and low.args[0] is high.args[0]:
        return low.args[0]
    if is_const(high, 0):
        return build(g, "zext", "i64", (low,))
    if low is high and low.op == "sext" and low.args[0].ty == "i1":
        return build(g, "sext", "i64", low.args)
    if low.op == "undef" and high.op == "undef":
        return g.raw("undef", ty, (), low.imm)
    both_casts = low.op == "bitcast" and high.op == "bitcast" and low.args[0].op == high.args[0].op
    if both_casts and low.args[0].op in ("lo32", "hi32"):
        return build(g, "pair", ty, (low.args[0], high.args[0]))
    return None


def _extend(name: str) -> Rule:
    def rule(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
        (a,) = args
        if a.ty == ty:
            return a
        if a.op == name or a.op == "zext":
            return build(g, a.op, ty, a.args)
        return None

    return rule


def _trunc(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    (a,) = args
    if a.ty == ty:
        return a
    if a.ty == "i64" and ty == "i32":
        return lo32(g, a)
    if a.op in ("zext", "sext"):
        inner = a.args[0]
        return build(g, "trunc" if BITS[inner.ty] >= BITS[ty] else a.op, ty, (inner,))
    if a.op in ("trunc", "lo32"):
        return build(g, "trunc", ty, a.args) if a.op == "trunc" else None
    if a.op == "pair":
        return build(g, "trunc", ty, (a.args[0],))
    if a.op in BITWISE or a.op == "not":
        return build(g, a.op, ty, tuple(build(g, "trunc", ty, (x,)) for x in a.args))
    if a.op == "select" and all(x.op in ("zext", "const") for x in a.args[1:]):
        return build(g, "select", ty, (a.args[0], *(build(g, "trunc", ty, (x,)) for x in a.args[1:])))
    return None


def _equal(name: str) -> Rule:
    def rule(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
        a, b = args
        if a is b:
            return g.const("i1", int(name == "eq"))
        if a.op == "const":
            a, b = b, a
        if a.ty in LINEAR and (difference := g.sub(a, b)).op == "const":
            return g.const("i1", int((difference.imm == 0) == (name == "eq")))
        if b.op == "const" and a.op in ("zext", "sext") and (a.args[0].ty == "i1"):
            one = 1 if a.op == "zext" else mask(a.ty)
            if b.imm in (0, one):
                return a.args[0] if (b.imm == one) == (name == "eq") else negate(g, a.args[0])
        if b.op == "const" and a.op == "zext" and b.imm <= mask(a.args[0].ty):
            return build(g, name, "i1", (a.args[0], g.const(a.args[0].ty, b.imm)))
        if a.op == "zext" and b.op == "zext" and a.args[0].ty == b.args[0].ty:
            return build(g, name, "i1", (a.args[0], b.args[0]))
        return _commuted(g, name, "i1", (a, b)) if b.op != "const" else g.raw(name, "i1", (a, b))

    return rule


def _order(name: str) -> Rule:
    def rule(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
        a, b = args
        if a is b:
            return g.const("i1", int(name[2] == "e"))
        if name == "ult" and is_const(a, 0):
            return build(g, "ne", "i1", (b, a))
        if name == "ult" and is_const(b, 1):
            return build(g, "eq", "i1", (a, g.const(a.ty, 0)))
        if name == "ule" and is_const(b, 0):
            return build(g, "eq", "i1", (a, b))
        if name == "ule" and b.op == "const" and b.imm != mask(b.ty):
            return build(g, "ult", "i1", (a, g.const(a.ty, b.imm + 1)))
        if name == "sle" and b.op == "const" and b.imm != mask(b.ty) >> 1:
            return build(g, "slt", "i1", (a, g.const(a.ty, b.imm + 1)))
        if name == "sle" and a.op == "const" and a.imm != (mask(a.ty) >> 1) + 1:
            return build(g, "slt", "i1", (g.const(a.ty, a.imm - 1), b))
        if name[0] == "u" and a.op == "zext" and b.op == "zext" and a.args[0].ty == b.args[0].ty:
            return build(g, name, "i1", (a.args[0], b.args[0]))
        return None

    return rule


def _select(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    c, a, b = args
    if a is b:
        return a
    if c.op == "const":
        return a if c.imm else b
    if c.op == "not":
        return build(g, "select", ty, (c.args[0], b, a))
    if (inner := _same_choice(a, c)) is not None:  # what was merged under a mask, and is looked at under the same one only
        return build(g, "select", ty, (c, bitcast(g, ty, inner.args[1]), b))
    if (inner := _same_choice(b, c)) is not None:
        return build(g, "select", ty, (c, a, bitcast(g, ty, inner.args[2])))
    if a.op == "const" and b.op == "const" and {a.imm, b.imm} == {0, mask(ty)}:
        chosen = c if a.imm else negate(g, c)
        return chosen if ty == "i1" else build(g, "sext", ty, (chosen,))
    if ty == "i64" and all(x.op in ("zext", "const") for x in (a, b)) and (narrow := _narrow_type(a, b)) is not None:
        arms = tuple(build(g, "trunc", narrow, (x,)) for x in (a, b))
        return build(g, "zext", ty, (build(g, "select", narrow, (c, *arms)),))
    if ty == "i64" and "pair" in (a.op, b.op) and all(x.op in ("pair", "zext", "const") for x in (a, b)):
        low = build(g, "select", "i32", (c, lo32(g, a), lo32(g, b)))
        return build(g, "pair", ty, (low, build(g, "select", "i32", (c, hi32(g, a), hi32(g, b)))))
    if ty[0] == "i" and "bitcast" in (a.op, b.op) and all(x.op in ("bitcast", "const") for x in (a, b)):
        real: Ty = "f64" if ty == "i64" else "f32"
        return bitcast(g, ty, build(g, "select", real, (c, bitcast(g, real, a), bitcast(g, real, b))))
    return None


def _same_choice(node: Node, condition: Node) -> Node | None:
    """``node``, but for its type, if it chooses by ``condition``."""
    inner = node.args[0] if node.op == "bitcast" else node
    return inner if inner.op == "select" and inner.args[0] is condition else None


def _narrow_type(a: Node, b: Node) -> Ty | None:
    types = {x.args[0].ty for x in (a, b) if x.op == "zext"}
    if len(types) != 1:
        return None
    ty = types.pop()
    fits = all(x.imm <= mask(ty) for x in (a, b) if x.op == "const")
    return ty if fits and ty != "i1" else None


def _divide(narrow: str) -> Rule:
    """``wide.*(high, low, divisor)``: a plain division where the high half only extends the low one."""

    def rule(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
        high, low, divisor = args
        unsigned = narrow[0] == "u"
        sign = build(g, "ashr", ty, (low, g.const(ty, BITS[ty] - 1)))
        if is_const(high, 0) if unsigned else (high is sign or (is_const(high, 0) and nonnegative(low))):
            return build(g, narrow, ty, (low, divisor))
        if ty == "i32":  # exact in 64 bits: a quotient that does not fit would have trapped
            whole = build(g, "pair", "i64", (low, high))
            wide = build(g, "zext" if unsigned else "sext", "i64", (divisor,))
            return lo32(g, build(g, narrow, "i64", (whole, wide)))
        return None

    return rule


def _exact(g: Graph, ty: Ty, args: tuple[Node, ...]) -> Node | None:
    """``exact(a, step)``: a quotient known to have no remainder; linear as soon as every coefficient divides. ``upto``:
    the same where that is not known before."""
    a, divisor = args
    step = divisor.imm
    const, terms = parts(a)
    if all(x % step == 0 for x in (const, *(c for _, c in terms))):
        return g.lin(ty, const // step, ((x, c // step) for x, c in terms))
    return None


def nonnegative(node: Node) -> bool:
    """Whether an integer is known to have its sign bit clear."""
    if node.op == "const":
        return signed(node.imm, node.ty) >= 0
    return node.op == "zext" or (node.op == "lshr" and node.args[1].op == "const" and node.args[1].imm > 0)


RULES: dict[str, Rule] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _mul, "shl": _shl, "lshr": _lshr, "ashr": _ashr,
    "and": _bitwise("and"), "or": _bitwise("or"), "xor": _bitwise("xor"), "not": _not,
    "bitcast": _bitcast, "lo32": _lo32, "hi32": _hi32, "pair": _pair, "zext": _extend("zext"), "sext": _extend("sext"),
    "trunc": _trunc, "eq": _equal("eq"), "ne": _equal("ne"), "slt": _order("slt"), "sle": _order("sle"),
    "ult": _order("ult"), "ule": _order("ule"), "select": _select,
    "exact": _exact, "upto": _exact,
    "wide.udiv": _divide("udiv"), "wide.urem": _divide("urem"),
    "wide.sdiv": _divide("sdiv"), "wide.srem": _divide("srem"),
}  # fmt: skip
