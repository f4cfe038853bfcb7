"""Terms of the layout algebra (Haine, Aumage, Barthou, Euro-Par 2017) as frozen values.

A term is a function from ``[0, size)`` to {0, 1}: 1 where a structure is accessed. ``@`` is ⊗, ``+`` is ⊕::

    A(256) @ S([0, 1], 4)          # 256 structures of 4, the first two members used

Laws, checked on every offset in the tests: ⊗ is associative with neutral ``A(1)``; ⊕ is associative, commutative and
idempotent; ⊗ distributes over ⊕ on both sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from math import prod
from typing import TYPE_CHECKING, ClassVar

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.index_set import LIMIT, IndexSet, index_set, whole_number
from layout_advise.layoutalgebra.sets.products import count_rows
from layout_advise.layoutalgebra.terms.notation import ASCII, LATEX, UNICODE, Notation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MATERIAL = 1 << 28
"""Terms up to this many places may be written out as arrays."""


class Term(ABC):
    """A layout term; one of :class:`Leaf`, :class:`Prod`, :class:`Sum`.

    ``draw_svg`` is what a notebook shows a term with: ``layout_advise.layoutalgebra`` sets it to
    :func:`layout_advise.layoutalgebra.draw.picture.picture`. Without one a notebook shows the term in LaTeX.
    """

    __slots__ = ()
    draw_svg: ClassVar[Callable[[Term], str] | None] = None

    @property
    @abstractmethod
    def size(self) -> int:
        """Size of the domain (the diameter)."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of accessed offsets."""

    @abstractmethod
    def __call__(self, offset: int) -> int:
        """The characteristic function: 1 if ``offset`` is accessed, else 0."""

    @abstractmethod
    def iter_offsets(self) -> Iterator[int]:
        """The accessed offsets, ascending, one at a time (costs nothing before it is iterated)."""

    def offsets(self) -> list[int]:
        """The accessed offsets, ascending. Raises :class:`AlgebraError` beyond 2**28 (see :meth:`iter_offsets`)."""
        if self.size > MATERIAL and self.count > MATERIAL:
            raise AlgebraError("too many offsets to list", f"{self.count} of them", "iterate over iter_offsets()")
        return list(self.iter_offsets())

    def bitmap(self) -> NDArray[np.bool_]:
        """The characteristic function as an array of ``size`` booleans. Raises :class:`AlgebraError` beyond 2**28."""
        if self.size > MATERIAL:
            raise AlgebraError("term too large to write out", f"{self.size} places")
        return _bitmap(self)

    def __matmul__(self, other: Term) -> Term:
        return product((self, other)) if isinstance(other, Term) else NotImplemented

    def __add__(self, other: Term) -> Term:
        return union((self, other)) if isinstance(other, Term) else NotImplemented

    def ascii(self) -> str:
        """The term in ASCII syntax: ``A[256] * S[0,1;4]``."""
        return _text(self, ASCII)

    def latex(self) -> str:
        """The term in LaTeX, in the paper's notation."""
        return _text(self, LATEX)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def _repr_svg_(self) -> str | None:
        draw = type(self).draw_svg
        return draw(self) if draw is not None else None

    def __str__(self) -> str:
        return _text(self, UNICODE)

    def __repr__(self) -> str:
        return f"parse({self.ascii()!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Term):
    """``S_{I,d}``: 1 on ``indices``, 0 elsewhere in ``[0, diameter)``; an array ``A_d`` where all of it is accessed."""

    indices: IndexSet
    diameter: int

    def __post_init__(self) -> None:
        if self.diameter < 1:
            raise AlgebraError(f"a layout of size {self.diameter}", "sizes start at 1", "leave out what has no elements")
        if self.diameter >= LIMIT:
            raise AlgebraError("layout too large", "sizes must stay below 2^63", "count in larger units")
        if self.indices.last >= self.diameter:
            raise AlgebraError(f"index {self.indices.last} in a structure of {self.diameter}", "indices stop below the size")

    @property
    def is_array(self) -> bool:
        """True where every offset is accessed."""
        return self.indices.count == self.diameter

    @property
    def size(self) -> int:
        return self.diameter

    @property
    def count(self) -> int:
        return self.indices.count

    def __call__(self, offset: int) -> int:
        return int(offset in self.indices)

    def iter_offsets(self) -> Iterator[int]:
        return iter(self.indices)


@dataclass(frozen=True, slots=True, repr=False)
class Prod(Term):
    """``L1 ⊗ L2 ⊗ ...``, the left factor slowest; at least two factors, none of them a product or ``A_1``."""

    factors: tuple[Term, ...]

    def __post_init__(self) -> None:
        if self.size >= LIMIT:
            sizes = " · ".join(str(factor.size) for factor in self.factors)
            raise AlgebraError("layout too large", f"{sizes} is beyond 2^63", "count in larger units")

    @property
    def size(self) -> int:
        return prod(factor.size for factor in self.factors)

    @property
    def count(self) -> int:
        return prod(factor.count for factor in self.factors)

    def __call__(self, offset: int) -> int:
        if not 0 <= offset < self.size:
            return 0
        for factor in reversed(self.factors):
            offset, inner = divmod(offset, factor.size)
            if not factor(inner):
                return 0
        return 1

    def iter_offsets(self) -> Iterator[int]:
        head, tail = self.factors[0], product(self.factors[1:])
        for outer in head.iter_offsets():
            for inner in tail.iter_offsets():
                yield outer * tail.size + inner


@dataclass(frozen=True, slots=True, repr=False)
class Sum(Term):
    """``L1 ⊕ L2 ⊕ ...`` over one domain: accessed where any of them is; at least two terms, none of them a sum."""

    terms: tuple[Term, ...]

    @property
    def size(self) -> int:
        return self.terms[0].size

    @property
    def count(self) -> int:
        rows = rows_of(self)
        alike = len({tuple(leaf.size for leaf in row) for row in rows}) == 1
        counted = count_rows([tuple(leaf.indices for leaf in row) for row in rows]) if alike else None
        return counted if counted is not None else int(self.bitmap().sum())

    def __call__(self, offset: int) -> int:
        return int(any(term(offset) for term in self.terms))

    def iter_offsets(self) -> Iterator[int]:
        last = -1
        for offset in merge(*(term.iter_offsets() for term in self.terms)):
            if offset != last:
                yield offset
            last = offset


def A(n: int) -> Leaf:  # the paper's names
    """``A_n``: all of ``[0, n)`` accessed. Raises :class:`AlgebraError` for sizes below 1 or from 2**63."""
    n = whole_number(n, "an array of size")
    if n < 1:
        raise AlgebraError(f"an array of size {n}", "sizes start at 1", "leave out what has no elements")
    if n >= LIMIT:
        raise AlgebraError("layout too large", "sizes must stay below 2^63", "count in larger units")
    return Leaf(index_set((range(n),)), n)


def S(indices: Iterable[int | range] | IndexSet, d: int) -> Leaf:
    """``S_{I,d}``: the offsets (or ranges of offsets) ``indices`` of ``[0, d)`` accessed.

    Raises :class:`AlgebraError` for an empty set, an index outside ``[0, d)``, or a size beyond 2**63.
    """
    d = whole_number(d, "a structure of size")
    if isinstance(indices, IndexSet):
        return Leaf(indices, d)
    return Leaf(index_set([indices] if isinstance(indices, range) else indices), d)


def product(factors: Iterable[Term]) -> Term:
    """``L1 ⊗ L2 ⊗ ...``, flattened and without ``A_1`` (``A_1`` itself for nothing)."""
    flat: list[Term] = []
    for factor in factors:
        flat.extend(factor.factors if isinstance(factor, Prod) else (factor,))
    flat = [f for f in flat if f.size > 1]
    if not flat:
        return A(1)
    return flat[0] if len(flat) == 1 else Prod(tuple(flat))


def union(terms: Iterable[Term]) -> Term:
    """``L1 ⊕ L2 ⊕ ...``, flattened, each term once. Raises :class:`AlgebraError` where the domains differ."""
    flat: list[Term] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, Sum) else (term,))
    flat = list(dict.fromkeys(flat))
    sizes = sorted({term.size for term in flat})
    if len(sizes) > 1:
        raise AlgebraError("⊕ of different domains", f"sizes {sizes[0]} and {sizes[-1]}", "both sides need one size")
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def factors_of(term: Term) -> tuple[Term, ...]:
    """The factors of a product, else the term alone."""
    return term.factors if isinstance(term, Prod) else (term,)


def terms_of(term: Term) -> tuple[Term, ...]:
    """The terms of a sum, else the term alone."""
    return term.terms if isinstance(term, Sum) else (term,)


def rows_of(term: Term) -> list[tuple[Leaf, ...]]:
    """The term as a sum of products of leaves: ⊗ distributed over ⊕."""
    if isinstance(term, Leaf):
        return [(term,)]
    if isinstance(term, Sum):
        return [row for part in term.terms for row in rows_of(part)]
    rows: list[tuple[Leaf, ...]] = [()]
    for factor in factors_of(term):
        rows = [(*row, *more) for row in rows for more in rows_of(factor)]
    return rows


def _text(term: Term, notation: Notation, inside: bool = False) -> str:
    """The term as ``notation`` writes it; ``inside`` a product, sums stand in parentheses."""
    if isinstance(term, Leaf):
        return notation.leaf_text(term.indices, term.diameter)
    if isinstance(term, Prod):
        return notation.times.join(_text(factor, notation, True) for factor in term.factors)
    return notation.sum_text([(_text(part, notation), isinstance(part, Prod)) for part in terms_of(term)], inside)


def _bitmap(term: Term) -> NDArray[np.bool_]:
    import numpy as np

    if isinstance(term, Leaf):
        bits = np.zeros(term.size, dtype=np.bool_)
        for run in term.indices.runs:
            bits[run.start : run.stop : run.step] = True
        return bits
    if isinstance(term, Prod):
        bits = _bitmap(term.factors[0])
        for factor in term.factors[1:]:
            bits = np.logical_and.outer(bits, _bitmap(factor)).reshape(-1)
        return bits
    bits = np.zeros(term.size, dtype=np.bool_)
    for part in terms_of(term):
        bits |= _bitmap(part)
    return bits
