"""The kernels of lift_kernels.c as compiled by a compiler, their regions and their arguments."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.machine.image import open_image
from layout_advise.tracer.code.region import CodeRange, Region
from tests.support.lifting.run_lifted import run_lifted

SOURCE = Path(__file__).with_name("lift_kernels.c")

RSP = 4

ARGUMENTS = (7, 6, 2, 1, 8)  # rdi rsi rdx rcx r8


class NativeMemory:
    """This process's own memory."""

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))


class KernelLibrary:
    """A compiled shared object, loaded, and its functions as regions at their run-time addresses."""

    def __init__(self, name: str, directory: Path, compiler: str, *flags: str, source: Path = SOURCE) -> None:
        self.name = name
        self.path = directory / "kernels.so"
        command = [compiler, *flags, "-Wall", "-Wextra", "-Wno-unused-parameter", "-shared", "-fPIC", "-fno-math-errno"]
        subprocess.run([*command, "-o", str(self.path), str(source), "-lm"], check=True)
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
            open_image(str(self.path), self.base)  # kept: each test in a process of its own would read it anew
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


class KernelArguments:
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
