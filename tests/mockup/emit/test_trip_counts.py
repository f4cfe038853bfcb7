"""What the mock-up's compiler is told of how often a loop runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from tests.support import slower
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

ROWS = """
struct cell { double u, v, w; };
void rows(struct cell *a, long n) {
    for (long i = 0; i < n; i++)
        for (long k = 0; k < COUNT; k++) a[COUNT * i + k].u += 0.5 * a[COUNT * i + k].v;
}"""


@pytest.mark.parametrize(("count", "told"), [*slower((94, True)), (17, True), (16, False), *slower((6, False))])
def test_long_counts_that_are_constants_are_told_and_short_ones_are_not(count: int, told: bool, tmp_path: Path) -> None:
    """With a row's 94 cells hidden, gcc -O2 made vectors of no layout: 1.2 where 2.4 is gained by hand."""
    case = Case(ROWS.replace("COUNT", str(count)), "rows", ("-O2", "-fno-tree-vectorize", "-fno-unroll-loops"), tmp_path)
    data = np.random.default_rng(1).random((5 * count, 3))
    case.arrays, case.integers = [data], [data.ctypes.data, 5]
    fields = f64_fields(("u", 0), ("v", 8), ("w", 16))
    case.structures = (Structure("s0", "a", data.ctypes.data, data.nbytes, (Dim(5 * count, 24),), fields),)
    case.prepare()
    chosen = candidate(relayout(case.structures[0], "soa"))
    text = emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert f"= {count};" in text
    assert ("LA_OPAQUE(n" in text) is not told
    verify(case, chosen)
