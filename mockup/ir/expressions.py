"""Builders of :mod:`layout_advise.mockup.ir.effects` expressions that simplify as they build.

Use :func:`build` (or the short forms below it) instead of ``Op(...)``; after a substitution rebuild with :func:`rewrite`.
The rules are those of :mod:`layout_advise.mockup.ir.rules`.
"""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.mockup.ir.effects import Const, Expr, Op, Read, Temp, Ty, mask
from layout_advise.mockup.ir.rules.form import ValueForm
from layout_advise.mockup.ir.rules.table import simplified

TRUE, FALSE = Const("i1", 1), Const("i1", 0)


class ExpressionForm(ValueForm[Expr]):
    """Makes expressions over machine state."""

    def raw(self, op: str, ty: Ty, args: tuple[Expr, ...] = ()) -> Expr:
        """The operation as it stands."""
        return Op(op, ty, args)

    def const(self, ty: Ty, value: int) -> Const:
        """The constant ``value`` modulo the width of ``ty``."""
        return Const(ty, value & mask(ty))

    def build(self, op: str, ty: Ty, *args: Expr) -> Expr:
        """``op(args)`` of type ``ty``, simplified."""
        return simplified(self, op, ty, args)

    def own_rule(self, op: str, ty: Ty, args: tuple[Expr, ...]) -> Expr | None:
        """No rules of its own."""
        return None

    def ordered(self, op: str, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """As they are written."""
        return a, b


_FORM = ExpressionForm()
const, build = _FORM.const, _FORM.build
bitcast, lo32, hi32, pair = _FORM.bitcast, _FORM.lo32, _FORM.hi32, _FORM.pair
part, whole = _FORM.part, _FORM.whole
zext, sext, trunc, negate = _FORM.zext, _FORM.sext, _FORM.trunc, _FORM.negate


def rewrite(expr: Expr, leaf: Callable[[Read | Temp], Expr]) -> Expr:
    """``expr`` with every Read and Temp replaced by ``leaf`` of it, simplified again."""
    if isinstance(expr, Const):
        return expr
    if isinstance(expr, Op):
        return build(expr.name, expr.ty, *(rewrite(a, leaf) for a in expr.args))
    return leaf(expr)
