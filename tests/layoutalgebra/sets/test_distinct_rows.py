"""Equal rows of a table of touched units, found without sorting all of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.terms.pattern_term import PART, TERMS, _distinct


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=40))
def test_distinct_rows_are_those_of_a_sort(runs: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, times in runs for _ in range(times)], dtype=np.uint64)
    found = _distinct(keys)
    values, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    assert found is not None
    assert found[0].tolist() == first.tolist()
    assert found[1].tolist() == inverse.tolist()
    assert keys[found[0]].tolist() == values.tolist()


def test_too_many_distinct_rows_are_told_without_a_sort_of_all() -> None:
    assert _distinct(np.arange(PART * 2, dtype=np.uint64)) is None
    assert _distinct(np.arange(TERMS + 1, dtype=np.uint64)) is None
    assert _distinct(np.arange(TERMS, dtype=np.uint64)) is not None
