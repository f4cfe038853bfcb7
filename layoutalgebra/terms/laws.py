"""The laws of the algebra as functions that anybody can call: each gives two terms that must be the same function.

A law takes terms and returns its two sides; :func:`differ` finds the first offset at which two terms disagree. ``LAWS``
holds all of them with the number of terms that they take::

    for law in LAWS:
        assert differ(*law.sides(*terms[: law.arity])) is None

The mathematics is that of Haine, Aumage and Barthou (Euro-Par 2017). Laws over ⊕ need operands of one size; they raise
:class:`AlgebraError` otherwise, as ⊕ itself does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from layout_advise.layoutalgebra.terms.simplify import simplify
from layout_advise.layoutalgebra.terms.term import A, Leaf, S, Term, product

Sides = tuple[Term, Term]


@dataclass(frozen=True, slots=True)
class Law:
    """``sides(*terms)`` gives two equal functions. ``same_size`` tells which operands must have one size (by number)."""

    name: str
    arity: int
    sides: Callable[..., Sides]
    same_size: tuple[int, ...] = ()

    @property
    def statement(self) -> str:
        """The first sentence of the law's docstring."""
        return (self.sides.__doc__ or "").split("\n")[0]


def differ(left: Term, right: Term) -> int | None:
    """The first offset at which one of them is accessed and the other is not; ``None`` where they are the same function.

    Terms of different sizes differ at the end of the smaller one. Time and memory grow with the accessed offsets.
    """
    for a, b in zip_longest(left.iter_offsets(), right.iter_offsets()):
        if a != b:
            return min(x for x in (a, b) if x is not None)
    return None if left.size == right.size else min(left.size, right.size)


def times_is_pointwise(left: Term, right: Term) -> Sides:
    """(L ⊗ M)(x·d + y) = L(x)·M(y) for 0 ≤ y < d, with d the size of M: the definition of ⊗."""
    inner = right.size
    return left @ right, S((x * inner + y for x in left.offsets() for y in right.offsets()), left.size * inner)


def plus_is_pointwise(left: Term, right: Term) -> Sides:
    """(L ⊕ M)(x) = min(1, L(x) + M(x)): the definition of ⊕."""
    return left + right, S({*left.offsets(), *right.offsets()}, left.size)


def times_is_associative(first: Term, second: Term, third: Term) -> Sides:
    """(L ⊗ M) ⊗ N = L ⊗ (M ⊗ N)."""
    return (first @ second) @ third, first @ (second @ third)


def one_is_neutral(term: Term) -> Sides:
    """A_1 ⊗ L = L = L ⊗ A_1 (both at once: A_1 ⊗ L ⊗ A_1)."""
    return product((A(1), term, A(1))), term


def plus_is_associative(first: Term, second: Term, third: Term) -> Sides:
    """(L ⊕ M) ⊕ N = L ⊕ (M ⊕ N)."""
    return (first + second) + third, first + (second + third)


def plus_is_commutative(left: Term, right: Term) -> Sides:
    """L ⊕ M = M ⊕ L."""
    return left + right, right + left


def plus_is_idempotent(term: Term) -> Sides:
    """L ⊕ L = L."""
    return term + term, term


def array_absorbs(term: Term) -> Sides:
    """A_d ⊕ L = A_d for every L of size d."""
    return simplify(A(term.size) + term), A(term.size)


def times_distributes_from_the_left(left: Term, right: Term, factor: Term) -> Sides:
    """N ⊗ (L ⊕ M) = (N ⊗ L) ⊕ (N ⊗ M)."""
    return factor @ (left + right), factor @ left + factor @ right


def times_distributes_from_the_right(left: Term, right: Term, factor: Term) -> Sides:
    """(L ⊕ M) ⊗ N = (L ⊗ N) ⊕ (M ⊗ N)."""
    return (left + right) @ factor, left @ factor + right @ factor


def common_right_factor(left: Leaf, right: Leaf, factor: Term) -> Sides:
    """(S_{I,d} ⊗ L) ⊕ (S_{J,d} ⊗ L) = S_{I∪J,d} ⊗ L."""
    return left @ factor + right @ factor, Leaf(left.indices.union(right.indices), left.size) @ factor


def common_left_factor(left: Leaf, right: Leaf, factor: Term) -> Sides:
    """(L ⊗ S_{I,d}) ⊕ (L ⊗ S_{J,d}) = L ⊗ S_{I∪J,d}."""
    return factor @ left + factor @ right, factor @ Leaf(left.indices.union(right.indices), left.size)


def arrays_multiply(left: Term, right: Term) -> Sides:
    """A_n ⊗ A_m = A_{n·m}: as functions; as terms they stay apart, since only a stride or a declared size may cut."""
    return A(left.size) @ A(right.size), A(left.size * right.size)


def simplify_keeps_the_function(term: Term) -> Sides:
    """simplify(L) = L."""
    return simplify(term), term


LAWS: tuple[Law, ...] = (
    Law("⊗ pointwise", 2, times_is_pointwise),
    Law("⊕ pointwise", 2, plus_is_pointwise, (0, 1)),
    Law("⊗ associative", 3, times_is_associative),
    Law("⊗ neutral", 1, one_is_neutral),
    Law("⊕ associative", 3, plus_is_associative, (0, 1, 2)),
    Law("⊕ commutative", 2, plus_is_commutative, (0, 1)),
    Law("⊕ idempotent", 1, plus_is_idempotent),
    Law("A absorbs", 1, array_absorbs),
    Law("⊗ distributes, left", 3, times_distributes_from_the_left, (0, 1)),
    Law("⊗ distributes, right", 3, times_distributes_from_the_right, (0, 1)),
    Law("common right factor", 3, common_right_factor, (0, 1)),
    Law("common left factor", 3, common_left_factor, (0, 1)),
    Law("A_n ⊗ A_m", 2, arrays_multiply),
    Law("simplify", 1, simplify_keeps_the_function),
)
"""Every law that states the equality of two terms. The factorisation laws take leaves as their first two operands."""
