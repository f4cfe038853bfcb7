"""Lanes that are added and subtracted in turn: written as one instruction where they stay neighbours, with its results."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.mockup.emit.packs.fmaddsub import join_fmaddsub, keeps_lanes
from tests.support import slower
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, rows, run_mockup, traced

HASWELL = ("-O2", "-march=haswell")


def kernel(name: str, bits: str) -> str:
    """Elements of three vectors x, y, z: z becomes x * y with z added and subtracted in turn."""
    vector, call = f"__m{bits or '128'}d", f"_mm{bits}_"
    return f"""
#include <immintrin.h>
void run(double *p, long n)
{{
    const long lanes = sizeof({vector}) / sizeof *p;
    for (long i = 0; i < n; i++, p += 3 * lanes) {{
        {vector} x = {call}loadu_pd(p), y = {call}loadu_pd(p + lanes), z = {call}loadu_pd(p + 2 * lanes);
        {call}storeu_pd(p + 2 * lanes, {call}{name}_pd(x, y, z));
    }}
}}
"""


@pytest.mark.parametrize(
    "flags", [HASWELL, *slower((("-O2", "-mavx"),)), ("-O1", "-mfma")], ids=["haswell", "no-fma", "fma"]
)
@pytest.mark.parametrize("name", ["fmaddsub", "fmsubadd"])
@pytest.mark.parametrize(("lanes", "bits"), [(2, ""), (4, "256")])
def test_results_are_the_instructions(tmp_path: Path, lanes: int, bits: str, name: str, flags: tuple[str, ...]) -> None:
    native = Native(kernel(name, bits), "run", tmp_path, HASWELL)
    lifted = native.lifted()
    start = np.random.default_rng(7).standard_normal((20, 3, lanes))
    start[3, :, 1], start[4, 2, :], start[5, 0, 0] = -0.0, np.inf, 1e30
    work = start.copy()
    arguments = (work.ctypes.data, len(work))
    native.function(*(ctypes.c_uint64(a) for a in arguments))
    expected = work.tobytes()
    assert expected != start.tobytes()
    work[:] = start
    trace = traced(lifted, tmp_path, arguments, ())
    work[:] = start
    text = emit_mockup(lifted, None, trace, (), vector_bytes=8 * lanes)
    assert len(re.findall(rf"= la_{name}_f64x{lanes}\(", text)) == 1
    run_mockup(text, tmp_path / "mockup.so", arguments, flags=flags)
    assert work.tobytes() == expected
    if flags == HASWELL:
        code = subprocess.run(["objdump", "-d", str(tmp_path / "mockup.so")], capture_output=True, text=True, check=True)
        assert len(re.findall(r"\bvfm(addsub|subadd)", code.stdout)) == 1


COMPLEX = """
struct complex { double re, im; };
struct pair { struct complex a, b, c; };
void run(struct pair *p, long n)
{
    for (long i = 0; i < n; i++) {
        p[i].c.re = p[i].a.re * p[i].b.re - p[i].a.im * p[i].b.im;
        p[i].c.im = p[i].a.re * p[i].b.im + p[i].a.im * p[i].b.re;
    }
}
"""


@pytest.mark.parametrize("kind", ["identity", "compact", "soa", "aosoa"])
def test_every_layout_of_complex_numbers_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    flags = ("-O3", "-march=haswell")
    case = rows(COMPLEX, np.random.default_rng(3).standard_normal((40, 6)), range(6), tmp_path, flags)
    layout = case.layout(kind)
    text = emit_mockup(case.lifted, layout, case.trace, (case.structure,))
    assert keeps_lanes(layout) is (kind in ("identity", "compact"))
    if not keeps_lanes(layout):
        assert "la_fmaddsub" not in text
    assert case.made_by(text, tmp_path / "mockup.so", flags) == case.expected


def test_lanes_of_one_sign_stay_as_they_are(tmp_path: Path) -> None:
    native = Native(kernel("fmsub", ""), "run", tmp_path, HASWELL)
    lifted = native.lifted()
    assert join_fmaddsub(lifted) == lifted
