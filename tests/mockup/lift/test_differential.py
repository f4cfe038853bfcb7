"""The lifted code against the machine code: the same memory and the same result, for kernels of many shapes."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted, LiftedLoop
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.code.region import CodeRange, Region
from tests.support.lifting.run_lifted import run_lifted
from tests.support.tracing.processor import HAS_WIDE

SOURCE = Path(__file__).with_name("lift_kernels.c")
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
RSP = 4
ARGUMENTS = (7, 6, 2, 1, 8)  # rdi rsi rdx rcx r8


class NativeMemory:
    """This process's own memory."""

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))


class Built:
    """A compiled shared object, loaded, and its functions as regions at their run-time addresses."""

    def __init__(self, name: str, directory: Path, compiler: str, *flags: str) -> None:
        self.name = name
        self.path = directory / "kernels.so"
        command = [compiler, *flags, "-Wall", "-Wextra", "-Wno-unused-parameter", "-shared", "-fPIC", "-fno-math-errno"]
        subprocess.run([*command, "-o", str(self.path), str(SOURCE), "-lm"], check=True)
        self.library = ctypes.CDLL(str(self.path))
        with self.path.open("rb") as file:
            elf = ELFFile(file)
            text, table = elf.get_section_by_name(".text"), elf.get_section_by_name(".symtab")
            assert text is not None
            assert isinstance(table, SymbolTableSection)
            symbols = [s for s in table.iter_symbols() if s["st_info"]["type"] == "STT_FUNC"]
            start, code = text["sh_addr"], text.data()
            first = next(s for s in symbols if s.name == "daxpy")
            self.base = ctypes.cast(self.library.daxpy, ctypes.c_void_p).value - first["st_value"]
            sized = [s for s in symbols if s["st_size"] and start <= s["st_value"] < start + len(code)]
            self.places = {s.name: (s["st_value"], code[s["st_value"] - start :][: s["st_size"]]) for s in sized}

    def region(self, name: str) -> Region:
        helpers = tuple(self._plain(n) for n in self.places if n.startswith("helper") and n != name)
        own = self._plain(name)
        cold = tuple(r for n in self.places if n.startswith(f"{name}.cold") for r in self._plain(n).ranges)
        return Region(name, "function", own.entry, (*own.ranges, *cold), own.path, self.base, helpers)

    def _plain(self, name: str) -> Region:
        value, code = self.places[name]
        at = self.base + value
        return Region(name, "function", at, (CodeRange(at, code),), str(self.path), self.base)


@pytest.fixture(scope="module", params=list(BUILDS))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    compiler, *flags = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if "avx512" in request.param and not HAS_WIDE:
        pytest.skip("this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")
    return Built(request.param, tmp_path_factory.mktemp(request.param), compiler, *flags)


class Arrays:
    """The kernels' arguments, filled from a seed."""

    def __init__(self, n: int, seed: int) -> None:
        draw = random.Random(seed)
        self.n = n
        self.doubles = [(ctypes.c_double * (n + 64))(*(draw.random() for _ in range(n + 64))) for _ in range(3)]
        self.ints = (ctypes.c_int * (n + 64))(*(draw.randrange(n) for _ in range(n + 64)))
        self.stack = ctypes.create_string_buffer(1 << 16)
        self.saved = [bytes(x) for x in self.memory]

    @property
    def memory(self) -> list[ctypes.Array[ctypes.c_double] | ctypes.Array[ctypes.c_int]]:
        return [*self.doubles, self.ints]

    def restore(self) -> None:
        for array, data in zip(self.memory, self.saved, strict=True):
            ctypes.memmove(array, data, len(data))

    def native(self, function: Any) -> tuple[bytes, list[bytes]]:
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long]
        result = function(*(ctypes.addressof(x) for x in self.memory), self.n)
        after = [bytes(x) for x in self.memory]
        self.restore()
        return bytes(ctypes.c_double(result)), after

    def lifted(self, code: Lifted) -> tuple[bytes, list[bytes]]:
        values = [*(ctypes.addressof(x) for x in self.memory), self.n]
        at: dict[Gpr | Lane, int] = {Gpr(r): v for r, v in zip(ARGUMENTS, values, strict=True)}
        at[Gpr(RSP)] = (ctypes.addressof(self.stack) + (1 << 15) & ~15) - 8
        outs = run_lifted(code, at, NativeMemory(), budget=400_000)
        after = [bytes(x) for x in self.memory]
        self.restore()
        return outs[Lane(0, 0)].to_bytes(8, "little"), after


REFUSED = {
    ("gcc-O2", "zero"): "calls memset",
    ("gcc-O3-haswell", "zero"): "calls memset",
    ("clang-O1", "zero"): "calls memset",
    ("clang-O2", "zero"): "calls memset",
    ("clang-O3-haswell", "zero"): "calls memset",
    **{(name, "zero"): "calls memset" for name in BUILDS if "avx512" in name},
    ("clang-O3-haswell", "bytes"): "byte shuffle by a variable mask",
    ("clang-O3-haswell", "shorts"): "byte shuffle by a variable mask",
}
"""What cannot be lifted yet, and the reason that must be given. Other compiler versions may not need it."""


@pytest.mark.parametrize("name", KERNELS)
def test_lifted_code_does_what_the_machine_code_does(built: Built, name: str) -> None:
    if (built.name, name) in REFUSED:
        with pytest.raises(NotLiftedError, match=REFUSED[built.name, name]):
            lift(built.region(name), result="float")
        return
    code = lift(built.region(name), result="float")
    for n, seed in ((40, 1), (51, 2), (64, 3)):
        arrays = Arrays(n, seed)
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
def test_simple_loops_are_counted(built: Built, name: str) -> None:
    found = loops(lift(built.region(name), result="float").body)
    assert found
    assert all(loop.trip is not None for loop in found) != ((built.name, name) in UNCOUNTED)
