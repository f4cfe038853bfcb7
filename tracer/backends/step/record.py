"""The trace of one call by single-stepping another run of the program, in the addresses of the parked one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from layout_advise.errors import ProgramError
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.tracer.backends.protocol import Backend, TracedCall, TraceRequest
from layout_advise.tracer.backends.step.single_steps import MOST_REFERENCES, SingleStep, trace_by_steps
from layout_advise.tracer.backends.valgrind.build import blocks_library, blocks_symbols
from layout_advise.tracer.code.decoder import GPR_NAMES
from layout_advise.tracer.code.instructions import decode, references_of
from layout_advise.tracer.folding.clusters import ADDRESS_BITS
from layout_advise.tracer.folding.execution_order import fold_control
from layout_advise.tracer.folding.fold import fold_records
from layout_advise.tracer.folding.relocate import AddressMap, Process, move, notes_of
from layout_advise.tracer.objects.lifetimes import translated
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.procfs import thread_count
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.trace.trace import Allocation, Registers, Trace

_PROCESS_CLOCK = 2
"""With the process's id, inverted, in the bits above: CPU time of another process, as ``clock_getcpuclockid`` gives it."""


@dataclass(frozen=True, slots=True)
class StepBackend(Backend):
    """Single-steps another run of the program, its output discarded. Calls by all threads count; the one that makes the call
    is followed (:attr:`Trace.others` tells of the rest)."""

    most_accesses: int = MOST_REFERENCES

    name = "step"
    manner = "step by step"

    def trace(self, request: TraceRequest) -> TracedCall:
        """Raises :class:`TraceError` beyond ``most_accesses``, :class:`ProgramError` where the program ends before, or is
        not done in time (it is killed then)."""
        stepped = _step(request, self.most_accesses)
        program, region = request.program, request.region
        target = Process(program.mappings(), program.allocations(), program.registers())
        to, lives = translated(stepped.source, target, None if stepped.others else stepped.after)
        references = references_of(decode(region))
        numbers = {(r.pc, r.operand): r.id for r in references}
        records = _records(stepped.steps, numbers, program.load_base - stepped.base)
        streams, lost = _streams(records, len(references), to)
        trace = Trace(
            symbol=region.symbol,
            call=request.rerun.call,
            backend=self.name,
            references=references,
            streams=streams,
            accesses=len(stepped.steps),
            truncated=False,
            registers=target.registers,
            mappings=target.mappings,
            allocations=target.allocations,
            control=fold_control(records, len(references)) if stepped.steps else None,
            watched=lives.watched,
            born=lives.born,
            freed=lives.freed,
            others=stepped.others,
        )
        return TracedCall(trace, notes_of(to, [references[number].pc for number in lost]))


@dataclass(frozen=True, slots=True)
class _Stepped:
    """The accesses of the stepped call, and of its process: the load base of the hotspot's file, its state at the call's
    entry, the heap's blocks after the call, and whether other threads ran during it."""

    steps: tuple[SingleStep, ...]
    base: int
    source: Process
    after: tuple[Allocation, ...]
    others: bool


def _step(request: TraceRequest, most_accesses: int) -> _Stepped:
    rerun = request.rerun
    environment = dict(os.environ) | {"LD_BIND_NOW": "1", "LD_PRELOAD": str(blocks_library())}
    told = f"call {rerun.call} of {rerun.entry.symbol} was not"
    with PtracedProgram(rerun.command, environment, rerun.stdin, rerun.timeout) as process:
        with _saying(f"{told} reached step by step"):
            base = _stop_at(process, Path(rerun.command[0]), rerun.entry, rerun.call)
        source = _state(process)
        before = _others(process)
        with _saying(f"{told} traced step by step"):
            steps = trace_by_steps(process, request.region_at(base), most_accesses)
            after = _blocks(process)
        others = any(now > then for now, then in zip(_others(process), before, strict=True))
    return _Stepped(steps, base, source, after, others)


@contextlib.contextmanager
def _saying(what: str) -> Iterator[None]:
    """Errors of the program say what they were in the way of."""
    try:
        yield
    except ProgramError as error:
        raise ProgramError(what, f"{error.what}: {error.why}", error.hint) from error


def _stop_at(process: PtracedProgram, program: Path, entry: Entry, call: int) -> int:
    """Runs to the call; returns the load base of the hotspot's file."""
    file = entry.path.resolve()
    if not any(m.path == str(file) for m in process.mappings()):  # a library: mapped once the loader is done
        with program.open("rb") as opened:
            elf = ELFFile(opened)
            start = int(elf["e_entry"]) + (process.load_base(program.resolve()) if elf["e_type"] == "ET_DYN" else 0)
        process.run_to(start)
    with file.open("rb") as opened:
        moved = ELFFile(opened)["e_type"] == "ET_DYN"
    base = process.load_base(file) if moved else 0
    process.run_to(entry.address + base, call)
    return base


def _others(process: PtracedProgram) -> tuple[int, int]:
    """How many threads the stopped process has, and CPU ns of all but the one that is followed, those that have ended
    included (0 where the kernel keeps no such account)."""
    pid = process.pid
    try:
        own = int(Path(f"/proc/{pid}/task/{process.thread}/schedstat").read_text().split()[0])
    except OSError:
        return thread_count(pid), 0
    return thread_count(pid), time.clock_gettime_ns(~pid << 3 | _PROCESS_CLOCK) - own


def _state(process: PtracedProgram) -> Process:
    registers = process.registers()
    gpr = tuple(int(getattr(registers, name)) for name in GPR_NAMES)
    state = Registers(gpr, registers.rip, registers.eflags, 0, registers.fs_base)
    return Process(process.mappings(), _blocks(process), state)


def _blocks(process: PtracedProgram) -> tuple[Allocation, ...]:
    """The table that the preloaded library keeps; empty in a program that did not load it."""
    try:
        base = process.load_base(blocks_library().resolve())
    except ProgramError:
        return ()
    table, slots = (int.from_bytes(process.read(base + place, 8), "little") for place in blocks_symbols())
    rows = np.frombuffer(process.read(table, 32 * slots), dtype="<u8").reshape(-1, 4)
    return tuple(Allocation(*row) for row in rows[rows[:, 0] != 0].tolist())


def _records(steps: Sequence[SingleStep], numbers: dict[tuple[int, int], int], shift: int) -> NDArray[np.uint64]:
    """The steps in the form of the clone's records, at the addresses of their own process."""
    sites = np.array([numbers[s.pc + shift, s.operand] for s in steps], dtype=np.uint64)
    return np.array([s.address for s in steps], dtype=np.uint64) | sites << np.uint64(ADDRESS_BITS)


def _streams(records: NDArray[np.uint64], count: int, to: AddressMap) -> tuple[tuple[Stream | None, ...], list[int]]:
    if not len(records):
        return (None,) * count, []
    streams: list[Stream | None] = []
    lost = []
    for number, stream in enumerate(fold_records(records, count)):
        moved = move(stream, to) if stream is not None else None
        if moved is not None and moved.lost != 0:
            lost.append(number)
        streams.append(moved.stream if moved is not None else None)
    return tuple(streams), lost
