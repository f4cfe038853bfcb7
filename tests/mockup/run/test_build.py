"""What mock-ups are compiled from and with: constants that read back, flags that do what they say."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from layout_advise.mockup.emit.c_text import floating
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.compilers import CLANG, GCC, UNTOLD

GREATEST = 0x7F7FFFFF


@given(st.integers(0, 0xFFFFFFFF))
@example(GREATEST)  # FLT_MAX: with fewer digits it is no float any more
@example(GREATEST | 1 << 31)
@example(1)
@example(1 << 31)
def test_floats_read_back(bits: int) -> None:
    number = np.uint32(bits).view(np.float32)
    text = floating(bits, "f32")
    if np.isfinite(number):
        assert np.float32(text.removesuffix("f")).view(np.uint32) == bits
        assert any(c in text for c in ".e")
    else:
        assert text == f"la_as_f32({bits:#x}u)"


@pytest.mark.parametrize("flags", [(), ("-ffast-math",), ("-fmath-errno",)], ids=["plain", "fast", "errno"])
def test_square_roots_are_vectorised_and_sums_keep_their_order(flags: tuple[str, ...], tmp_path: Path) -> None:
    source = """
void roots(float *restrict to, const float *restrict from, long n) {
    for (long i = 0; i < n; i++) to[i] = __builtin_sqrtf(from[i]);
}
float sum(const float *from, long n) {
    float s = 0.0f;
    for (long i = 0; i < n; i++) s += from[i];
    return s;
}"""
    exported = source.replace("void roots", '__attribute__((visibility("default"))) void roots').replace(
        "float sum", '__attribute__((visibility("default"))) float sum'
    )
    made = build(exported, tmp_path / "roots.so", "gcc", ("-O3", "-march=haswell", *flags))
    assert made.path is not None
    code = subprocess.run(["objdump", "-d", str(made.path)], capture_output=True, text=True, check=True).stdout
    assert "vsqrtps" in code
    assert "sqrtf@plt" not in code
    summed = code[code.index("<sum>:") :].split("\n\n")[0]
    assert "vaddss" in summed
    assert "vaddps" not in summed


def test_what_was_overwritten_is_built_again(tmp_path: Path) -> None:
    """The loop that could not be placed: its first build was remembered under a file that held the second one."""
    source = '__attribute__((visibility("default"))) int value(void) { return VALUE; }'
    one, two = ("-O2", "-DVALUE=1"), ("-O2", "-DVALUE=2")
    build(source, tmp_path / "shared.so", "gcc", one)
    build(source, tmp_path / "shared.so", "gcc", two)
    assert value_of(build(source, tmp_path / "first.so", "gcc", one).path) == 1
    assert value_of(build(source, tmp_path / "second.so", "gcc", two).path) == 2
    build(source, tmp_path / "second.so", "gcc", one)  # a copy overwrites, too
    assert value_of(build(source, tmp_path / "third.so", "gcc", two).path) == 2


def value_of(path: Path | None) -> int:
    assert path is not None
    return int(ctypes.CDLL(str(path)).value())


SUM = """
#include "mockup.h"
LA_EXPORT double sum(const double *restrict a, const int *restrict on, double *restrict twice, int64_t n)
{
    double found = 0.0;
    LA_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
        twice[i] = 2.0 * a[i];
        if (on[i]) found = found + a[i];
    }
    return found;
}
"""


def test_a_promise_makes_vectors_at_o2_too(tmp_path: Path) -> None:
    """gcc 12 at -O2 vectorises no loop of unknown length by itself."""
    source = SUM.replace("if (on[i]) found", "if (0) found")
    plain, told = (
        build(source, tmp_path / f"{number}.so", "gcc", ("-O2", *flags)) for number, flags in enumerate(((), GCC.promised))
    )
    listed = [
        subprocess.run(["objdump", "-d", str(b.path)], capture_output=True, text=True, check=True) for b in (plain, told)
    ]
    assert ["addpd" in each.stdout for each in listed] == [False, True]


@pytest.mark.parametrize("untold", [False, True])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sums_of_independent_loops_stay_in_order(
    compiler: str, untold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clang reorders what it is told to vectorise; with numbers that are not whole the last bits tell."""
    if untold:
        monkeypatch.setattr("layout_advise.mockup.run.compilers.CLANG", replace(CLANG, exact=lambda _: UNTOLD))
    promised = GCC.promised if compiler == "gcc" else CLANG.promised
    made = build(SUM, tmp_path / "sum.so", compiler, ("-O3", "-march=x86-64-v2", *promised))
    assert made.path is not None, made.reason
    function = ctypes.CDLL(str(made.path)).sum
    function.restype = ctypes.c_double
    random = np.random.default_rng(9)
    for length in (5, 64, 1001):
        numbers, on, twice = random.random(length), random.integers(0, 2, length, np.int32), np.zeros(length)
        expected = 0.0
        for number, counts in zip(numbers, on, strict=True):
            expected += float(number) if counts else 0.0
        found = function(*(ctypes.c_void_p(x.ctypes.data) for x in (numbers, on, twice)), ctypes.c_int64(length))
        assert found == expected
        assert (twice == 2 * numbers).all()
