"""Structures that the hotspot's code cannot be re-indexed for are left to themselves; others are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.observe.observe import Observation
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.proposals import refused
from layout_advise.propose.recipes import Code
from layout_advise.propose.source import Source
from tests.support.mockups.case import Case

SUMS = """
void sums(const char *memory, const int *order, long n, const long *length, float *out) {
    for (long k = 0; k < n; k++) {
        const float *v = (const float *)(memory + 60 * order[k] + 12);
        float sum = 0;
        for (long i = 0; i < *length; i++) sum += v[i] * v[i];
        out[2 * k] = sum, out[2 * k + 1] += sum;
    }
}"""
FLAGS = ("-O2", "-fno-tree-vectorize", "-fno-unroll-loops")


def test_one_layout_that_cannot_be_reached_does_not_refuse_the_others(tmp_path: Path) -> None:
    """A loop goes over the fields of a record: an array for each cannot be reached, the fields closer together can."""
    case = Case(SUMS, "sums", FLAGS, tmp_path)
    random = np.random.default_rng(11)
    data = random.random((40, 15)).astype(np.float32)
    order, count, out = random.permutation(40).astype(np.int32), np.array([8], np.int64), np.zeros(80, np.float32)
    case.arrays = [data, order, count, out]
    case.integers = [data.ctypes.data, order.ctypes.data, 40, count.ctypes.data, out.ctypes.data]
    fields = tuple(Field(f"f{12 + 4 * k}", 12 + 4 * k, 4, reads=40) for k in range(8))
    pair = tuple(Field(name, offset, 4, reads=40) for name, offset in (("sum", 0), ("all", 4)))
    case.structures = (
        Structure("s0", "memory", data.ctypes.data, data.nbytes, (Dim(40, 60),), fields),
        Structure("s1", "out", out.ctypes.data, out.nbytes, (Dim(40, 8),), pair),
    )
    case.prepare()
    derived = tuple(Derived(one, None, 4, 0, False) for one in case.structures)
    seen = Observation(case.native.region, case.trace, derived, (), ())
    source = Source(Code(case.lifted, case.lifted), case.lifted, case.trace, case.structures, Compiled("gcc", FLAGS))
    assert refused(seen, source) == {}
