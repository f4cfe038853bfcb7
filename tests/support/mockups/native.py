"""Helpers: compile C functions, lift them, run mock-ups of them in this process and compare memory byte by byte."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.layoutalgebra.derive.structure import Axis, Buffer, Candidate, Dim, Field, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Point
from layout_advise.mockup.evidence.binding import access_bytes, accesses, key_of
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Lifted, Load
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.reroll import reroll
from layout_advise.mockup.run.load import MockupCall, arguments, compile_mockup
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.trace.trace import Reference, Registers, Trace
from tests.support.mockups.emitted import emit_mockup

NO_REGISTERS = Registers((0,) * 16, 0, 0, 0, 0)
NO_EVIDENCE = Evidence.of(Trace("f", 1, "step", (), (), 0, False, NO_REGISTERS, (), ()), ())
"""That of a call that touches nothing."""


STACK = np.zeros(1 << 16, np.uint8)
"""What mock-ups have for a stack."""


def run_mockup(
    source: str,
    out: Path,
    integers: Sequence[int] = (),
    floats: Sequence[float] = (),
    *,
    flags: Sequence[str] = ("-O2",),
    compiler: str = "gcc",
    records: int = 0,
) -> MockupCall:
    """Build the mock-up and call it once, on the memory that its addresses and arguments lead to; nothing may take the new
    buffers for zeros."""
    mockup = compile_mockup(source, out, compiler=compiler, flags=flags, fill=0xAB)
    registers = arguments(integers, floats)
    gpr = (*registers.gpr[:4], STACK.ctypes.data + STACK.nbytes // 2 // 16 * 16 - 8, *registers.gpr[5:])
    return mockup({}, replace(registers, gpr=gpr), records=records)


class Native:
    """A C function compiled into a shared library and loaded, with its region."""

    def __init__(
        self, source: str, symbol: str, where: Path, flags: Sequence[str] = ("-O2",), compiler: str = "gcc"
    ) -> None:
        text, path = where / f"{symbol}.c", where / f"lib{symbol}{abs(hash(tuple(flags)))}.so"
        text.write_text(source)
        subprocess.run([compiler, *flags, "-shared", "-fPIC", "-o", str(path), str(text), "-lm"], check=True)
        self.library = ctypes.CDLL(str(path))
        self.function = getattr(self.library, symbol)
        address = ctypes.cast(self.function, ctypes.c_void_p).value or 0
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            assert isinstance(table, SymbolTableSection)
            (entry,) = (s for s in table.iter_symbols() if s.name == symbol)
        code = ctypes.string_at(address, entry["st_size"])
        base = address - entry["st_value"]
        self.region = Region(symbol, "function", address, (CodeRange(address, code),), str(path), base)

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


def references_of(lifted: Lifted) -> tuple[Reference, ...]:
    """One reference for each (pc, operand) of the lifted code."""
    sizes: dict[tuple[int, int], int] = {}
    written = set()
    for access in accesses(lifted.body):
        end = access.part + access_bytes(access)
        sizes[key_of(access)] = max(sizes.get(key_of(access), 0), end)
        written |= set() if isinstance(access, Load) else {key_of(access)}
    return tuple(
        Reference(k, *key, "both" if key in written else "read", size) for k, (key, size) in enumerate(sorted(sizes.items()))
    )


def traced(lifted: Lifted, where: Path, integers: Sequence[int], floats: Sequence[float], capacity: int = 1 << 16) -> Trace:
    """Run the identity's check build once and make a trace of its records; the caller restores the memory."""
    references = references_of(lifted)
    source = emit_mockup(lifted, None, trace_of(lifted, None, references, lifted.symbol), (), check=True)
    done = run_mockup(source, where / "trace.so", integers, floats, flags=("-O0",), records=capacity)
    assert done.count <= capacity
    return trace_of(lifted, done.records, references, lifted.symbol)


@dataclass(frozen=True)
class Rows:
    """A kernel over an array of structures: rerolled, traced, and what the original makes of ``work`` (as it was)."""

    lifted: Lifted
    trace: Trace
    structure: Structure
    work: np.ndarray
    expected: bytes

    def layout(self, kind: str) -> Candidate | None:
        """None for the identity."""
        return None if kind == "identity" else candidate(relayout(self.structure, kind))

    def made_by(self, text: str, out: Path, flags: Sequence[str] = ("-O2",)) -> bytes:
        """What a mock-up makes of the rows."""
        run_mockup(text, out, (self.work.ctypes.data, len(self.work)), flags=flags)
        return self.work.tobytes()


def rows(source: str, work: np.ndarray, words: Sequence[int], where: Path, flags: Sequence[str]) -> Rows:
    """The kernel ``run(rows, count)`` on ``work``; ``words`` of each row are fields."""
    native = Native(source, "run", where, flags)
    start, given, size = work.copy(), (work.ctypes.data, len(work)), work.itemsize
    native.function(*(ctypes.c_uint64(a) for a in given))
    expected = work.tobytes()
    work[:] = start
    fields = tuple(Field(f"f{k}", size * k, size, "double" if size == 8 else "float", 1, 1) for k in words)
    dims = (Dim(len(work), work.strides[0]),)
    structure = Structure("s0", "p", work.ctypes.data, work.nbytes, dims, fields, (), work.ctypes.data)
    lifted = native.lifted()
    trace = traced(lifted, where, given, ())
    work[:] = start
    return Rows(
        run_passes(lifted, Evidence.of(trace, (structure,)), (reroll,), verify=True), trace, structure, work, expected
    )


def relayout(structure: Structure, kind: str, block: int = 4, order: Sequence[int] = ()) -> Relayout:
    """A layout by hand: soa, aosoa (each field in an array of blocks), blocks (of all fields, one dimension), compact
    (the fields in one array), split (two arrays), permute (dims in ``order``)."""
    if kind == "blocks":
        return _blocks(structure, block)
    dims, fields = structure.dims, structure.fields
    strides: list[int] = [0] * len(dims)
    step = 1
    for k in reversed(order or range(len(dims))):
        strides[k] = step
        step *= dims[k].count
    maps: list[FieldMap] = []
    groups = {"compact": [0] * len(fields), "split": [k % 2 for k in range(len(fields))]}.get(kind, list(range(len(fields))))
    sizes = {g: sum(f.bytes for f, h in zip(fields, groups, strict=True) if h == g) for g in groups}
    used: dict[int, int] = {}
    for k, field in enumerate(fields):
        group, size = groups[k], sizes[groups[k]]
        if kind == "aosoa":
            last = len(dims) - 1
            axes = [Axis(d, "whole", 1, strides[d] * field.bytes) for d in range(last)]
            padded = -(-dims[last].count // block) * block
            axes = [Axis(a.dim, "whole", 1, a.stride // dims[last].count * padded) for a in axes]
            axes += [Axis(last, "div", block, block * field.bytes), Axis(last, "mod", block, field.bytes)]
            maps.append(FieldMap(k, group, 0, tuple(axes)))
            continue
        axes_ = tuple(Axis(d, "whole", 1, strides[d] * size) for d in range(len(dims)))
        maps.append(FieldMap(k, group, used.get(group, 0), axes_))
        used[group] = used.get(group, 0) + field.bytes
    count = structure.count if kind != "aosoa" else structure.count // dims[-1].count * (-(-dims[-1].count // block) * block)
    buffers = tuple(Buffer(f"part{g}", sizes[g] * count) for g in sorted(sizes))
    return Relayout(structure, tuple(maps), buffers, (), kind)


def _blocks(structure: Structure, block: int) -> Relayout:
    size, count = sum(f.bytes for f in structure.fields), -(-structure.count // block)
    maps, used = [], 0
    for k, field in enumerate(structure.fields):
        maps.append(FieldMap(k, 0, block * used, (Axis(0, "div", block, block * size), Axis(0, "mod", block, field.bytes))))
        used += field.bytes
    return Relayout(structure, tuple(maps), (Buffer("blocks", count * block * size),), (), "blocks")


def candidate(*relayouts: Relayout) -> Candidate:
    """A candidate of these relayouts."""
    return Candidate("c1", relayouts, ("soa",), ("4",))
