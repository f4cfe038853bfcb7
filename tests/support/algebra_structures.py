"""Structures that several tests of the algebra use."""

from __future__ import annotations

from itertools import product as cartesian

import numpy as np

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.chosen_elements import choose
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from tests.support.mockups.case import f64_fields


def of_sizes(counts: list[int], sizes: list[int], gaps: list[int], element: int) -> Structure:
    """Fields of several sizes, each after a gap, in elements rounded up to ``element`` bytes."""
    fields, place = list[Field](), 0
    for number, (size, gap) in enumerate(zip(sizes, gaps, strict=True)):
        fields.append(Field(f"m{number}", place + gap, size, None, 1 + number % 2, number % 3))
        place += gap + size
    stride, dims = -(-place // element) * element, list[Dim]()
    for count in reversed(counts):
        dims.insert(0, Dim(count, stride))
        stride *= count
    return Structure("s0", "t", 0, stride, tuple(dims), tuple(fields))


def chosen_of_blocks(block: int, picks: list[int]) -> tuple[Structure, Walk]:
    """Cells of 32 bytes, of which one of each ``block`` is used."""
    used = np.zeros(block * len(picks), np.bool_)
    used[[block * k + pick % block for k, pick in enumerate(picks)]] = True
    cells = Structure("s0", "cells", 0, 32 * len(used), (Dim(len(used), 32),), f64_fields(("value", 0), ("rate", 8)))
    return cells, Walk(0, True, 1 / block, choose(used))


def is_injective(layout: Relayout, limit: int = 1 << 20) -> bool:
    """True if no byte of the buffers is used twice and none is out of bounds: tries every element (up to ``limit``)."""
    used: set[tuple[int, int]] = set()
    structure = layout.structure
    if structure.count > limit:
        raise AlgebraError("structure too large to try every element", f"{structure.count} elements")
    for index in filter(layout.holds, cartesian(*(range(dim.count) for dim in structure.dims))):
        for field in layout.fields:
            start = field.place(index)
            size = structure.fields[field.field].bytes
            if start < 0 or start + size > layout.buffers[field.buffer].bytes:
                return False
            places = {(field.buffer, start + k) for k in range(size)}
            if used & places:
                return False
            used |= places
    return True
