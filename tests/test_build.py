"""What mock-ups are compiled from and with: constants that read back, flags that do what they say."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from layout_advise.mockup.build import build
from layout_advise.mockup.emit.ctext import floating

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
