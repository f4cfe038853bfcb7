"""Index maps: the new place of each accessed offset that a rewriting induces, as expressions.

An index map is a bijection between the accessed offsets of two terms, kept with its inverse. The terms of a ⊕ may move
differently, so it has one piece for each of them, with the conditions under which it holds. Maps compose
(``first.then(second)``), invert, and print as Python; :mod:`layout_advise.layoutalgebra.rules.map_printing` prints
them with sympy and as C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.index_expressions import (
    Digit,
    Expr,
    Index,
    LinearIndex,
    digit,
    evaluate,
    linear,
    show,
    spelled_out,
    substitute,
)
from layout_advise.layoutalgebra.terms.simplify import disjoint
from layout_advise.layoutalgebra.terms.term import Term, factors_of, terms_of

OFFSET = "x"
"""The name of the variable in a map's expressions."""

Guard = tuple[tuple[Expr, Term], ...]
"""Conditions: the term is accessed at the value of the expression."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An offset for which all of ``guard`` holds goes to ``to``, an accessed offset of ``image``."""

    guard: Guard
    to: Expr
    image: Term

    def holds(self, offset: int) -> bool:
        """True if the piece is the one for ``offset``."""
        return all(term(evaluate(expr, {OFFSET: offset})) for expr, term in self.guard)


@dataclass(frozen=True, slots=True)
class LinearForm:
    """``const + sum(coef * (index // div % mod))``; ``terms`` are (coef, index, div, mod), mod 0 for none.

    A ``div`` above 1 or a ``mod`` other than 0 is a split dimension.
    """

    terms: tuple[tuple[int, str, int, int], ...]
    const: int

    def __call__(self, **indices: int) -> int:
        total = self.const
        for coef, name, div, mod in self.terms:
            value = indices[name] // div
            total += coef * (value % mod if mod else value)
        return total


@dataclass(frozen=True, slots=True)
class IndexMap:
    """A bijection from the accessed offsets of ``old`` to those of ``new``; ``pieces`` one way, ``inverse_pieces`` back."""

    old: Term
    new: Term
    pieces: tuple[Piece, ...]
    inverse_pieces: tuple[Piece, ...]

    def __call__(self, offset: int) -> int:
        """The new offset of an accessed old one. Raises :class:`AlgebraError` for one that is not accessed."""
        if self.old(offset):
            for piece in self.pieces:
                if piece.holds(offset):
                    return evaluate(piece.to, {OFFSET: offset})
        raise AlgebraError(f"offset {offset} is not accessed", "an index map maps accessed offsets only")

    def inverse(self) -> IndexMap:
        """The map back."""
        return IndexMap(self.new, self.old, self.inverse_pieces, self.pieces)

    def then(self, following: IndexMap) -> IndexMap:
        """This map, then ``following``. Raises :class:`AlgebraError` where that does not start at this one's new term."""
        if self.new != following.old:
            raise AlgebraError("two index maps do not meet", f"one ends at {self.new}, the other begins at {following.old}")
        there = _composed(self.pieces, following.pieces)
        back = _composed(following.inverse_pieces, self.inverse_pieces)
        return IndexMap(self.old, following.new, there, back)

    @property
    def uniform(self) -> Expr | None:
        """The one expression that holds for every accessed offset, or ``None`` where ⊕ terms move differently."""
        found = {piece.to for piece in self.pieces}
        return found.pop() if len(found) == 1 else None

    def at(self, *indices: str) -> Expr | None:
        """The new offset in terms of one index for each factor of ``old`` (outermost first; by default i0, i1, ...).

        ``None`` where the terms of the ⊕ move differently or have different factors.
        """
        shapes = {tuple(factor.size for factor in factors_of(part)) for part in terms_of(self.old)}
        if self.uniform is None or len(shapes) > 1:
            return None
        sizes, weight, sum_of = shapes.pop(), 1, list[tuple[int, Expr]]()
        names = indices or tuple(f"i{k}" for k in range(len(sizes)))
        for name, size in reversed(list(zip(names, sizes, strict=True))):
            sum_of.append((weight, Index(name, size)))
            weight *= size
        return substitute(self.uniform, {OFFSET: linear(sum_of)})

    def linear(self, *indices: str) -> LinearForm | None:
        """:meth:`at` as a linear form with split dimensions, or ``None`` where it is none (rank in an irregular set)."""
        expr = self.at(*indices)
        return None if expr is None else linear_form(expr)

    def __str__(self) -> str:
        if self.uniform is not None:
            return f"{OFFSET} -> {show(spelled_out(self.uniform))}"
        cases = [
            f"{show(spelled_out(p.to))} where " + " and ".join(f"{show(spelled_out(e))} in {t}" for e, t in p.guard)
            for p in self.pieces
        ]
        return f"{OFFSET} -> " + "; ".join(cases)


def identity_map(term: Term) -> IndexMap:
    """Every accessed offset stays."""
    x = Index(OFFSET, term.size)
    stay = (Piece((), x, term),)
    return IndexMap(term, term, stay, stay)


def linear_form(expr: Expr) -> LinearForm | None:
    """``expr`` as a linear form over its indices, or ``None`` where it is none."""
    expr = spelled_out(expr)
    parts = expr.terms if isinstance(expr, LinearIndex) else ((1, expr),)
    found = []
    for coef, part in parts:
        if isinstance(part, Index):
            found.append((coef, part.name, 1, 0))
        elif isinstance(part, Digit) and isinstance(part.of, Index):
            found.append((coef, part.of.name, part.div, part.mod))
        else:
            return None
    return LinearForm(tuple(found), expr.const if isinstance(expr, LinearIndex) else 0)


def _composed(first: Sequence[Piece], second: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces of both maps one after the other, without impossible pairs."""
    found: list[Piece] = []
    for one in first:
        for two in second:
            guard, possible = list(one.guard), True
            for expr, term in two.guard:
                if isinstance(expr, Index) and term == one.image:
                    continue  # implied: that is where the first one leads
                if isinstance(expr, Index) and disjoint(one.image, term):
                    possible = False
                guard.append((substitute(expr, {OFFSET: one.to}), term))
            if possible:
                found.append(Piece(tuple(guard), substitute(two.to, {OFFSET: one.to}), two.image))
    return tuple(dict.fromkeys(found))


def split_index(size: int, inner: int, old_size: int) -> tuple[Expr, Expr, Expr]:
    """The offset's quotient, matched part and remainder around factors of ``old_size`` with ``inner`` to their right."""
    x = Index(OFFSET, size)
    return digit(x, inner * old_size), digit(x, inner, old_size), digit(x, 1, inner)
