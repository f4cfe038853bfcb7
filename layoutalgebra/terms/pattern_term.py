"""The exact term of a set of touched units on a grid: equal rows grouped, dimension by dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layout_advise.layoutalgebra.sets.index_set import index_set
from layout_advise.layoutalgebra.terms.simplify import simplify
from layout_advise.layoutalgebra.terms.term import Leaf, Term, product, union

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TERMS, RUNS = 256, 4096
"""A set that needs more ⊕ terms, or more progressions in one S, is called irregular: no term is claimed."""
PART = 1 << 16
"""So many rows are looked at first."""


def pattern_term(bits: NDArray[np.bool_], sizes: Sequence[int]) -> Term | None:
    """A term with factors of ``sizes`` (left slowest) and characteristic function ``bits``; ``None`` if irregular.

    ``bits`` has ``prod(sizes)`` elements, at least one of them true.
    """
    rows = _rows(bits, list(sizes))
    return None if rows is None else simplify(union(product(row) for row in rows))


def _rows(bits: NDArray[np.bool_], sizes: list[int]) -> list[tuple[Leaf, ...]] | None:
    import numpy as np

    if len(sizes) == 1:
        leaf = _leaf(bits)
        return None if leaf is None else [(leaf,)]
    table = bits.reshape(-1, sizes[-1])
    found_rows = _distinct(_keys(table))
    if found_rows is None:
        return None
    first, inverse = found_rows
    if not np.array_equal(table[first][inverse], table):
        return None
    found: list[tuple[Leaf, ...]] = []
    for number, representative in enumerate(first):
        row = table[representative]
        if not row.any():
            continue
        inner, outer = _leaf(row), _rows(inverse == number, sizes[:-1])
        if inner is None or outer is None or len(found) + len(outer) > TERMS:
            return None
        found.extend((*leaves, inner) for leaves in outer)
    return found


def _distinct(keys: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """The place of the first of each key, and the number of each place's key; ``None`` for more than :data:`TERMS` keys.

    Equal neighbours count once, and a part tells that there are too many: sorting tens of millions takes seconds."""
    import numpy as np

    changes = np.concatenate([[0], np.flatnonzero(keys[1:] != keys[:-1]) + 1])
    few = keys[changes]
    if len(few) > PART and len(np.unique(few[:PART])) > TERMS:
        return None
    values, first, inverse = np.unique(few, return_index=True, return_inverse=True)
    if len(values) > TERMS:
        return None
    return changes[first], np.repeat(inverse, np.diff(np.append(changes, len(keys))))


def _keys(table: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A number for each row, equal for equal rows (the caller checks the converse)."""
    import numpy as np

    packed = np.packbits(table, axis=1)
    keys = np.zeros(len(table), dtype=np.uint64)
    for column in range(packed.shape[1]):
        keys = keys * np.uint64(0x9E3779B97F4A7C15 if packed.shape[1] > 8 else 256) + packed[:, column]
    return keys


def _leaf(row: NDArray[np.bool_]) -> Leaf | None:
    import numpy as np

    places = np.flatnonzero(row)
    steps = np.diff(places)
    if len(places) == 1 or (steps == steps[0]).all():
        step = int(steps[0]) if len(steps) else 1
        return Leaf(index_set([range(int(places[0]), int(places[-1]) + 1, step)]), len(row))
    cuts = np.flatnonzero(steps != 1)
    if len(cuts) < RUNS:
        begins, ends = places[np.concatenate([[0], cuts + 1])], places[np.concatenate([cuts, [len(places) - 1]])]
        indices = index_set(range(int(b), int(e) + 1) for b, e in zip(begins, ends, strict=True))
    elif len(places) <= 1 << 17:
        indices = index_set(places.tolist())
    else:
        return None
    return Leaf(indices, len(row)) if len(indices.runs) <= RUNS else None
