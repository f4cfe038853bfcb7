"""The table of simplification rules, by operation.

The rules make shuffles vanish (halves, ``pair``, ``bitcast``) and masks become choices. Each is an equality of bit
patterns, NaNs and signed zeros included: nothing is rounded or reassociated. Canonical forms: the constant is the right
operand of a commutative operation; ``sub`` of a constant is ``add``; ``trunc`` from i64 to i32 is ``lo32``, and to fewer
bits that of it; a ``pair`` with high half 0 is ``zext``.
"""

from __future__ import annotations

from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.evaluate import evaluate
from layout_advise.mockup.ir.rules import bitwise, choices, integer, ranges, widths
from layout_advise.mockup.ir.rules.form import ExpressionRule, T, ValueForm

COMMUTATIVE = frozenset(
    ("add", "mul", "and", "or", "xor", "umin", "umax", "smin", "smax", "eq", "ne", "umulhi", "smulhi")
)  # fmt: skip
NEVER_FOLDED = frozenset(
    ("fadd", "fsub", "fmul", "fdiv", "fsqrt", "fma", "fpext", "fptrunc", "rint", "floor", "ceil", "fmin", "fmax",
     "fptosi.rint", "fptoui.rint", "sitofp", "uitofp")
)  # fmt: skip
"""Left to run time: they depend on MXCSR."""

RULES: dict[str, ExpressionRule] = {
    "add": integer.add, "sub": integer.sub, "neg": integer.inverse("neg"), "mul": integer.mul,
    "shl": integer.shl, "lshr": integer.lshr, "ashr": integer.ashr, "rotl": integer.shift,
    "wide.udiv": integer.divide("udiv"), "wide.urem": integer.divide("urem"),
    "wide.sdiv": integer.divide("sdiv"), "wide.srem": integer.divide("srem"),
    "and": bitwise.bitwise("and"), "or": bitwise.bitwise("or"), "xor": bitwise.bitwise("xor"), "not": bitwise.bit_not,
    "zext": widths.extend("zext"), "sext": widths.extend("sext"), "trunc": widths.trunc,
    "lo32": widths.lo32, "hi32": widths.high, "hi16": widths.high, "hi8": widths.high, "pair": widths.pair,
    "bitcast": widths.bitcast, "pickbytes": widths.pick_bytes,
    "eq": choices.equal("eq"), "ne": choices.equal("ne"), "select": choices.select,
    "slt": choices.less("slt"), "sle": choices.less("sle"), "ult": choices.less("ult"), "ule": choices.less("ule"),
    "smin": ranges.extreme("smin"), "smax": ranges.extreme("smax"),
    "fneg": integer.inverse("fneg"),
}  # fmt: skip


def simplified(f: ValueForm[T], op: str, ty: Ty, args: tuple[T, ...]) -> T:
    """``op(args)`` of type ``ty`` in form ``f``: folded, by the form's own rule, by the table, or as it stands."""
    if args and all(a.op == "const" for a in args) and (value := _folded(op, ty, args)) is not None:
        return f.const(ty, value)
    if op in COMMUTATIVE and args[0].op == "const":
        args = (args[1], args[0])
    found = f.own_rule(op, ty, args)
    if found is None and op in RULES:
        found = RULES[op](f, ty, args)
    if found is not None:
        return found
    if op in COMMUTATIVE and args[1].op != "const":
        args = f.ordered(op, *args)
    return f.raw(op, ty, args)


def _folded(op: str, ty: Ty, args: tuple[T, ...]) -> int | None:
    """The value of an operation on constants; None where it has none of its own, traps, or depends on the rounding mode."""
    if op in NEVER_FOLDED or any(a.ty == "f80" for a in args):
        return None
    try:
        return evaluate(op, ty, tuple(a.imm for a in args), tuple(a.ty for a in args))
    except (KeyError, ZeroDivisionError):
        return None
