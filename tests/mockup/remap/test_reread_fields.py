"""Loads that are made where their values are used, as a source may read again after each store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from tests.support.mockups.case import Case, f64_fields, reads_again, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

AGENTS = """
struct agent { double x, y, age, health; };
void grow(struct agent *a, long n) {
    for (long i = 0; i < n; i++) {
        double x = a[i].x, age = a[i].age;
        a[i].age = age + x;
        a[i].health = x * age - x;
    }
}"""
COUNT = 37


def agents(where: Path) -> tuple[Case, Structure]:
    case = Case(AGENTS, "grow", ("-O1",), where)
    data = np.random.default_rng(3).random((COUNT, 4))
    case.arrays, case.integers = [data], [data.ctypes.data, COUNT]
    fields = f64_fields(*((name, 8 * k) for k, name in enumerate(("x", "y", "age", "health"))))
    shape = Structure("s0", "agents", data.ctypes.data, data.nbytes, (Dim(COUNT, 32),), fields)
    case.structures = (shape,)
    return case, shape


def test_what_is_never_written_is_read_where_it_is_used(tmp_path: Path) -> None:
    """sampo's arrays, by hand 0.6 times as fast as its records, had 1.02 as a mock-up: each number was read once."""
    case, shape = agents(tmp_path)
    chosen = candidate(relayout(shape, "soa"))
    verify(case, chosen)
    once, again = (emit_mockup(case.lifted, chosen, case.trace, case.structures, reread=one) for one in (False, True))
    assert "const double x_" in once
    assert "const double x_" not in again  # it has no variable of its own
    assert again.count("*(const double *)") >= 3 * 1 + 1  # x at each of its three uses, and age once
    assert "const double age_" in again  # it is written, and the old value is used behind that
    assert "*(double *)" in again  # arrays of doubles, to the compiler as well


def test_members_of_one_record_are_not_read_again(tmp_path: Path) -> None:
    """A compiler knows that they do not overlap."""
    case, shape = agents(tmp_path)
    case.prepare()
    assert not reads_again(case, candidate(relayout(shape, "compact")))
    assert reads_again(case, candidate(relayout(shape, "split")))


@pytest.mark.parametrize("stored", [True, False])
def test_only_stores_to_what_is_re_laid_make_it_read_again(stored: bool, tmp_path: Path) -> None:
    """What the program stores elsewhere, its compiler has taken into account."""
    source = AGENTS if stored else AGENTS.replace("a[i].age = age + x;", "").replace("a[i].health =", "out[i] =")
    source = source.replace("long n)", "long n, double *out)")
    case, shape = agents(tmp_path)
    out = np.zeros(COUNT)
    (tmp_path / "other").mkdir()
    other = Case(source, "grow", ("-O1",), tmp_path / "other")
    other.arrays, other.integers = [*case.arrays, out], [*case.integers, out.ctypes.data]
    other.structures = (shape,)
    other.prepare()
    assert reads_again(other, candidate(relayout(shape, "soa"))) == stored
