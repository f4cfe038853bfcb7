"""What a mock-up reads, wrong on purpose: noticed where all elements hold the same and a wrong place is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from tests.support.mockups.case import Case
from tests.support.mockups.native import candidate, relayout

CHOSEN = """
struct one {{ {type} flag, other; }};
void pick(struct one *p, long *out, long n) {{
    long k = 0;
    for (long i = 0; i < n; i++)
        if (p[i].flag >= ({type})0)
            out[k++] = i;
}}"""


@pytest.mark.parametrize("name", ["double", "float", "long", "int", "signed char"])
def test_values_that_are_alike_everywhere_are_read(name: str, tmp_path: Path) -> None:
    case = Case(CHOSEN.format(type=name), "pick", ("-O2",), tmp_path)
    size = {"double": 8, "long": 8, "float": 4, "int": 4, "signed char": 1}[name]
    data, out = np.zeros(2 * 24 * size, np.uint8), np.full(24, 99, np.int64)
    case.arrays, case.integers = [data, out], [data.ctypes.data, out.ctypes.data, 24]
    fields = (Field("flag", 0, size, name, 1, 0),)
    shape = Structure("s0", "p", data.ctypes.data, data.nbytes, (Dim(24, 2 * size),), fields)
    case.structures = (shape,)
    case.prepare()
    layout = candidate(relayout(shape, "soa", 0))
    assert case.run(layout, "plain")[0] == case.expected
    assert case.run(layout, "wrong", wrong=True)[0] == case.expected
    assert case.run(layout, "values", wrong="values")[0] != case.expected
