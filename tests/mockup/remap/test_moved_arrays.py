"""Plain arrays that only begin elsewhere: accesses stay as wide as they are, wherever their pointers come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.propose.line_starts import worth_lines
from tests.support.mockups.case import Case
from tests.support.mockups.emitted import emit_mockup

SOURCES = {
    "wide accesses": """
        for (long i = 0; i < n; i++) {
            long k = order[i]; unsigned long word; unsigned half;
            __builtin_memcpy(&word, p + k, 8); __builtin_memcpy(&half, p + 5 * i, 4);
            word ^= half; __builtin_memcpy(p + k + 3, &word, 8); p[k] += 1;
        }""",
    "a pointer that moves": """
        for (const int *at = order; at < order + n; at++) {
            unsigned char *one = p + *at;
            while (*one & 3) { one += 1 + (*one & 1); one[0] += one[1]; if (one > p + 600) break; }
        }""",
}


@pytest.mark.parametrize("flags", [("-O1",), ("-O2",), ("-O3", "-march=haswell")])
@pytest.mark.parametrize("name", SOURCES)
def test_arrays_of_bytes_are_not_written_byte_by_byte(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(f"void step(unsigned char *p, const int *order, long n) {{{SOURCES[name]}}}", "step", flags, tmp_path)
    whole, order = np.random.default_rng(4).integers(0, 200, 700, np.uint8), np.random.default_rng(5).integers(0, 500, 60)
    start = 7 - whole.ctypes.data % 4
    data, order = whole[start : start + 640], order.astype(np.int32)
    case.arrays, case.integers = [data, order], [data.ctypes.data, order.ctypes.data, 60]
    fields = (Field("p", 0, 1, "unsigned char", 9, 9),)
    shape = Structure("s0", "p", data.ctypes.data, 640, (Dim(640, 1),), fields, (), data.ctypes.data)
    case.structures = (shape,)
    case.prepare()
    candidate = worth_lines([shape])
    assert candidate is not None
    text = emit_mockup(case.lifted, candidate, case.trace, case.structures)
    assert "<< 8" not in text.partition("_mockup(")[2]
    found, done = case.run(candidate, "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)
    assert done.remapped > 60
    assert case.run(candidate, "plain")[0] == case.expected
    assert case.run(candidate, "wrong", wrong=True)[0] != case.expected


WIDER = """
void step(TYPE *p, TYPE *q, const int *order, long n)
{
    for (long i = 0; i < n; i++) {
        p[order[i]] += q[i];
        if (p[i] > 100)
            q[order[i]] -= p[i];
    }
}
"""


@pytest.mark.parametrize("inner", [0, 3])
@pytest.mark.parametrize(("kind", "dtype"), [("short", np.int16), ("double", np.float64)])
def test_arrays_of_wider_numbers_whose_pointers_a_call_is_handed(
    kind: str, dtype: type[np.generic], inner: int, tmp_path: Path
) -> None:
    """What the call brings along is the new address: its step was taken for one of elements, and is one of bytes."""
    case = Case(WIDER.replace("TYPE", kind), "step", ("-O2",), tmp_path)
    whole = np.random.default_rng(4).integers(0, 200, 700).astype(dtype)
    order = np.random.default_rng(5).integers(0, 300, 60).astype(np.int32)
    data, size = whole[1 + (whole.ctypes.data // whole.itemsize) % 2 : 641], whole.itemsize
    case.arrays = [data, order]
    case.integers = [data.ctypes.data + inner * size, data.ctypes.data + 300 * size, order.ctypes.data, 60]
    fields = (Field("p", 0, size, kind, 9, 9),)
    place = (data.ctypes.data, data.nbytes, (Dim(len(data), size),))
    case.structures = (Structure("s0", "p", *place, fields, (), data.ctypes.data),)
    case.prepare()
    candidate = worth_lines(case.structures)
    assert candidate is not None
    found, done = case.run(candidate, "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)
    assert done.remapped >= 120
    assert case.run(candidate, "plain")[0] == case.expected
    assert case.run(candidate, "restrict", variant="restrict")[0] == case.expected
