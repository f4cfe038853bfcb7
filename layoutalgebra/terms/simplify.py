"""⊕ made small: ``(S_I ⊗ L) ⊕ (S_J ⊗ L) = S_{I∪J} ⊗ L`` wherever two terms differ in one factor only."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.layoutalgebra.sets.index_set import IndexSet
from layout_advise.layoutalgebra.terms.term import Leaf, Prod, Sum, Term, factors_of, product, terms_of, union

PAIRWISE = 4096
"""Sums of more terms than this are left as they are: merging looks at pairs."""


def simplify(term: Term) -> Term:
    """An equal term (same characteristic function) with merged ⊕.

    Sums inside products are multiplied out first (⊗ distributes over ⊕), so that the result is a leaf, a product of
    leaves, or a sum of those. Terms that lie inside another one vanish. The order of the terms does not matter for
    terms with the same factor sizes: the result is sorted.
    """
    rows = _expand(term)
    groups: dict[tuple[int, ...], list[tuple[Leaf, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(leaf.size for leaf in row), []).append(row)
    merged = [row for sizes in sorted(groups) for row in _merge(groups[sizes])]
    return union(product(row) for row in merged)


def _expand(term: Term) -> list[tuple[Leaf, ...]]:
    """The term as a sum of products of leaves."""
    if isinstance(term, Leaf):
        return [(term,)]
    if isinstance(term, Sum):
        return [row for part in term.terms for row in _expand(part)]
    rows: list[tuple[Leaf, ...]] = [()]
    for factor in factors_of(term):
        rows = [(*row, *more) for row in rows for more in _expand(factor)]
    return rows


def _merge(rows: list[tuple[Leaf, ...]]) -> list[tuple[Leaf, ...]]:
    """Merge rows of equal shape until no two differ in one factor only, position by position from the right."""
    rows = list(dict.fromkeys(rows))
    if len(rows) > PAIRWISE:
        return rows
    changed = True
    while changed and len(rows) > 1:
        before = len(rows)
        for position in reversed(range(len(rows[0]))):
            rows = _merge_at(rows, position)
        rows = _absorb(rows)
        changed = len(rows) < before
    return sorted(rows, key=lambda row: tuple((leaf.indices.first, leaf.indices.count) for leaf in row))


def _merge_at(rows: list[tuple[Leaf, ...]], position: int) -> list[tuple[Leaf, ...]]:
    """Unite rows that agree everywhere but at ``position``."""
    groups: dict[tuple[Leaf, ...], list[Leaf]] = {}
    for row in rows:
        groups.setdefault(row[:position] + row[position + 1 :], []).append(row[position])
    merged = []
    for rest, leaves in groups.items():
        indices = leaves[0].indices
        for leaf in leaves[1:]:
            indices = indices.union(leaf.indices)
        merged.append((*rest[:position], Leaf(indices, leaves[0].size), *rest[position:]))
    return merged


def _absorb(rows: list[tuple[Leaf, ...]]) -> list[tuple[Leaf, ...]]:
    """Drop rows that lie inside another one."""
    if len(rows) > 256:
        return rows
    return [r for r in rows if not any(o is not r and _inside(r, o) for o in rows)]


def _inside(row: tuple[Leaf, ...], other: tuple[Leaf, ...]) -> bool:
    return all(
        a.indices == b.indices or b.is_array or _subset(a.indices, b.indices) for a, b in zip(row, other, strict=True)
    )


def _subset(a: IndexSet, b: IndexSet) -> bool:
    common = a.intersection(b) if a.count <= b.count else None
    return common is not None and common.count == a.count


def disjoint(a: Term, b: Term) -> bool | None:
    """Whether two products of leaves with equal factor sizes share no offset; ``None`` where the sizes differ."""
    left, right = factors_of(a), factors_of(b)
    if [f.size for f in left] != [f.size for f in right] or not all(isinstance(f, Leaf) for f in (*left, *right)):
        return None
    return any(
        x.indices.isdisjoint(y.indices)
        for x, y in zip(left, right, strict=True)
        if isinstance(x, Leaf) and isinstance(y, Leaf)
    )


def union_count(terms: Sequence[Term]) -> int:
    """Number of offsets in the union; by arithmetic where the terms are disjoint products, else by writing them out."""
    merged = terms_of(simplify(union(terms)))
    if all(disjoint(a, b) for i, a in enumerate(merged) for b in merged[i + 1 :]):
        return sum(term.count for term in merged)
    rows = [tuple(f.indices for f in factors_of(term) if isinstance(f, Leaf)) for term in merged]
    shapes = {tuple(f.size for f in factors_of(term)) for term in merged}
    if len(shapes) == 1 and len(merged) <= 16 and not any(isinstance(f, Prod | Sum) for t in merged for f in factors_of(t)):
        return _inclusion_exclusion(rows)
    return int(union(merged).bitmap().sum())


def _inclusion_exclusion(rows: list[tuple[IndexSet, ...]]) -> int:
    """``|R1 ∪ R2 ∪ ...|`` for boxes of index sets of one shape."""
    total = 0
    open_sets: list[tuple[int, tuple[IndexSet, ...]]] = []
    for row in rows:
        fresh = [(1, row)]
        for sign, box in open_sets:
            common = [a.intersection(b) for a, b in zip(box, row, strict=True)]
            if all(c is not None for c in common):
                fresh.append((-sign, tuple(c for c in common if c is not None)))
        open_sets.extend(fresh)
    for sign, box in open_sets:
        volume = sign
        for indices in box:
            volume *= indices.count
        total += volume
    return total
