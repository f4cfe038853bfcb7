"""Steps from row to row that the code computes: ``m[i * cols + j]`` with ``cols`` in a register.

The lifted address has ``8 * (cols * i)`` in it, which steps over rows, but the code does not say so. Taken as steps over
elements it would be right only in layouts in which a row's end meets the next row's start, as they do now. In others it is
taken as ``i`` steps over rows, and the mock-up ends in a trap where ``cols`` is another number than in the traced call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layout_advise.layoutalgebra.derive.structure import FieldMap, Relayout
from layout_advise.mockup.ir.lifted import Imm, Let, Linear, Operand, Val


@dataclass(frozen=True, slots=True)
class Given:
    """An assumption of a new address: ``operand`` is ``value``, or no more than that (``most``)."""

    operand: Operand | Linear
    value: int
    most: bool = False


def runs_on(relayout: Relayout) -> bool:
    """Returns whether in the new layout, too, the element behind a row's last one is the next row's first."""
    return all(_runs_on(mapped, relayout) for mapped in relayout.fields)


def _runs_on(mapped: FieldMap, relayout: Relayout) -> bool:
    counts = [d.count for d in relayout.structure.dims]
    for k in range(1, len(counts)):
        for beyond in (0, 1):
            over = tuple(counts[k] + beyond if d == k else 0 for d in range(len(counts)))
            wrapped = tuple(1 if d == k - 1 else beyond if d == k else 0 for d in range(len(counts)))
            if mapped.place(over) != mapped.place(wrapped):
                return False
    return True


@dataclass(frozen=True, slots=True)
class RowSteps:
    """What ``moving`` times ``coef`` bytes stands for, which takes ``given`` for granted; ``whole``: with the other term of
    ``moving`` that the address has."""

    moving: Operand
    coef: int
    given: Given
    whole: bool = False


def row_steps(
    product: Let | None,
    coef: int,
    relayout: Relayout,
    level: Callable[[Operand], int],
    others: Mapping[Operand, int] = MappingProxyType({}),
    walked: Collection[int] = (),
) -> RowSteps | None:
    """``coef * product`` as steps over rows, where one factor of the product moves with the loops and the other one can be a
    row's length; None where that does not hold or is not needed. ``others`` are the terms of the address, and ``walked`` the
    bytes that it was seen to move by at a time: ``i * (cols + 1)`` may be written as ``i * cols + i``.

    Matrices only: in more dimensions which of them a factor goes over is not clear from its value.
    """
    dims = relayout.structure.dims
    if product is None or len(dims) != 2 or runs_on(relayout):
        return None
    fixed, moving = sorted(product.args, key=level)
    if isinstance(fixed, Imm) or not isinstance(fixed, Val) or level(fixed) >= 0 or level(moving) < 0:
        return None
    row, beside = dims[0].stride, others.get(moving, 0)
    whole = bool(beside) and row in walked and row + beside not in walked
    rest = row - beside if whole else row
    if coef <= 0 or rest <= 0 or rest % coef or abs(coef) > dims[-1].stride:
        return None
    return RowSteps(moving, row, Given(fixed, rest // coef), whole)
