"""Rules of least and greatest values: a clamp to what a value cannot leave anyway is none.

Compilers narrow elements by instructions that saturate, and widen with zeros or masks before, so that nothing does.
"""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Ty, mask
from layout_advise.mockup.ir.rules.form import ExpressionRule, T, ValueForm


def bounds(x: T) -> tuple[int, int]:
    """The least and the greatest value that the integer ``x`` may have, read as two's complement; all of its type where
    nothing is known."""
    half = 1 << (BITS[x.ty] - 1)
    whole = -half, half - 1
    if x.op == "const":
        value = x.imm - 2 * half if x.imm >= half else x.imm
        return value, value
    if x.op == "zext":
        return 0, mask(x.args[0].ty)
    if x.op == "sext":
        return bounds(x.args[0]) if x.args[0].ty != "i1" else (-1, 0)
    if x.op == "lshr" and x.args[1].op == "const" and 0 < x.args[1].imm < BITS[x.ty]:
        return 0, mask(x.ty) >> x.args[1].imm
    if x.op in ("smin", "smax"):
        choose = min if x.op == "smin" else max
        (a, b), (c, d) = bounds(x.args[0]), bounds(x.args[1])
        return choose(a, c), choose(b, d)
    return whole


def extreme(name: str) -> ExpressionRule:
    """The rule of ``smin`` or ``smax``."""

    def rule(f: ValueForm[T], ty: Ty, args: tuple[T, ...]) -> T | None:
        a, b = args
        low, high = (a, b) if name == "smin" else (b, a)
        if bounds(low)[1] <= bounds(high)[0]:
            return a
        return b if bounds(high)[1] <= bounds(low)[0] else None

    return rule
