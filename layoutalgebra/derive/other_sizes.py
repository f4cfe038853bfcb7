"""A structure that another call has with other sizes: elsewhere, or in the same block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from layout_advise.layoutalgebra.derive.structure import Dim, Structure


def of_other_sizes(mine: Structure, other: Structure) -> Structure | None:
    """``mine`` at the place and with the number of elements that ``other`` has; None where that has other fields, or is gone
    through in another way."""
    dims, offset = _dims_there(mine.dims, other.dims), mine.base - mine.block_base
    if dims is None or other.base - other.block_base != offset or (other.inexact and not mine.inexact):
        return None
    if not {(f.offset, f.bytes) for f in other.fields} <= {(f.offset, f.bytes) for f in mine.fields}:
        return None
    return replace(mine, base=other.base, bytes=other.bytes, block_base=other.block_base, dims=dims)


def has_other_rows(mine: Structure, other: Structure) -> bool:
    """Tells whether both have as many dimensions, and rows of different lengths."""
    strides = [d.stride for d in mine.dims]
    return len(mine.dims) == len(other.dims) and strides != [d.stride for d in other.dims]


def _dims_there(mine: tuple[Dim, ...], other: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """The dimensions of ``mine`` as another call has it: with another number of rows, or, where rows follow each other
    without gaps, with rows of another length. One without rows has those of the other one as a single row. None where the
    call goes through it in another way."""
    if [d.stride for d in mine] == [d.stride for d in other] and mine[1:] == other[1:]:
        return other
    if mine[-1].stride != other[-1].stride or not (is_gapless(mine) and is_gapless(other)):
        return None
    if len(mine) == 1:
        return (Dim(math.prod(d.count for d in other), mine[0].stride),)
    return other if len(mine) == len(other) else None


def is_gapless(dims: Sequence[Dim]) -> bool:
    """Tells whether each row begins where the one before it ends."""
    return all(outer.stride == inner.count * inner.stride for outer, inner in pairwise(dims))
