"""The exact term of touched units on a grid, and how long it is."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from layout_advise.layoutalgebra.sets.footprints import Touched, mark
from layout_advise.layoutalgebra.terms.grid_boxes import bounded_term, rows_on_grid
from layout_advise.layoutalgebra.terms.pattern_term import pattern_term
from layout_advise.layoutalgebra.terms.term import MATERIAL, Term, rows_of

SMALL = 1 << 20
"""Sets of up to this many units are written out: that is faster than arithmetic there."""


def exact_term(items: Sequence[tuple[Touched, int]], base: int, unit: int, sizes: Sequence[int]) -> Term | None:
    """The normal form of what is touched: written out where that is small, else by arithmetic; ``None`` if irregular."""
    if prod(sizes) > SMALL and (rows := rows_on_grid(items, base, unit, sizes)) is not None:
        return bounded_term(rows, sizes)
    return written_out(items, base, unit, sizes)


def written_out(items: Sequence[tuple[Touched, int]], base: int, unit: int, sizes: Sequence[int]) -> Term | None:
    """:func:`pattern_term` of all touched units; ``None`` beyond ``MATERIAL`` of them and for irregular sets."""
    import numpy as np

    if prod(sizes) > MATERIAL:
        return None
    bits = np.zeros(prod(sizes), dtype=np.bool_)
    for what, size in items:
        mark(bits, what, base, unit, size)
    return pattern_term(bits, sizes)


def walks(term: Term | None, element_units: int) -> float:
    """The length of a normal form: how many products of progressions it consists of (infinitely many without a term).

    The set of fields, a last factor of ``element_units``, counts as one: it is not split.
    """
    if term is None:
        return inf
    total = 0
    for row in rows_of(term):
        outer = row[:-1] if element_units > 1 and row[-1].size == element_units else row
        total += prod(len(leaf.indices.runs) for leaf in outer)
    return total
