"""The executions of references that a check build records, of code that stands in the mock-up several times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.ir.lifted import Store
from tests.support.mockups.case import Case

MIDDLE = """
struct body { double x, v; };
void step(struct body *b, long n) {
    long i = 0;
    if (n & 1)
        goto middle;
    for (;;) {
        b[i].x += 0.5;
    middle:
        b->v += b[i].x;
        if (++i >= n)
            return;
    }
}"""


def test_every_copy_of_a_load_is_recorded(tmp_path: Path) -> None:
    """A loop that is entered in its middle gets that half once more before it. Both access one place, and were taken for
    one that does so in two pieces: "ran 0 times, 1498 times in the trace", and a verified run was thrown away."""
    case = Case(MIDDLE, "step", ("-O2", "-fno-tree-vectorize"), tmp_path)
    bodies = np.random.default_rng(5).random((37, 2))
    case.arrays, case.integers = [bodies], [bodies.ctypes.data, 37]
    case.prepare()
    assert case.run(None, "identity")[0] == case.expected
    stores = [a for a in accesses(case.lifted.body) if isinstance(a, Store)]
    assert len({a.origin.pc for a in stores}) < len(stores), "nothing stands in it twice"
    stored = {a.origin.pc for a in stores}
    counts = [s.count for r, s in zip(case.trace.references, case.trace.streams, strict=True) if s and r.pc in stored]
    assert sum(counts) == 37 + 36  # b->v in every iteration, b[i].x in all but the first, which begins behind it
