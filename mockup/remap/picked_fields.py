"""Fields of an element that a value picks (``node->child[side]``, ``star[n % 3]``): no loop counts it."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from layout_advise.mockup.ir.lifted import Linear, Operand, Val, Var
from layout_advise.mockup.ir.linear_forms import signed
from layout_advise.mockup.remap.field_runs import MOST_FIELDS, Run


def picked_fields(terms: Sequence[tuple[Operand, int]], size: int, traced: frozenset[int] | None) -> tuple[Run, ...]:
    """The value in the ``terms`` of an address that picks one of the fields of an element of ``size`` bytes, of which
    ``traced`` were seen; empty where none does, or it is not clear which.

    What is added in whole elements picks none, nor does what is added as it is: that is a pointer. Of the rest the sum is
    the number of a field, times the bytes from one to the next. It is taken to start at 0 where the lowest of ``traced``
    lies, which the check build compares, and to lie within them, which is asked at run time.
    """
    if traced is None or len(traced) < 2:
        return ()
    picking = [(atom, signed(coef)) for atom, coef in terms if isinstance(atom, Val | Var) and coef % size]
    picking = [(atom, coef) for atom, coef in picking if 1 < abs(coef) < size]
    step, lowest = gcd(*(coef for _, coef in picking)), min(traced)
    if not step or any((place - lowest) % step for place in traced):
        return ()
    trip = (max(traced) - lowest) // step + 1
    parts = tuple((atom, coef // step) for atom, coef in picking)
    return (Run(parts, step, trip, Linear(0, parts), picked=True),) if trip <= MOST_FIELDS else ()
