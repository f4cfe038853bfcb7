"""Compilers and instruction sets that tests need, and marks for tests that go without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

HASWELL = ("-O3", "-march=haswell")
"""Flags by which gcc and clang make vectors of 32 bytes."""
HAS_AVX = " avx " in Path("/proc/cpuinfo").read_text()
HAS_AVX512 = all(f" avx512{part}" in Path("/proc/cpuinfo").read_text() for part in ("f", "bw", "dq", "vl", "cd"))

HAS_CLANG = shutil.which("clang") is not None

needs_clang = pytest.mark.skipif(not HAS_CLANG, reason="clang is not installed")
