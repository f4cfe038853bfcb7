"""Comparisons of many bytes of which a number has a bit each: written as one, and the same in all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from tests.support.mockups.case import Case
from tests.support.mockups.emitted import emit_mockup

SOURCE = """
#include <immintrin.h>
void find(const unsigned char *p, long n, unsigned char *to, unsigned *out, long c)
{
    for (long i = 0; i < n; i++) {
        VECTOR v = LOAD((const VECTOR *)(p + SIZE * i));
        BEFORE
        out[i] = (unsigned)MOVEMASK(COMPARED);
    }
}
"""
WIDTHS = {
    16: {"VECTOR": "__m128i", "LOAD": "_mm_loadu_si128", "MOVEMASK": "_mm_movemask_epi8", "MM": "_mm"},
    32: {"VECTOR": "__m256i", "LOAD": "_mm256_loadu_si256", "MOVEMASK": "_mm256_movemask_epi8", "MM": "_mm256"},
}
OTHER = "LOAD((const VECTOR *)(p + SIZE * ((5 * i + 1) % n)))"
COMPARED = {
    "a byte": "MM_cmpeq_epi8(v, MM_set1_epi8(c))",
    "bytes": f"MM_cmpeq_epi8({OTHER}, v)",
    "less": f"MM_cmpgt_epi8({OTHER}, v)",
    "top bits": "v",
}


def masks(where: Path, width: int, compared: str, before: str = "") -> Case:
    """The case of a kernel that compares so, over random bytes of few values."""
    source = SOURCE.replace("COMPARED", COMPARED[compared]).replace("BEFORE", before)
    for name, text in {**WIDTHS[width], "SIZE": str(width)}.items():
        source = source.replace(name, text)
    case = Case(source, "find", ("-O2", "-march=haswell"), where)
    data = np.random.default_rng(3).integers(0, 4, 40 * width, np.uint8) * 80
    out = np.zeros(40, np.uint32)
    case.arrays = [data, out]
    case.integers = [data.ctypes.data, 40, data.ctypes.data, out.ctypes.data, 80]
    fields = (Field("p", 0, 1, "unsigned char", 1, 1),)
    case.structures = (Structure("s0", "p", data.ctypes.data, data.nbytes, (Dim(data.nbytes, 1),), fields),)
    case.prepare()
    return case


@pytest.mark.parametrize(
    ("compared", "width"),
    [
        pytest.param(compared, width, marks=[] if width == (16, 32)[place % 2] else pytest.mark.slow)
        for place, compared in enumerate(COMPARED)
        for width in WIDTHS
    ],
)
def test_a_mask_is_one_comparison(width: int, compared: str, tmp_path: Path) -> None:
    case = masks(tmp_path, width, compared)
    text = emit_mockup(case.lifted, None, case.trace, case.structures, vector_bytes=width)
    assert f"LA_MASK{width}(" in text
    assert f"la_i8x{width}_u *)" in text
    for check in (False, True):
        assert case.run(None, f"same{check}", check=check, vector_bytes=width)[0] == case.expected


def test_wider_ones_than_the_compiler_may_use_are_two(tmp_path: Path) -> None:
    case = masks(tmp_path, 32, "a byte")
    text = emit_mockup(case.lifted, None, case.trace, case.structures, vector_bytes=16)
    assert "LA_MASK16(" in text
    assert "LA_MASK32(" not in text
    assert case.run(None, "same", vector_bytes=16)[0] == case.expected


def test_bytes_that_are_written_before_are_those_that_were_loaded(tmp_path: Path) -> None:
    case = masks(tmp_path, 16, "a byte", "to[16 * i + 3] ^= 80; to[16 * i + 20] ^= 80;")
    text = emit_mockup(case.lifted, None, case.trace, case.structures, vector_bytes=16)
    assert "LA_MASK16(" in text
    assert "la_i8x16_u *)" not in text
    assert case.run(None, "same", vector_bytes=16)[0] == case.expected
