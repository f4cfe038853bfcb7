"""The element at an address, among blocks that lie anywhere: against the blocks gone through one by one."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.scattered_elements import ElementBlock
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Relayout, Structure
from layout_advise.mockup.emit.copies import block_tables
from layout_advise.mockup.run.build import build

STRIDE = 24
ASKED = """
LA_EXPORT int64_t number(int64_t address) { return la_number(&pool_s0, 24, address); }
LA_EXPORT int64_t distance(int64_t address) { return la_distance(&pool_s0, 24, address); }
LA_EXPORT int64_t element(int64_t index) { return la_element(&pool_s0, 24, index); }
"""


def blocks_of(counts: list[int], gaps: list[int]) -> tuple[ElementBlock, ...]:
    """Blocks with so many elements each, so many bytes apart."""
    found, address, first = [], 0x5555_0000_1230, 0
    for count, gap in zip(counts, gaps, strict=True):
        address += gap
        found.append(ElementBlock(address, first, count, address, STRIDE * count))
        address, first = address + STRIDE * count, first + count
    return tuple(found)


@pytest.mark.parametrize("each", [1, 3, 0], ids=["single", "threes", "any"])
@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_elements_are_found_by_their_addresses(each: int, far: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    counts = [each or int(n) for n in random.integers(1, 9, 400)]
    gaps = [0, 8, *(int(g) for g in random.integers(8, 4000, 398))]
    gaps[200] += 1 << 46 if far else 0  # a heap, and mappings
    blocks = blocks_of(counts, gaps)
    count = sum(counts)
    shape = Structure("s0", "nodes", 1 << 50, STRIDE * count, (Dim(count, STRIDE),), (Field("a", 0, 8),), blocks=blocks)
    tables = block_tables([Relayout(shape, (), (), (), "A")])
    made = build(
        f'#include "mockup.h"\n{tables}\n{ASKED}', tmp_path / "lookup.so", flags=("-O2", "-Wall", "-Wextra", "-Werror")
    )
    assert made.path is not None, made.log
    code = ctypes.CDLL(str(made.path))
    for name in ("number", "distance", "element"):
        getattr(code, name).restype, getattr(code, name).argtypes = ctypes.c_int64, [ctypes.c_int64]
    for block in blocks:
        for k in range(block.count):
            at = block.address + STRIDE * k
            assert code.element(block.first + k) == at
            assert code.number(at) == code.number(at + STRIDE - 1) == block.first + k
            assert code.distance(at + 5) == STRIDE * (block.first + k) + 5
    inside = [(b.address, b.address + STRIDE * b.count) for b in blocks]
    first, last = inside[0][0], inside[-1][1]
    for asked in [0, first - 1, last, last + 1, 2**63 - 1, -(2**63), *random.integers(first, min(last, first + 10**6), 500)]:
        assert (code.distance(int(asked)) >= 0) == any(low <= asked < end for low, end in inside)
