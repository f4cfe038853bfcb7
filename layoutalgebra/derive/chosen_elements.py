"""Irregular choices: which elements one call uses, and whether they are at most one of each few neighbours.

The sites of one parity of a lattice are such a set: exactly one of the sites 2k and 2k+1 has it, which one changes with k.
As terms: the blocks whose first element is used, ⊕ those whose second is, ``(S_{I;n} ⊗ S_{0;2}) ⊕ (S_{J;n} ⊗ S_{1;2})`` with
I and J disjoint. Rule 7 on the right factor maps both terms onto the same n places, injectively only because I and J are
disjoint: that is what is checked here, on the exact set.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING

from layout_advise.layoutalgebra.derive.structure import Chosen, Relayout, Structure
from layout_advise.layoutalgebra.sets.footprints import Touched, mark, touched
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.terms.term import MATERIAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Grid = NDArray[np.bool_]

LARGEST = 64
"""Blocks of up to this many neighbours are looked for."""
POSITIONS = 1 << 23
"""Up to this many positions a choice is carried into a mock-up: a bitmap of 1 MB."""


def used_elements(structure: Structure, accesses: Sequence[tuple[Stream, int]]) -> Grid | None:
    """One boolean for each element on the grid ``dims``: True where ``accesses`` (streams, bytes of one access) touch it.

    All streams to the structure have to be given. ``None`` where this is not known exactly: a set without a bitmap, an
    access outside the grid, a structure too large to write out, no accesses.
    """
    import numpy as np

    found: list[tuple[Touched, int]] = []
    for stream, size in accesses:
        what = touched(stream)
        if what is None:
            return None
        found.append((what, size))
    extent = structure.dims[0].count * structure.dims[0].stride
    low, high = structure.base, structure.base + extent
    if not found or any(what.first < low or what.last + size > high for what, size in found):
        return None
    unit = gcd(structure.element_bytes, *(size for _, size in found), *(what.first - low for what, _ in found))
    unit = gcd(unit, *(what.grain for what, _ in found))
    if extent // unit > MATERIAL:
        return None
    bits = np.zeros(extent // unit, dtype=np.bool_)
    for what, size in found:
        mark(bits, what, low, unit, size)
    counts = [dim.count for dim in structure.dims]
    if prod(counts) * structure.element_bytes != extent:  # gaps between rows
        return None
    grid: Grid = np.any(bits.reshape(*counts, -1), axis=-1)
    return grid


def in_one_run(used: Grid) -> bool:
    """True where at least nine tenths of the elements from the first to the last used one are used.

    An array that is not filled to its end is such a case. Nothing is picked out of it.
    """
    import numpy as np

    found = np.flatnonzero(used)
    return bool(len(found)) and 10 * len(found) >= 9 * int(found[-1] - found[0] + 1)


def filled_blocks(used: Grid, base: int, element_bytes: int, block: int) -> tuple[float, int]:
    """Of the blocks of memory (lines, pages: ``block`` bytes each) in which used elements lie, if the first element lies at
    ``base``: which part these fill, and how many there are; (0, 0) where none is used."""
    import numpy as np

    found = np.flatnonzero(used)
    if not len(found):
        return 0.0, 0
    first = (base % block + found * element_bytes) // block
    last = (base % block + (found + 1) * element_bytes - 1) // block
    begun = np.maximum(first, np.concatenate(([-1], last[:-1])) + 1)
    blocks = int(np.maximum(last + 1 - begun, 0).sum())
    return float(len(found) * element_bytes / (blocks * block)), blocks


def choose(used: Grid) -> Chosen | None:
    """The largest block, along the first dimension that has one, of which at most one element is ``used``; ``None`` where
    two of some two neighbours are, whatever the dimension, and where less than half of the blocks are used at all: then the
    elements are scattered, and a place for each block would keep them so."""
    for dim in range(used.ndim):
        count, rows = used.shape[dim], _rows(used, dim)
        each = rows.sum(axis=1)
        most, total = int(each.max(initial=0)), int(each.sum())
        for block in range(min(LARGEST, count // max(most - 1, 1)), 1, -1):
            blocks = prod(used.shape[:dim]) * -(-count // block)
            found = _chosen(rows, dim, block) if total <= blocks else None
            if found is not None:
                return found if 2 * found.elements >= blocks else None
    return None


def choose_by(used: Grid, dim: int, block: int) -> Chosen | None:
    """The ``used`` elements as a choice from blocks of ``block`` along ``dim``; ``None`` where two of one block are used,
    or where there are too many positions."""
    return _chosen(_rows(used, dim), dim, block)


def _chosen(rows: Grid, dim: int, block: int) -> Chosen | None:
    import numpy as np

    if rows.size > POSITIONS:
        return None
    row, place = np.nonzero(rows)
    numbers = row * rows.shape[1] + place // block
    if not len(place) or not (np.diff(numbers) > 0).all():
        return None
    return Chosen(dim, block, len(place), np.packbits(rows.ravel(), bitorder="little").tobytes())


def _rows(used: Grid, dim: int) -> Grid:
    """Positions (elements up to dimension ``dim``), a row for each index before it."""
    import numpy as np

    grid: Grid = np.any(used.reshape(-1, used.shape[dim], prod(used.shape[dim + 1 :])), axis=-1)
    return grid


def positions(chosen: Chosen) -> NDArray[np.int64]:
    """The used positions, ascending."""
    import numpy as np

    found: NDArray[np.int64] = np.flatnonzero(np.unpackbits(np.frombuffer(chosen.bits, np.uint8), bitorder="little"))
    return found


def first_index(layout: Relayout) -> tuple[int, ...]:
    """The index of the first element that is stored in ``layout``."""
    dims, index = layout.structure.dims, [0] * len(layout.structure.dims)
    if layout.chosen is not None:
        rest = int(positions(layout.chosen)[0])
        for dim in range(layout.chosen.dim, -1, -1):
            rest, index[dim] = divmod(rest, dims[dim].count)
    return tuple(index)


def agree(first: Chosen, later: Chosen, count: int) -> bool:
    """True where two calls' choices from the same blocks fit one permanent division of the elements into classes.

    Of the blocks that both use, they take the same element everywhere, or another one everywhere. ``count`` is the size of
    the dimension.
    """
    import numpy as np

    here, there = positions(first), positions(later)
    blocks = [at // count * count + at % count // first.block for at in (here, there)]
    _, mine, theirs = np.intersect1d(blocks[0], blocks[1], assume_unique=True, return_indices=True)
    same = here[mine] == there[theirs]
    return bool(same.all() or not same.any())
