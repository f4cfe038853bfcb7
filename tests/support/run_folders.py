"""Run folders with made-up content for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Point
from layout_advise.reports.model import contract
from layout_advise.rundir import find_trace
from layout_advise.tracer.trace.trace import Allocation, Mapping, Reference, Registers, Trace
from layout_advise.tracer.trace.trace_file import write_trace
from tests.support.sample_report import report

HEAP, STACK, PC = 0x7FFF00000000, 0x7FFFFFFFE000, 0x401000


def loop(trip: int, *body: Point | Loop) -> Loop:
    return Loop(Affine(trip), body)


def at(address: int, *coefs: int) -> Point:
    return Point(Affine(address, coefs))


def sample_trace(extra: int = 0, path: str = "/no/such/program") -> Trace:
    streams = [
        FoldedStream((loop(1000, at(HEAP + 8, 80)),), 1000),
        None,
        AddressSet(HEAP, HEAP + 8 * 63, 8, 500, b"\xff" * 8),
        FoldedStream((at(STACK + 16),), 1),
        *[FoldedStream((at(STACK + 16),), 1)] * extra,
    ]
    kinds = ("read", "write", "both", "write")
    return Trace(
        symbol="hot",
        call=3,
        backend="clone",
        references=tuple(Reference(n, PC + 4 * n, 0, kinds[n % 4], 8) for n in range(len(streams))),  # type: ignore[arg-type]
        streams=tuple(streams),
        accesses=1501 + extra,
        truncated=False,
        registers=Registers((0,) * 16, PC, 0x246, 0x1F80, 0),
        mappings=(Mapping(PC, PC + 4096, "r-xp", 0, path), Mapping(STACK, STACK + 8192, "rw-p", 0, "[stack]")),
        allocations=(Allocation(HEAP, 80_000, 7, PC + 64),),
    )


def run_dir(folder: Path, extra: int = 0) -> Path:
    write_trace(sample_trace(extra), folder / "trace.lat")
    return folder


def saved(folder: Path, content: contract.Report | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "report.json").write_bytes(contract.encode(content or report()))
    return folder


def studied_region(run: Path) -> Path:
    """The folder of the one region that a run has studied."""
    return find_trace(run).parent
