"""The rows of a grid that an access was seen to go over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.mockup.evidence.streams import expand_array

MOST_LOOKED_AT = 1 << 22
"""So many accesses of a reference tell how it goes over rows."""
MOST_KNOWN = 4096
"""Of so many accesses it is kept how they go over rows."""


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """How an access goes over a grid, by dimension."""

    ahead: tuple[int, ...] = ()
    """By how many elements it is moved on before its index is taken, and back afterwards; empty where by none.

    A loop may start before a row, ``m[i * cols + j - 1]`` from ``j = 0`` on, where nothing is accessed yet: taken as it is
    that is the end of the row before. The trace has the places where the access began to go along a row. None of them is
    beyond the last one, and a start that lies before them is in the same row if it is less than a row before that."""
    still: tuple[int | None, ...] = ()
    """The index that it always has; None where it has several."""


_rows: dict[tuple[int, int, tuple[Dim, ...]], tuple[Stream, RowsSeen]] = {}


def rows_of(stream: Stream | None, structure: Structure) -> RowsSeen:
    """The rows of ``structure`` that an access with these addresses goes over; nothing where that is not known in their
    order, or there is only one."""
    if not isinstance(stream, FoldedStream) or len(structure.dims) < 2:
        return RowsSeen()
    key = id(stream), structure.base, structure.dims
    known = _rows.get(key)
    if known is None or known[0] is not stream:
        if len(_rows) >= MOST_KNOWN:
            _rows.clear()
        known = _rows[key] = stream, _found(stream, structure)
    return known[1]


def _found(stream: FoldedStream, structure: Structure) -> RowsSeen:
    rest = expand_array(stream)[:MOST_LOOKED_AT].astype(np.int64) - structure.base
    ahead: list[int] = []
    still: list[int | None] = []
    turned = np.append(True, np.zeros(max(0, rest.size - 1), bool))
    for dim in structure.dims:
        column, rest = rest // dim.stride, rest % dim.stride
        moved = np.diff(column)
        forward = int(np.sign(moved[~turned[1:]]).sum()) if ahead else 0
        begun = column[turned | np.append(True, moved * np.sign(forward) < 0)]
        by = dim.count - 1 - int(begun.max()) if forward > 0 else -int(begun.min()) if forward < 0 else 0
        ahead.append(by)
        still.append(None if moved.any() else int(column[0]))
        turned[1:] |= moved != 0
    return RowsSeen(tuple(ahead) if any(ahead) else (), tuple(still))
