"""⊕ made small: ``(S_I ⊗ L) ⊕ (S_J ⊗ L) = S_{I∪J} ⊗ L`` wherever two terms differ in one factor only."""

from __future__ import annotations

from layout_advise.layoutalgebra.sets.products import Row, merged_rows
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of, product, rows_of, union


def simplify(term: Term) -> Term:
    """An equal term (same characteristic function) with merged ⊕.

    Sums inside products are multiplied out first (⊗ distributes over ⊕), so that the result is a leaf, a product of
    leaves, or a sum of those. Terms that lie inside another one vanish. The order of the terms does not matter for
    terms with the same factor sizes: the result is sorted.
    """
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row in rows_of(term):
        groups.setdefault(tuple(leaf.size for leaf in row), []).append(tuple(leaf.indices for leaf in row))
    merged = [(row, sizes) for sizes in sorted(groups) for row in merged_rows(groups[sizes])]
    return union(product(map(Leaf, row, sizes)) for row, sizes in merged)


def disjoint(a: Term, b: Term) -> bool | None:
    """True for two products of leaves with equal factor sizes that share no offset; ``None`` where the sizes differ."""
    left, right = factors_of(a), factors_of(b)
    if [f.size for f in left] != [f.size for f in right] or not all(isinstance(f, Leaf) for f in (*left, *right)):
        return None
    return any(
        x.indices.isdisjoint(y.indices)
        for x, y in zip(left, right, strict=True)
        if isinstance(x, Leaf) and isinstance(y, Leaf)
    )
