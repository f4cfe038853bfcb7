"""The rewriting rules as classes: what a rule matches, what it makes of the factors, and where each offset goes.

A rule rewrites the factors at one position, the same in every term of a ⊕ (all its terms are products of leaves with equal
sizes). Rules 1-3 and 5-6 keep every offset where it is; 4 and 8 move whole factors; 7 drops what is unused. A rewrite
that would not induce one well-defined injective map on the union of the accessed offsets is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.indexset import IndexSet, index_set
from layout_advise.layoutalgebra.simplify import disjoint
from layout_advise.layoutalgebra.terms import A, Leaf, S, Term, factors_of, product, terms_of, union

Leaves = tuple[Leaf, ...]
Place = Callable[[int], int]
TRIED = 1 << 18
"""Up to this many accessed offsets, injectivity is tried out; beyond, it must follow from disjoint factors."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """``old`` became ``new`` by rule ``number``; ``place(offset)`` is the new offset of an accessed old one."""

    number: str
    old: Term
    new: Term
    place: Place


@dataclass(frozen=True, slots=True)
class Rule:
    """Rewrites ``width`` factors from ``position`` on."""

    position: int
    number: ClassVar[str] = ""
    width: ClassVar[int] = 1

    def leaves(self, found: Leaves) -> Leaves:
        """The new factors. Raises :class:`AlgebraError` where the rule does not match ``found``."""
        raise NotImplementedError

    def move(self, found: Leaves) -> Place:
        """Where an accessed offset within the matched factors goes within the new ones; by default it stays."""
        del found
        return lambda offset: offset

    def refuse(self, why: str, hint: str = "") -> AlgebraError:
        """The error that says which condition failed."""
        return AlgebraError(f"rule {self.number} does not apply at factor {self.position}", why, hint)

    def apply(self, term: Term) -> Rewrite:
        """Rewrite ``term``. Raises :class:`AlgebraError` with the condition that failed."""
        rows = [_row(part) for part in terms_of(term)]
        if len({tuple(leaf.size for leaf in row) for row in rows}) > 1:
            raise self.refuse("the terms of the ⊕ have different factors", "refine them to common sizes first")
        if not 0 <= self.position <= len(rows[0]) - self.width:
            raise self.refuse(f"there are {len(rows[0])} factors")
        start, stop = self.position, self.position + self.width
        new_rows, moves = [], []
        for row in rows:
            middle = self.leaves(row[start:stop])
            new_rows.append((*row[:start], *middle, *row[stop:]))
            moves.append(_shift(row, start, stop, middle, self.move(row[start:stop])))
        if len({tuple(leaf.size for leaf in row) for row in new_rows}) > 1:
            raise self.refuse("the terms of the ⊕ would get different sizes")
        old_terms, new_terms = [product(row) for row in rows], [product(row) for row in new_rows]
        same = all(row[start:stop] == rows[0][start:stop] for row in rows) or self.number != "7"
        if not same:
            self._check(old_terms, new_terms, moves)

        def place(offset: int) -> int:
            for part, move in zip(old_terms, moves, strict=True):
                if part(offset):
                    return move(offset)
            raise AlgebraError(f"offset {offset} is not accessed", "a rewriting maps accessed offsets only")

        return Rewrite(self.number, term, union(new_terms), place)

    def _check(self, old: list[Term], new: list[Term], moves: list[Place]) -> None:
        """One injective map on the union of what the terms access, or an error."""
        apart = all(disjoint(old[i], old[k]) and disjoint(new[i], new[k]) for i in range(len(old)) for k in range(i))
        if apart:
            return
        if sum(part.count for part in old) > TRIED:
            raise self.refuse("the terms overlap and are too large to try every offset")
        places: dict[int, int] = {}
        for part, move in zip(old, moves, strict=True):
            for offset in part.iter_offsets():
                if places.setdefault(offset, move(offset)) != move(offset):
                    raise self.refuse(f"offset {offset} would go to two places")
        if len(set(places.values())) < len(places):
            lost = len(places) - len(set(places.values()))
            raise self.refuse(f"{len(places)} accessed offsets would share {len(places) - lost} places")


def _row(term: Term) -> Leaves:
    found = factors_of(term)
    if not all(isinstance(leaf, Leaf) for leaf in found):
        raise AlgebraError("not a product of S and A", str(term), "simplify() multiplies it out")
    return tuple(leaf for leaf in found if isinstance(leaf, Leaf))


def _size(leaves: Leaves) -> int:
    total = 1
    for leaf in leaves:
        total *= leaf.size
    return total


def _shift(row: Leaves, start: int, stop: int, new: Leaves, move: Place) -> Place:
    inner, old_size, new_size = _size(row[stop:]), _size(row[start:stop]), _size(new)

    def place(offset: int) -> int:
        rest, low = divmod(offset, inner)
        high, middle = divmod(rest, old_size)
        return (high * new_size + move(middle)) * inner + low

    return place


@dataclass(frozen=True, slots=True)
class CutBlocks(Rule):
    """Rule 1: ``S_{I,n·p} → S_{J,n} ⊗ A_p`` where I consists of whole blocks of ``p``."""

    p: int
    number: ClassVar[str] = "1"

    def leaves(self, found: Leaves) -> Leaves:
        leaf = found[0]
        if self.p < 2 or leaf.size % self.p or leaf.size == self.p:
            raise self.refuse(f"{self.p} does not divide {leaf.size} into at least two blocks of two")
        blocks = index_set({i // self.p for i in leaf.indices})
        if blocks.count * self.p != leaf.count:
            raise self.refuse(f"the indices are not whole blocks of {self.p}")
        return Leaf(blocks, leaf.size // self.p), A(self.p)


@dataclass(frozen=True, slots=True)
class CutPeriods(Rule):
    """Rule 2: ``S_{I,n·p} → A_n ⊗ S_{J,p}`` where I repeats every ``p``."""

    p: int
    number: ClassVar[str] = "2"

    def leaves(self, found: Leaves) -> Leaves:
        leaf = found[0]
        if self.p < 2 or leaf.size % self.p or leaf.size == self.p:
            raise self.refuse(f"{self.p} does not divide {leaf.size} into at least two periods of two")
        period = index_set({i % self.p for i in leaf.indices})
        if period.count * (leaf.size // self.p) != leaf.count:
            raise self.refuse(f"the indices do not repeat every {self.p}")
        return A(leaf.size // self.p), Leaf(period, self.p)


@dataclass(frozen=True, slots=True)
class CutStride(Rule):
    """Rule 3: ``S_{n·I+p,m·n} → S_{I,m} ⊗ S_{{p},n}``: all indices leave one remainder by ``n``."""

    n: int
    number: ClassVar[str] = "3"

    def leaves(self, found: Leaves) -> Leaves:
        leaf = found[0]
        if self.n < 2 or leaf.size % self.n or leaf.size == self.n:
            raise self.refuse(f"{self.n} does not divide {leaf.size} into at least two parts of two")
        rests = {i % self.n for i in leaf.indices}
        if len(rests) != 1:
            raise self.refuse(f"the indices leave {len(rests)} remainders by {self.n}")
        return Leaf(index_set(i // self.n for i in leaf.indices), leaf.size // self.n), S(rests, self.n)


@dataclass(frozen=True, slots=True)
class Permute(Rule):
    """Rule 4: ``L ⊗ L' → L' ⊗ L``."""

    number: ClassVar[str] = "4"
    width: ClassVar[int] = 2

    def leaves(self, found: Leaves) -> Leaves:
        return found[1], found[0]

    def move(self, found: Leaves) -> Place:
        first, second = found[0].size, found[1].size
        return lambda offset: offset % second * first + offset // second


@dataclass(frozen=True, slots=True)
class SplitArray(Rule):
    """Rule 5: ``A_{n·m} → A_n ⊗ A_m``."""

    m: int
    number: ClassVar[str] = "5"

    def leaves(self, found: Leaves) -> Leaves:
        size = found[0].size
        if not found[0].is_array:
            raise self.refuse("the factor is not an array")
        if self.m < 2 or size % self.m or size == self.m:
            raise self.refuse(
                f"{self.m} does not divide {size}", f"pad to {-(-size // max(self.m, 1)) * self.m} first (rule 8)"
            )
        return A(size // self.m), A(self.m)


@dataclass(frozen=True, slots=True)
class Fuse(Rule):
    """Rule 6: ``S_{I,n} ⊗ S_{J,m} → S_{I',n·m}`` with I' = {i·m + j}; not for arrays."""

    number: ClassVar[str] = "6"
    width: ClassVar[int] = 2

    def leaves(self, found: Leaves) -> Leaves:
        if found[0].is_array or found[1].is_array:
            raise self.refuse("one of the factors is an array")
        m = found[1].size
        return (S((i * m + j for i in found[0].indices for j in found[1].indices), found[0].size * m),)


@dataclass(frozen=True, slots=True)
class Compact(Rule):
    """Rule 7: ``S_{I,d} → A_#I``: the accessed offsets move together, in order; not for arrays."""

    number: ClassVar[str] = "7"

    def leaves(self, found: Leaves) -> Leaves:
        if found[0].is_array:
            raise self.refuse("the factor is an array: there is nothing unused in it")
        return (A(found[0].count),)

    def move(self, found: Leaves) -> Place:
        indices: IndexSet = found[0].indices
        return indices.rank


@dataclass(frozen=True, slots=True)
class Pad(Rule):
    """Rule 8: ``S_{I,d} → S_{I,d'}``, d' ≥ d."""

    d: int
    number: ClassVar[str] = "8"

    def leaves(self, found: Leaves) -> Leaves:
        if self.d < found[0].size:
            raise self.refuse(f"{self.d} is smaller than {found[0].size}")
        return (Leaf(found[0].indices, self.d),)


def divide(term: Term, position: int, chosen: IndexSet) -> tuple[Term, Term]:
    """Rule 9: two structures, the accessed offsets whose index at ``position`` is in ``chosen``, and the others.

    Raises :class:`AlgebraError` where one of them would be empty.
    """
    inside: list[Term] = []
    outside: list[Term] = []
    for part in terms_of(term):
        row = _row(part)
        if not 0 <= position < len(row):
            raise AlgebraError(f"rule 9 does not apply at factor {position}", f"there are {len(row)} factors")
        leaf = row[position]
        for goal, kept in ((inside, True), (outside, False)):
            some = [i for i in leaf.indices if (i in chosen) == kept]
            if some:
                goal.append(product((*row[:position], S(some, leaf.size), *row[position + 1 :])))
    if not inside or not outside:
        raise AlgebraError(f"rule 9 does not apply at factor {position}", "one of the two structures would be empty")
    return union(inside), union(outside)


__all__ = ["Compact", "CutBlocks", "CutPeriods", "CutStride", "Fuse", "Pad", "Permute", "Rewrite", "Rule",
           "SplitArray", "divide"]  # fmt: skip
