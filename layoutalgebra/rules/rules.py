"""The rewriting rules as classes, numbered as in the paper (1-7) and beyond it (8, 9).

Rules 1-3 and 5-6 keep every offset where it is; 4 permutes; 7 drops what is unused; 8 pads; 9 makes two structures of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from layout_advise.layoutalgebra.rules.index_map import OFFSET, IndexMap, Piece
from layout_advise.layoutalgebra.rules.rewriting import Leaves, Rewrite, Rule, rewrite
from layout_advise.layoutalgebra.sets.index_expressions import Expr, Index, constant, digit, linear, nth, rank
from layout_advise.layoutalgebra.sets.index_set import IndexSet
from layout_advise.layoutalgebra.sets.set_operations import difference, nested, quotients, remainders
from layout_advise.layoutalgebra.terms.term import A, Leaf, S, Term, product, union


@dataclass(frozen=True, slots=True)
class CutBlocks(Rule):
    """Rule 1: ``S_{I,n·p} → S_{J,n} ⊗ A_p`` where I consists of whole blocks of ``p``."""

    p: int
    number: ClassVar[str] = "1"

    def leaves(self, found: Leaves) -> Leaves:
        leaf = found[0]
        self.divides(self.p, leaf)
        blocks = quotients(leaf.indices, self.p)
        if blocks.count * self.p != leaf.count:
            raise self.refuse(
                f"the indices are not whole blocks of {self.p}", "rules 2 and 3 cut periods and single remainders"
            )
        return Leaf(blocks, leaf.size // self.p), A(self.p)


@dataclass(frozen=True, slots=True)
class CutPeriods(Rule):
    """Rule 2: ``S_{I,n·p} → A_n ⊗ S_{J,p}`` where I repeats every ``p``."""

    p: int
    number: ClassVar[str] = "2"

    def leaves(self, found: Leaves) -> Leaves:
        leaf = found[0]
        self.divides(self.p, leaf)
        period = remainders(leaf.indices, self.p)
        if period.count * (leaf.size // self.p) != leaf.count:
            raise self.refuse(f"the indices do not repeat every {self.p}", "rules 1 and 3 cut blocks and single remainders")
        return A(leaf.size // self.p), Leaf(period, self.p)


@dataclass(frozen=True, slots=True)
class CutStride(Rule):
    """Rule 3: ``S_{n·I+p,m·n} → S_{I,m} ⊗ S_{{p},n}``: all indices leave one remainder by ``n``."""

    n: int
    number: ClassVar[str] = "3"

    def leaves(self, found: Leaves) -> Leaves:
        leaf = found[0]
        self.divides(self.n, leaf)
        rests = remainders(leaf.indices, self.n)
        if rests.count != 1:
            raise self.refuse(
                f"the indices leave {rests.count} remainders by {self.n}", "rules 1 and 2 cut blocks and periods"
            )
        return Leaf(quotients(leaf.indices, self.n), leaf.size // self.n), Leaf(rests, self.n)


@dataclass(frozen=True, slots=True)
class Permute(Rule):
    """Rule 4: ``L ⊗ L' → L' ⊗ L``."""

    number: ClassVar[str] = "4"
    width: ClassVar[int] = 2

    def leaves(self, found: Leaves) -> Leaves:
        return found[1], found[0]

    def there(self, found: Leaves, offset: Expr) -> Expr:
        first, second = found[0].size, found[1].size
        return linear([(first, digit(offset, 1, second)), (1, digit(offset, second))])

    def back(self, found: Leaves, offset: Expr) -> Expr:
        return self.there((found[1], found[0]), offset)


@dataclass(frozen=True, slots=True)
class SplitArray(Rule):
    """Rule 5: ``A_{n·m} → A_n ⊗ A_m``.

    An array that was padded by less than a block (``S_{0:k;n·m}``, rule 8) is cut too; its last block, partly used, makes a
    second ⊕ term.
    """

    m: int
    number: ClassVar[str] = "5"

    def parts(self, row: Leaves) -> tuple[Leaves, ...]:
        leaf = row[self.position]
        used, size = leaf.count, leaf.size
        if used != leaf.indices.last + 1 or (used < size and size - used >= self.m):
            raise self.refuse("the factor is not an array", "rules 1-3 cut an S; rule 7 makes it an array")
        if self.m < 2 or size <= self.m:
            raise self.refuse(f"blocks of {self.m} in an array of {size}", f"choose a block from 2 to {size - 1}")
        if size % self.m:
            raise self.refuse(f"{self.m} does not divide {size}", f"pad to {-(-size // self.m) * self.m} first (rule 8)")
        full = used // self.m * self.m
        spans = [span for span in (range(full), range(full, used)) if span]
        return tuple((*row[: self.position], S([span], size), *row[self.position + 1 :]) for span in spans)

    def leaves(self, found: Leaves) -> Leaves:
        indices, blocks = found[0].indices, found[0].size // self.m
        return Leaf(quotients(indices, self.m), blocks), Leaf(remainders(indices, self.m), self.m)


@dataclass(frozen=True, slots=True)
class JoinArrays(Rule):
    """Rule 5 read backwards: ``A_n ⊗ A_m → A_{n·m}``; every offset stays."""

    number: ClassVar[str] = "5"
    width: ClassVar[int] = 2

    def leaves(self, found: Leaves) -> Leaves:
        if not all(leaf.is_array for leaf in found):
            raise self.refuse("one of the factors is no array", "rule 6 joins two S, rule 7 makes an array of an S")
        return (A(found[0].size * found[1].size),)


@dataclass(frozen=True, slots=True)
class Fuse(Rule):
    """Rule 6: ``S_{I,n} ⊗ S_{J,m} → S_{I',n·m}`` with I' = {i·m + j}; not for arrays."""

    number: ClassVar[str] = "6"
    width: ClassVar[int] = 2

    def leaves(self, found: Leaves) -> Leaves:
        for leaf in found:
            if leaf.is_array:
                raise self.refuse(
                    f"one of the factors is an array: {leaf}", "choose two neighbours that are S, or permute (rule 4)"
                )
        return (Leaf(nested(found[0].indices, found[1].size, found[1].indices), found[0].size * found[1].size),)


@dataclass(frozen=True, slots=True)
class Compact(Rule):
    """Rule 7: ``S_{I,d} → S_{I',d'}`` with #I = #I', d' ≤ d: the accessed offsets move together, in order; not for arrays.

    ``into`` is the new factor; by default the array ``A_#I``, in which nothing is unused.
    """

    into: Leaf | None = None
    number: ClassVar[str] = "7"

    def leaves(self, found: Leaves) -> Leaves:
        if found[0].is_array:
            raise self.refuse("the factor is an array: there is nothing unused in it", "choose a factor S")
        into = self.into or A(found[0].count)
        if into.count != found[0].count or into.size > found[0].size:
            raise self.refuse(f"{found[0]} does not fit into {into}", "choose as many indices in at most as many places")
        return (into,)

    def there(self, found: Leaves, offset: Expr) -> Expr:
        number = rank(offset, found[0].indices)
        return nth(number, self.into.indices) if self.into is not None else number

    def back(self, found: Leaves, offset: Expr) -> Expr:
        number = rank(offset, self.into.indices) if self.into is not None else offset
        return nth(number, found[0].indices)


@dataclass(frozen=True, slots=True)
class Pad(Rule):
    """Rule 8: ``S_{I,d} → S_{I,d'}``, d' ≥ d."""

    d: int
    number: ClassVar[str] = "8"

    def leaves(self, found: Leaves) -> Leaves:
        if self.d < found[0].size:
            raise self.refuse(f"{self.d} is smaller than {found[0].size}", f"pad to {found[0].size} or more; rule 7 drops")
        return (Leaf(found[0].indices, self.d),)


@dataclass(frozen=True, slots=True)
class PadUnit(Rule):
    """Rule 8 on the neutral ``A_1`` that may stand before any factor, or after the last one: ``A_1 → S_{0;d}``."""

    d: int
    number: ClassVar[str] = "8"
    width: ClassVar[int] = 0

    def leaves(self, found: Leaves) -> Leaves:
        if self.d < 2:
            raise self.refuse(f"{self.d} places are no more than one", "pad to 2 or more")
        return (S([0], self.d),)

    def there(self, found: Leaves, offset: Expr) -> Expr:
        return constant(0)

    def back(self, found: Leaves, offset: Expr) -> Expr:
        return constant(0)


@dataclass(frozen=True, slots=True)
class Divide(Rule):
    """Rule 9: two structures one behind the other, ``L → (S_{0;2} ⊗ L') ⊕ (S_{1;2} ⊗ L'')``.

    L' holds the offsets whose index at the position is in ``chosen``, L'' the others; :func:`divide` gives them apart.
    """

    chosen: IndexSet
    number: ClassVar[str] = "9"

    def apply(self, term: Term) -> Rewrite:
        size, there, back = term.size, list[Piece](), list[Piece]()
        x, y = Index(OFFSET, size), Index(OFFSET, 2 * size)
        for row in self.rows(term):
            for half, part in enumerate(self._halves(row)):
                if part is not None:
                    new = S([half], 2) @ part
                    there.append(Piece(((x, part),), linear([(1, x)], half * size), new))
                    back.append(Piece(((y, new),), linear([(1, y)], -half * size), part))
        if len({piece.to for piece in there}) < 2:
            empty = "outside" if there[0].to == x else "in"
            raise self.refuse(
                "one of the two structures would be empty", f"no index {empty} the chosen ones is accessed there"
            )
        new_term = union(piece.image for piece in there)
        return Rewrite(self.number, term, new_term, IndexMap(term, new_term, tuple(there), tuple(back)))

    def _halves(self, row: Leaves) -> tuple[Term | None, Term | None]:
        leaf = row[self.position]
        both = leaf.indices.intersection(self.chosen), difference(leaf.indices, self.chosen)
        inside, outside = (
            None if some is None else product((*row[: self.position], Leaf(some, leaf.size), *row[self.position + 1 :]))
            for some in both
        )
        return inside, outside


def divide(term: Term, position: int, chosen: IndexSet) -> tuple[Term, Term]:
    """Rule 9's two structures: the accessed offsets whose index at ``position`` is in ``chosen``, and the others.

    Raises :class:`AlgebraError` where one of them would be empty.
    """
    parts = Divide(position, chosen).apply(term).map.inverse_pieces
    first = [piece.image for piece in parts if isinstance(piece.to, Index)]
    second = [piece.image for piece in parts if not isinstance(piece.to, Index)]
    return union(first), union(second)


__all__ = ["Compact", "CutBlocks", "CutPeriods", "CutStride", "Divide", "Fuse", "JoinArrays", "Pad", "PadUnit", "Permute",
           "Rewrite", "Rule", "SplitArray", "divide", "rewrite"]  # fmt: skip
