"""Prefetches: kept, for the same elements in other layouts, and harmless wherever they go."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.layoutalgebra.explore.explore import explore
from tests.support.mockups.case import Case, f64_fields
from tests.support.mockups.emitted import emit_mockup

SOURCE = """
struct p { double x, y, vx, vy, rest[4]; };
void move(struct p *a, const int *order, long n, long mark)
{
    for (long i = 0; i < n; i++) {
        struct p *one = &a[order[i]];
        __builtin_prefetch(&a[order[i] + 3], 1);
        __builtin_prefetch(&a[order[i] - 4].vx, 0, 2);
        __builtin_prefetch((void *)(mark * i));
        one->x += one->vx * 0.5;
        one->y += one->vy * 0.5;
    }
}
"""


def moves(where: Path, compiler: str = "gcc") -> Case:
    case = Case(SOURCE, "move", ("-O2", "-march=haswell", "-mprfchw"), where, compiler)
    data, order = np.random.default_rng(1).random((41, 8)), np.random.default_rng(2).permutation(41).astype(np.int32)
    case.arrays, case.integers = [data, order], [data.ctypes.data, order.ctypes.data, 41, 0x123456789]
    fields = f64_fields(("x", 0), ("y", 8), ("vx", 16), ("vy", 24))
    case.structures = (Structure("s0", "a", data.ctypes.data, data.nbytes, (Dim(41, 64),), fields),)
    case.prepare()
    return case


def test_the_unchanged_layout_has_them(tmp_path: Path) -> None:
    case = moves(tmp_path)
    text = emit_mockup(case.lifted, None, case.trace, case.structures)
    assert text.count("__builtin_prefetch(") == 3
    assert [text.count(f", {hint});") for hint in ("0, 2", "0, 3", "1, 3")] == [1, 1, 1]
    for check in (False, True):
        assert case.run(None, f"same{check}", check=check)[0] == case.expected


def test_other_layouts_have_them_for_the_same_elements(tmp_path: Path) -> None:
    case = moves(tmp_path)
    candidates = explore(list(case.structures), lanes=(4,))
    assert {"soa", "split"} <= {name for c in candidates for name in c.families}
    for candidate in candidates:
        text = emit_mockup(case.lifted, candidate, case.trace, case.structures)
        assert text.count("__builtin_prefetch(") == 3
        assert text.count("__builtin_prefetch((LA_WITHIN(") == 1, "the other two start from a pointer of accesses"
        found, done = case.run(candidate, candidate.id, check=True)
        assert (found, done.mismatches) == (case.expected, 0)
        assert case.run(candidate, f"{candidate.id}-plain")[0] == case.expected
