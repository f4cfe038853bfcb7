"""Mock-ups that end their process at an access whose place is not that of the layout."""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from tests.support.mockups.case import Case, f64_fields
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout, run_mockup

COUNT = 48
SETS = """
struct record { double a, b, c, d; };
struct set { struct record *records; double *sums; long n; };
void add(const struct set *s)
{
    for (long i = 0; i < s->n; i++)
        s->sums[i] += s->records[i].c;
}
"""


def end_of(source: str, case: Case) -> int:
    """How a process ends that makes the call of the mock-up, and nothing else."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            run_mockup(source, case.where / "ending.so", case.integers)
            os._exit(0)
        finally:
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("kind", ["soa", "compact", "blocks"])
def test_an_access_to_other_memory_ends_the_process(kind: str, tmp_path: Path) -> None:
    case = Case(SETS, "add", ("-O2",), tmp_path)
    near, far = np.random.default_rng(1).random((2, COUNT, 4))
    near, far, sums = near.copy(), far.copy(), np.zeros(COUNT)
    given = np.array([near.ctypes.data, sums.ctypes.data, COUNT])
    case.arrays, case.integers = [near, far, sums, given], [given.ctypes.data]
    shape = Structure("s0", "near", near.ctypes.data, near.nbytes, (Dim(COUNT, 32),), f64_fields(("c", 16)))
    case.structures = (shape,)
    case.prepare()
    source = emit_mockup(
        case.lifted, candidate(relayout(shape, kind)), case.trace, case.structures, check=True, ends=True,
        varying=frozenset(range(16)),
    )  # fmt: skip
    run_mockup(source, tmp_path / "same.so", case.integers)
    assert case.restore() == case.expected
    assert end_of(source, case) == 0
    given[0] = far.ctypes.data  # a pointer that the call loads, to memory that is there
    assert end_of(source, case) == -signal.SIGSEGV
    given[:2] = near.ctypes.data, near.ctypes.data + 16  # what is not re-laid leads to what is
    assert end_of(source, case) == -signal.SIGSEGV
    given[1] = near.ctypes.data + 32 * COUNT - 8
    given[2] = 1  # behind the last c: no field of the layout
    assert end_of(source, case) == 0
