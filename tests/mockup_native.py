"""Helpers: compile C functions, lift them, run mock-ups of them in this process and compare memory byte by byte."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from layout_advise.layoutalgebra.nests import Affine, FoldedStream, Point
from layout_advise.mockup.build import build
from layout_advise.mockup.lift import lift
from layout_advise.mockup.lifted import Lifted
from layout_advise.tracer.code import CodeRange, Region
from layout_advise.tracer.trace import Reference, Registers, Trace

NO_REGISTERS = Registers((0,) * 16, 0, 0, 0, 0)


class LaRegisters(ctypes.Structure):
    _fields_ = [
        ("gpr", ctypes.c_uint64 * 16),
        ("rip", ctypes.c_uint64),
        ("rflags", ctypes.c_uint64),
        ("fs_base", ctypes.c_uint64),
        ("mxcsr", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("vector", (ctypes.c_uint8 * 64) * 32),
    ]


class LaCheck(ctypes.Structure):
    _fields_ = [
        ("records", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("capacity", "count", "mismatches")),
        *((name, ctypes.c_uint64) for name in ("first_site", "first_old", "first_new", "remapped")),
    ]


class LaContext(ctypes.Structure):
    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("buffer_count", ctypes.c_uint32),
        ("buffers", ctypes.c_void_p * 64),
        ("in_", LaRegisters),
        ("out", LaRegisters),
        ("check", LaCheck),
    ]


class BufferSpec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("bytes", "align", "offset", "like")]


class Mockup:
    """A mock-up loaded into this process, with its buffers."""

    def __init__(self, source: str, out: Path, flags: Sequence[str] = ("-O2",)) -> None:
        built = build(source, out, "gcc", flags)
        assert built.path is not None, built.log
        self.library = ctypes.CDLL(str(built.path))
        self.context = LaContext(abi=1)
        count = ctypes.c_uint32.in_dll(self.library, "la_buffer_count").value
        specs = (BufferSpec * max(count, 1)).in_dll(self.library, "la_buffers")
        self.context.buffer_count = count
        self.memory = [np.full(int(specs[k].bytes) + 128, 0xAB, np.uint8) for k in range(count)]
        for k, memory in enumerate(self.memory):
            self.context.buffers[k] = (memory.ctypes.data + 63) // 64 * 64

    def arguments(self, integers: Sequence[int] = (), floats: Sequence[float] = ()) -> None:
        """The System V calling convention."""
        for number, value in zip((7, 6, 2, 1, 8, 9), integers, strict=False):
            self.context.in_.gpr[number] = value & (1 << 64) - 1
        for k, value in enumerate(floats):
            raw = value.to_bytes(8, "little") if isinstance(value, int) else np.float64(value).tobytes()
            self.context.in_.vector[k][:8] = list(raw)

    def records(self, capacity: int) -> np.ndarray:
        """Provide a record buffer (check builds)."""
        self.buffer = np.zeros(capacity, np.uint64)
        self.context.check.records = self.buffer.ctypes.data
        self.context.check.capacity = capacity
        return self.buffer

    def run(self) -> None:
        """Copy in, run, copy out."""
        for step in ("la_copy_in", "la_run", "la_copy_out"):
            getattr(self.library, step)(ctypes.byref(self.context))


class Native:
    """A C function compiled into a shared library and loaded, with its region."""

    def __init__(self, source: str, symbol: str, where: Path, flags: Sequence[str] = ("-O2",)) -> None:
        text, path = where / f"{symbol}.c", where / f"lib{symbol}{abs(hash(tuple(flags)))}.so"
        text.write_text(source)
        subprocess.run(["gcc", *flags, "-shared", "-fPIC", "-o", str(path), str(text), "-lm"], check=True)
        self.library = ctypes.CDLL(str(path))
        self.function = getattr(self.library, symbol)
        address = ctypes.cast(self.function, ctypes.c_void_p).value or 0
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            (entry,) = (s for s in table.iter_symbols() if s.name == symbol)
        code = ctypes.string_at(address, entry["st_size"])
        self.region = Region(
            symbol, "function", address, (CodeRange(address, code),), str(path), address - entry["st_value"]
        )

    def lifted(self) -> Lifted:
        """The lifted function; its return value is left out."""
        return lift(self.region, result="none")


def trace_of(lifted: Lifted, source_records: np.ndarray | None, references: Sequence[Reference], symbol: str) -> Trace:
    """A trace from raw records (address | id << 48), each stream unfolded."""
    streams: list[FoldedStream | None] = []
    for reference in references:
        own = [] if source_records is None else source_records[source_records >> np.uint64(48) == reference.id]
        points = tuple(Point(Affine(int(a) & (1 << 48) - 1)) for a in own)
        streams.append(FoldedStream(points, len(points)) if points else None)
    total = 0 if source_records is None else len(source_records)
    return Trace(symbol, 1, "step", tuple(references), tuple(streams), total, False, NO_REGISTERS, (), ())
