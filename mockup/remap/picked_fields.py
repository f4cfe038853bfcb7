"""Places in an element that a value picks: fields (``node->child[side]``, ``star[n % 3]``), where no loop counts it, and
numbers of an array that is one field (``side->coefficients[i]``), which stay together wherever the field goes."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from layout_advise.layoutalgebra.derive.structure import Field, Structure
from layout_advise.mockup.ir.lifted import LiftedLoop, Linear, Operand, Val, Var
from layout_advise.mockup.ir.linear_forms import signed
from layout_advise.mockup.remap.field_runs import MOST_FIELDS, Run
from layout_advise.mockup.remap.indices.index_terms import decompose
from layout_advise.mockup.remap.indices.operand_levels import Levels


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


def array_field(structure: Structure, traced: frozenset[int] | None) -> Field | None:
    """The field of ``structure`` that is an array in which all of the ``traced`` places of an access lie; None for one
    place, or where there is no such field."""
    if traced is None or len(traced) < 2:
        return None
    return next((field for field in structure.fields if min(traced) in field.place and max(traced) in field.place), None)


def moves_in_field(
    terms: Sequence[tuple[Operand, int]], chain: tuple[LiftedLoop, ...], strides: tuple[int, ...], levels: Levels
) -> tuple[tuple[Operand, int], ...]:
    """The ``terms`` of an address that loops of the ``chain`` change and that lead on within an element: no sum of
    ``strides`` makes them up. What is added as it is, and no loop counts, is a pointer."""
    counters = {loop.counter for loop in chain}
    moving = [(atom, signed(coef)) for atom, coef in terms if levels.level(atom, chain) >= 0]
    inner = [(atom, coef) for atom, coef in moving if decompose(coef, strides) is None]
    return tuple((atom, coef) for atom, coef in inner if abs(coef) > 1 or atom in counters)
