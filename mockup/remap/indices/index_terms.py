"""Coefficients of an address as digits, one a dimension of the structure."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.ir.lifted import Operand

MOST_SHIFT = 12
"""An index that the code keeps scaled is taken to be scaled by at most two to this power."""


@dataclass(frozen=True, slots=True)
class IndexTerm:
    """``(atom >> shift) * digits[k]`` is added to the index of dimension k."""

    atom: Operand
    digits: tuple[int, ...]
    shift: int = 0


def decompose(coef: int, strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Signed digits with ``sum(digit * stride) == coef`` and the smallest sum of magnitudes; None where there are none.

    >>> decompose(990, (1000, 10))
    (1, -1)
    """
    if len(strides) == 1:
        return (coef // strides[0],) if coef % strides[0] == 0 else None
    best: tuple[int, ...] | None = None
    for digit in (coef // strides[0], coef // strides[0] + 1):
        rest = decompose(coef - digit * strides[0], strides[1:])
        if rest is not None and (best is None or sum(map(abs, (digit, *rest))) < sum(map(abs, best))):
            best = (digit, *rest)
    return best


def index_term(atom: Operand, coef: int, strides: tuple[int, ...]) -> IndexTerm | None:
    """Returns ``coef * atom`` as a term of indices; None where no sum of ``strides`` makes it up.

    An index that the code keeps scaled by a power of two is shifted back.
    """
    digits = decompose(coef, strides)
    if digits is not None:
        return IndexTerm(atom, digits)
    for shift in range(1, MOST_SHIFT + 1):
        digits = decompose(coef << shift, strides)
        if digits is not None and abs(coef) << shift >= strides[-1] and coef > 1:
            return IndexTerm(atom, digits, shift)
    return None
