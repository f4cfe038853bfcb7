"""Rewriting rules: a match on factors, the factors it makes of them, and the new place of each accessed offset.

A rule rewrites the factors at one position, the same in every term of a ⊕ (all its terms are products of leaves with equal
sizes). A rewrite that would not induce one well-defined injective map on the union of the accessed offsets is refused.
Every rule knows its map in both directions (:class:`IndexMap`). The rules: :mod:`layout_advise.layoutalgebra.rules.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.rules.index_map import OFFSET, IndexMap, Piece, identity_map, split_index
from layout_advise.layoutalgebra.sets.index_expressions import Expr, Index, evaluate, linear
from layout_advise.layoutalgebra.terms.simplify import disjoint
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of, product, terms_of, union

Leaves = tuple[Leaf, ...]
Move = Callable[[Leaves, Expr], Expr]
TRIED = 1 << 18
"""Up to this many accessed offsets, injectivity is tried out; beyond, it must follow from disjoint factors."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """``old`` became ``new`` by rule ``number`` (several, with commas); ``map`` tells where each accessed offset went."""

    number: str
    old: Term
    new: Term
    map: IndexMap

    def place(self, offset: int) -> int:
        """The new offset of an accessed old one."""
        return self.map(offset)

    def then(self, rule: Rule) -> Rewrite:
        """One rule more, the maps composed. Raises :class:`AlgebraError` where it does not apply to ``new``."""
        step = rule.apply(self.new)
        return Rewrite(f"{self.number},{step.number}", self.old, step.new, self.map.then(step.map))


def rewrite(term: Term, rules: Iterable[Rule]) -> Rewrite:
    """``term`` rewritten by ``rules`` in order. Raises :class:`AlgebraError` at the first one that does not apply."""
    done: Rewrite | None = None
    for rule in rules:
        done = rule.apply(term) if done is None else done.then(rule)
    return done or Rewrite("", term, term, identity_map(term))


@dataclass(frozen=True, slots=True)
class Rule:
    """Rewrites ``width`` factors from ``position`` on."""

    position: int
    number: ClassVar[str] = ""
    width: ClassVar[int] = 1

    def leaves(self, found: Leaves) -> Leaves:
        """The new factors. Raises :class:`AlgebraError` where the rule does not match ``found``."""
        raise NotImplementedError

    def parts(self, row: Leaves) -> tuple[Leaves, ...]:
        """Disjoint pieces of one term that are rewritten each for itself; most rules need only one."""
        return (row,)

    def there(self, found: Leaves, offset: Expr) -> Expr:
        """The place within the new factors of an accessed offset within the matched ones; by default it stays."""
        del found
        return offset

    def back(self, found: Leaves, offset: Expr) -> Expr:
        """The inverse of :meth:`there`."""
        del found
        return offset

    def refuse(self, why: str, hint: str = "") -> AlgebraError:
        """The error that says which condition failed."""
        return AlgebraError(f"rule {self.number} does not apply at factor {self.position}", why, hint)

    def divides(self, by: int, leaf: Leaf) -> None:
        """Refuse a cut of ``leaf`` at ``by`` that leaves a remainder or a factor of one."""
        if by < 2 or leaf.size % by or leaf.size == by:
            near = [d for d in range(2, min(leaf.size, 4096)) if leaf.size % d == 0][:8]
            hint = f"divisors of {leaf.size}: {', '.join(map(str, near))}" if near else "pad it first (rule 8)"
            raise self.refuse(f"{by} does not divide {leaf.size} into at least two parts of two", hint)

    def apply(self, term: Term) -> Rewrite:
        """Rewrite ``term``. Raises :class:`AlgebraError` with the condition that failed."""
        rows, new_rows = self.new_rows(term)
        start, stop = self.position, self.position + self.width
        there, back = [], []
        for row, new_row in zip(rows, new_rows, strict=True):
            old_part, new_part = product(row), product(new_row)
            found = row[start:stop]
            sizes = _size(row[stop:]), _size(found), _size(new_row[start : len(new_row) - len(row) + stop])
            forward = self._moved(found, sizes, old_part.size, self.there)
            backward = self._moved(found, (sizes[0], sizes[2], sizes[1]), new_part.size, self.back)
            there.append(Piece(((Index(OFFSET, old_part.size), old_part),), forward, new_part))
            back.append(Piece(((Index(OFFSET, new_part.size), new_part),), backward, old_part))
        if self.number == "7" and any(row[start:stop] != rows[0][start:stop] for row in rows):
            self._check(there)
        new = union(piece.image for piece in there)
        return Rewrite(self.number, term, new, IndexMap(term, new, tuple(there), tuple(back)))

    def new_rows(self, term: Term) -> tuple[list[Leaves], list[Leaves]]:
        """The leaves of every term of the ⊕, before and after. Raises :class:`AlgebraError` if the rule does not match."""
        rows = [part for row in self.rows(term) for part in self.parts(row)]
        start, stop = self.position, self.position + self.width
        new_rows = [(*row[:start], *self.leaves(row[start:stop]), *row[stop:]) for row in rows]
        if len({tuple(leaf.size for leaf in row) for row in new_rows}) > 1:
            hint = "rewrite terms that use equally many places, or divide the others off first (rule 9)"
            raise self.refuse("the terms of the ⊕ would get different sizes", hint)
        return rows, new_rows

    def rows(self, term: Term) -> list[Leaves]:
        """The leaves of every term of the ⊕, of equal sizes, and enough of them."""
        rows = [row_of(part) for part in terms_of(term)]
        if len({tuple(leaf.size for leaf in row) for row in rows}) > 1:
            raise self.refuse("the terms of the ⊕ have different factors", "cut them to common sizes first (normal_form)")
        last = len(rows[0]) - self.width
        if not 0 <= self.position <= last:
            need = f"it takes {self.width} factors; " if self.width > 1 else ""
            hint = f"choose a position from 0 to {last}" if last >= 0 else "cut a factor first (rules 1-3, 5)"
            raise self.refuse(f"{need}there are {len(rows[0])} factors", hint)
        return rows

    def _moved(self, found: Leaves, sizes: tuple[int, int, int], total: int, move: Move) -> Expr:
        """The whole offset moved; ``sizes`` of the factors to the right, of the matched ones before and after."""
        inner, before, after = sizes
        high, middle, low = split_index(total, inner, before)
        return linear([(after * inner, high), (inner, move(found, middle)), (1, low)])

    def _check(self, pieces: list[Piece]) -> None:
        """One injective map on the union of what the terms access, or an error."""
        old, new = [piece.guard[0][1] for piece in pieces], [piece.image for piece in pieces]
        if all(disjoint(old[i], old[k]) and disjoint(new[i], new[k]) for i in range(len(old)) for k in range(i)):
            return
        if sum(part.count for part in old) > TRIED:
            raise self.refuse("the terms overlap and are too large to try every offset", "make them disjoint (normal_form)")
        places: dict[int, int] = {}
        for part, piece in zip(old, pieces, strict=True):
            for offset in part.iter_offsets():
                goal = evaluate(piece.to, {OFFSET: offset})
                if places.setdefault(offset, goal) != goal:
                    raise self.refuse(f"offset {offset} would go to two places", "make the terms disjoint (normal_form)")
        if (kept := len(set(places.values()))) < len(places):
            hint = "the factor tells the terms of the ⊕ apart: leave it as it is"
            raise self.refuse(f"{len(places)} accessed offsets would share {kept} places", hint)


def row_of(term: Term) -> Leaves:
    """The leaves of a product. Raises :class:`AlgebraError` for anything else."""
    found = factors_of(term)
    if not all(isinstance(leaf, Leaf) for leaf in found):
        raise AlgebraError("not a product of S and A", str(term), "simplify() multiplies it out")
    return tuple(leaf for leaf in found if isinstance(leaf, Leaf))


def _size(leaves: Leaves) -> int:
    total = 1
    for leaf in leaves:
        total *= leaf.size
    return total
