"""The lifted code against the machine code: the same memory and the same result, for kernels of many shapes."""

from __future__ import annotations

import re
import shutil

import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.lifted import LiftedLoop
from layout_advise.mockup.lift.lift import lift
from tests.support.compilers import HAS_AVX512
from tests.support.lifting.kernel_library import SOURCE, KernelArguments, KernelLibrary

KERNELS = re.findall(r"^K\((\w+)\)", SOURCE.read_text(), re.MULTILINE)
BUILDS = {
    "gcc-O1": ("gcc", "-O1"),
    "gcc-O2": ("gcc", "-O2"),
    "gcc-O3-haswell": ("gcc", "-O3", "-march=haswell"),
    "clang-O1": ("clang", "-O1"),
    "clang-O2": ("clang", "-O2"),
    "clang-O3-haswell": ("clang", "-O3", "-march=haswell"),
    "gcc-O3-avx512": ("gcc", "-O3", "-march=skylake-avx512"),
    "gcc-O3-avx512-wide": ("gcc", "-O3", "-march=skylake-avx512", "-mprefer-vector-width=512"),
    "clang-O3-avx512": ("clang", "-O3", "-march=skylake-avx512"),
    "clang-O3-avx512-wide": ("clang", "-O3", "-march=skylake-avx512", "-mprefer-vector-width=512"),
}


FEW = ("gcc-O1", "clang-O1", "gcc-O3-avx512", "clang-O3-avx512", "clang-O3-avx512-wide", "gcc-O2", "clang-O3-haswell")
"""Simpler code than with -O2, mixtures of the code of others, and builds whose flags or compiler another build has."""


@pytest.fixture(scope="module", params=[pytest.param(n, marks=[pytest.mark.slow] * (n in FEW)) for n in BUILDS])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    compiler, *flags = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if "avx512" in request.param and not HAS_AVX512:
        pytest.skip("this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")
    return KernelLibrary(request.param, tmp_path_factory.mktemp(request.param), compiler, *flags)


REFUSED = {
    ("gcc-O2", "zero"): "calls memset",
    ("gcc-O3-haswell", "zero"): "calls memset",
    ("clang-O1", "zero"): "calls memset",
    ("clang-O2", "zero"): "calls memset",
    ("clang-O3-haswell", "zero"): "calls memset",
    **{(name, "zero"): "calls memset" for name in BUILDS if "avx512" in name},
}
"""What cannot be lifted yet, and the reason that must be given. Other compiler versions may not need it."""


@pytest.mark.parametrize("name", KERNELS)
def test_lifted_code_does_what_the_machine_code_does(built: KernelLibrary, name: str) -> None:
    if (built.name, name) in REFUSED:
        with pytest.raises(NotLiftedError, match=REFUSED[built.name, name]):
            lift(built.region(name), result="float")
        return
    code = lift(built.region(name), result="float")
    for n, seed in ((40, 1), (51, 2), (64, 3)):
        arrays = KernelArguments(n, seed)
        expected, memory = arrays.native(getattr(built.library, name))
        result, changed = arrays.lifted(code)
        assert result == expected
        assert changed == memory


def loops(items: tuple[object, ...]) -> list[LiftedLoop]:
    found: list[LiftedLoop] = []
    for item in items:
        if isinstance(item, LiftedLoop):
            found += [item, *loops(item.body)]
    return found


UNCOUNTED = {("gcc-O3-avx512", "conditional"), ("gcc-O3-avx512-wide", "conditional")}
"""gcc leaves the loop for overlapping arrays with branches here, two of which go back to its head."""
COUNTED = ("daxpy", "dot", "dot_unsigned", "stencil2d", "gather", "triangular", "matmul", "records", "conditional")


@pytest.mark.parametrize("name", COUNTED)
def test_simple_loops_are_counted(built: KernelLibrary, name: str) -> None:
    found = loops(lift(built.region(name), result="float").body)
    assert found
    assert all(loop.trip is not None for loop in found) != ((built.name, name) in UNCOUNTED)
