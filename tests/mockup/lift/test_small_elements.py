"""Vector code over 8 and 16-bit elements becomes loops over elements: what compilers pack, shuffle and mask comes apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.binding import access_bytes, accesses
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Load, Store
from layout_advise.mockup.rewrite.passes import run_passes
from tests.support.mockups.case import Case, verify
from tests.support.mockups.native import candidate, relayout

SOURCE = """
struct pixel { unsigned char r, g, b, a; };
void gray(struct pixel *p, const float *unused, long n) {
    for (long i = 0; i < n; i++) {
        int y = (p[i].r * 77 + p[i].g * 150 + p[i].b * 29) >> 8;
        p[i].a = (p[i].a + y) >> 1;
    }
}
struct sample { short left, right, aux, gain; };
void mix(struct sample *p, const float *unused, long n) {
    for (long i = 0; i < n; i++) {
        int v = (p[i].left * p[i].gain + p[i].right * (256 - p[i].gain)) >> 8;
        p[i].left = v > 32767 ? 32767 : v < -32768 ? -32768 : v;
    }
}
struct level { short now, before; };
void quantize(struct level *out, const float *values, long n) {
    for (long i = 0; i < n; i++) {
        out[i].before = out[i].now;
        out[i].now = (short)((int)(values[i] * 0.25f + 16384.5f) - 16384);
    }
}
"""
FIELDS = {"gray": ("u1", "rgba"), "mix": ("i2", ("left", "right", "aux", "gain")), "quantize": ("i2", ("now", "before"))}
BUILDS = [
    ("gcc", "-O2"),
    ("gcc", "-O3"),
    ("gcc", "-O3", "-march=haswell"),
    ("clang", "-O2"),
    ("clang", "-O3", "-mavx2"),
]
QUICK = [*((symbol, BUILDS[0]) for symbol in FIELDS), ("quantize", BUILDS[2]), ("mix", BUILDS[4])]
TRIED = [(symbol, build) for symbol in FIELDS for build in BUILDS]
COUNT = 333


def case_of(symbol: str, build: tuple[str, ...], folder: Path) -> Case:
    compiler, *flags = build
    case = Case(SOURCE, symbol, tuple(flags), folder, compiler)
    kind, names = FIELDS[symbol]
    random = np.random.default_rng(9)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    data = random.integers(least, most, (COUNT, len(names)), dtype=kind, endpoint=True)
    values = (random.random(COUNT, dtype=np.float32) * 4000 - 2000).astype(np.float32)
    case.arrays, case.integers = [data, values], [data.ctypes.data, values.ctypes.data, COUNT]
    size = data.dtype.itemsize
    fields = tuple(Field(name, k * size, size, "int", 1, 1) for k, name in enumerate(names))
    dims = (Dim(COUNT, len(names) * size),)
    case.structures = (Structure("s0", "p", data.ctypes.data, data.nbytes, dims, fields),)
    case.prepare()
    return case


@pytest.mark.parametrize(
    ("symbol", "build"),
    [pytest.param(*one, marks=[] if one in QUICK else pytest.mark.slow) for one in TRIED],
    ids=[f"{symbol}-{' '.join(build)}" for symbol, build in TRIED],
)
def test_every_access_is_that_of_a_field(symbol: str, build: tuple[str, ...], tmp_path: Path) -> None:
    case = case_of(symbol, build, tmp_path)
    size = np.dtype(FIELDS[symbol][0]).itemsize
    form = run_passes(case.lifted, Evidence.of(case.trace, case.structures), verify=True)
    sizes = {access_bytes(a) for a in accesses(form.body) if isinstance(a, Load | Store)}
    assert sizes <= {size, 4 if symbol == "quantize" else size}
    verify(case, candidate(relayout(case.structures[0], "soa")))
