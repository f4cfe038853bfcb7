"""Parallel regions parked and traced with all their threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.openmp_regions import is_region_body, region_entry
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.sampling.probe import sample
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.snapshots import whole_copies
from layout_advise.tracer.trace.trace import Trace
from tests.support.openmp.programs import with_threads

N, CELL = 1000, 32


def body_of(binary: ElfBinary, parent: str = "hot") -> Function:
    """The body of the region in ``parent``; clang does not say whose it is: the last one that has no other name."""
    bodies = [f for f in binary.functions if is_region_body(f) and not f.name.endswith("_debug__")]
    return next((f for f in bodies if f.name.startswith(f"{parent}._omp_fn")), bodies[-1])


def team_entry(program: Path, function: Function) -> Entry:
    return region_entry(ElfBinary.open(program), function, sample([str(program)], stdout=program.parent / "out").mappings)


@contextmanager
def parked_team(
    program: Path, call: int, threads: int, parent: str = "hot"
) -> Iterator[tuple[AgentProcess, ElfBinary, Function]]:
    binary = ElfBinary.open(program)
    function = body_of(binary, parent)
    with park([str(program)], team_entry(program, function), call, env=with_threads(threads), timeout=60) as process:
        whole_copies(process, True, program.parent)
        yield process, binary, function


def team_trace(program: Path, call: int, threads: int, cap: int = 1 << 20) -> Trace:
    with parked_team(program, call, threads) as (process, binary, function), process.fork() as copy:
        return trace_region(process, copy, binary.region(function, process.load_base, callees=True), call, cap)


def cells_by_thread(trace: Trace, kind: str) -> dict[int, list[int]]:
    """Which cells each thread's references of that kind access, in order (the first reference that does)."""
    base = ElfBinary.open(next(m.path for m in trace.mappings if m.path.startswith("/")))
    array = next(v for v in base.variables if v.source_name == "cells").address + 0x555555554000
    found: dict[int, list[int]] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if reference.kind != kind or stream is None or stream.count < 2 or reference.thread in found:
            continue
        assert isinstance(stream, FoldedStream)
        addresses = list(stream.expand())
        if all(array <= a < array + N * CELL for a in addresses):
            found[reference.thread] = [(a - array) // CELL for a in addresses]
    return found


def share(thread: int, threads: int) -> range:
    """Iterations of one thread under gcc's static schedule: the first ones get one more."""
    size, more = divmod(N, threads)
    start = thread * size + min(thread, more)
    return range(start, start + size + (thread < more))
