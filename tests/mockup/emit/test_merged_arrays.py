"""Mock-ups of arrays that share their records leave the same bytes, and have one pointer to a record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.merge.merged_candidates import merged_candidates
from layout_advise.layoutalgebra.merge.records import merge
from layout_advise.mockup.emit.packs.fmaddsub import brings_together, elements_whole
from layout_advise.propose.shared_index import shared_indices
from tests.support import slower
from tests.support.mockups.array_kernels import gathered, of_arrays, streamed
from tests.support.mockups.case import FLAGS, Case, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate

ROWS = """
void rows(double *a, const float *b, long n, long m) {
    for (long i = 1; i < n - 1; i++)
        for (long j = 0; j < m; j++) a[i * m + j] += b[(i - 1) * m + j] - b[(i + 1) * m + j];
}"""


def all_merged(case: Case) -> list[Candidate]:
    """The candidates that merge arrays."""
    case.prepare()
    shared = shared_indices(case.lifted, case.trace, case.structures)
    return merged_candidates(case.structures, shared, {}, (16, 32))


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("make", [gathered, streamed], ids=["gathered", "streamed"])
def test_every_candidate_leaves_the_same_bytes(make: object, flags: tuple[str, ...], tmp_path: Path) -> None:
    assert callable(make)
    case = make(tmp_path, flags)
    found = all_merged(case)
    assert any(c.block is None for c in found)
    as_it_is = case.lifted
    for chosen in found:
        assert len(chosen.relayouts) > len(chosen.stored)
        case.lifted = as_it_is
        verify(case, chosen)


@pytest.mark.parametrize("flags", [FLAGS["O3-avx2"], *slower((FLAGS["O2"],))], ids=["O3-avx2", "O2"])
def test_rows_that_share_records(flags: tuple[str, ...], tmp_path: Path) -> None:
    some = np.random.default_rng(5)
    a, b = some.random((9, 14)), some.random((9, 14)).astype(np.float32)
    case = of_arrays(ROWS, "rows", tmp_path, flags, [9, 14], a=a, b=b)
    verify(case, candidate(*merge(case.structures)))


@pytest.mark.parametrize("make", [gathered, streamed], ids=["gathered", "streamed"])
def test_a_record_has_one_pointer(make: object, tmp_path: Path) -> None:
    assert callable(make)
    case = make(tmp_path)
    chosen = next(c for c in all_merged(case) if len(c.stored) == 1 and c.block is None)
    text = emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert "la_buffer_count = 1;" in text
    assert text.count("uint8_t *at_") == 1
    assert "the same index */" in text


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
def test_two_records_of_two_arrays_each(flags: tuple[str, ...], tmp_path: Path) -> None:
    case = streamed(tmp_path, flags)
    a, b, c, d = case.structures
    verify(case, candidate(*merge((a, c)), *merge((b, d))))


def test_merging_brings_together_what_was_apart(tmp_path: Path) -> None:
    """Though each array has one field only: compilers are told of what moves as a whole."""
    chosen = candidate(*merge(streamed(tmp_path).structures))
    assert brings_together(chosen)
    assert not elements_whole(chosen)
