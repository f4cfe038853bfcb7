"""Steps from row to row that the code computes: ``m[i * cols + j]`` with ``cols`` in a register.

The lifted address has ``8 * (cols * i)`` in it, which steps over rows, but the code does not say so. Taken as steps over
elements it would be right only in layouts in which a row's end meets the next row's start, as they do now. In others it is
taken as ``i`` steps over rows, and the mock-up ends in a trap where ``cols`` is another number than in the traced call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from layout_advise.layoutalgebra.derive.structure import Dim, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.mockup.ir.lifted import Imm, Let, Linear, Operand, Val

MOST_LOOKED_AT = 1 << 22
"""So many accesses of a reference tell how it goes over rows."""
MOST_KNOWN = 4096
"""Of so many accesses it is kept how they go over rows."""


@dataclass(frozen=True, slots=True)
class Given:
    """An assumption of a new address: ``operand`` is ``value``, or no more than that (``most``)."""

    operand: Operand | Linear
    value: int
    most: bool = False


def runs_on(relayout: Relayout) -> bool:
    """Returns whether in the new layout, too, the element behind a row's last one is the next row's first."""
    return all(_runs_on(mapped, relayout) for mapped in relayout.fields)


def _runs_on(mapped: FieldMap, relayout: Relayout) -> bool:
    counts = [d.count for d in relayout.structure.dims]
    for k in range(1, len(counts)):
        for beyond in (0, 1):
            over = tuple(counts[k] + beyond if d == k else 0 for d in range(len(counts)))
            wrapped = tuple(1 if d == k - 1 else beyond if d == k else 0 for d in range(len(counts)))
            if mapped.place(over) != mapped.place(wrapped):
                return False
    return True


@dataclass(frozen=True, slots=True)
class RowSteps:
    """What ``moving`` times ``coef`` bytes stands for, which takes ``given`` for granted; ``whole``: with the other term of
    ``moving`` that the address has."""

    moving: Operand
    coef: int
    given: Given
    whole: bool = False


def row_steps(
    product: Let | None,
    coef: int,
    relayout: Relayout,
    level: Callable[[Operand], int],
    others: Mapping[Operand, int] = MappingProxyType({}),
    walked: Collection[int] = (),
) -> RowSteps | None:
    """``coef * product`` as steps over rows, where one factor of the product moves with the loops and the other one can be a
    row's length; None where that does not hold or is not needed. ``others`` are the terms of the address, and ``walked`` the
    bytes that it was seen to move by at a time: ``i * (cols + 1)`` may be written as ``i * cols + i``.

    Matrices only: in more dimensions which of them a factor goes over is not clear from its value.
    """
    dims = relayout.structure.dims
    if product is None or len(dims) != 2 or runs_on(relayout):
        return None
    fixed, moving = sorted(product.args, key=level)
    if isinstance(fixed, Imm) or not isinstance(fixed, Val) or level(fixed) >= 0 or level(moving) < 0:
        return None
    row, beside = dims[0].stride, others.get(moving, 0)
    whole = bool(beside) and row in walked and row + beside not in walked
    rest = row - beside if whole else row
    if coef <= 0 or rest <= 0 or rest % coef or abs(coef) > dims[-1].stride:
        return None
    return RowSteps(moving, row, Given(fixed, rest // coef), whole)


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
