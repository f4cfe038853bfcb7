"""The trace of one call by single-stepping another run of the program, in the addresses of the parked one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from layout_advise.errors import ProgramError
from layout_advise.layoutalgebra.nests import Stream
from layout_advise.tracer.clone.decode import decode, references_of
from layout_advise.tracer.clone.operands import GPR_NAMES
from layout_advise.tracer.code import Region
from layout_advise.tracer.folding import fold_records
from layout_advise.tracer.ptraced import PtracedProgram
from layout_advise.tracer.relocate import AddressMap, Foreign, Process, move, notes_of
from layout_advise.tracer.snapshot.patching import Entry
from layout_advise.tracer.snapshot.protocol import StoppedProgram
from layout_advise.tracer.step import MOST_REFERENCES, Step, trace_by_steps
from layout_advise.tracer.trace import Allocation, Registers, Trace
from layout_advise.tracer.valgrind.build import blocks_library, blocks_symbols


def trace_step_by_step(
    program: StoppedProgram,
    command: Sequence[str],
    entry: Entry,
    region_at: Callable[[int], Region],
    load_base: int,
    call: int,
    *,
    stdin_path: Path | None = None,
    limit: int = MOST_REFERENCES,
) -> Foreign:
    """Trace the call at which ``program`` is parked, in a run of ``command`` under ptrace; its output goes nowhere.

    ``region_at`` gives the hotspot's code at a load base, ``load_base`` is that of ``program``. Only the main thread is
    followed. Raises :class:`TraceError` beyond ``limit`` accesses, :class:`ProgramError` where the program ends before, or
    gets a signal.
    """
    environment = dict(os.environ) | {"LD_BIND_NOW": "1", "LD_PRELOAD": str(blocks_library())}
    with PtracedProgram(command, environment, stdin_path) as process:
        base = _stop_at(process, Path(command[0]), entry, call)
        source = _state(process)
        steps = trace_by_steps(process, region_at(base), limit)
    target = Process(program.mappings(), program.allocations(), program.registers())
    to = AddressMap(source, target)
    region = region_at(load_base)
    references = references_of(decode(region))
    streams, lost = _streams(steps, {(r.pc, r.operand): r.id for r in references}, load_base - base, to)
    trace = Trace(
        symbol=region.symbol,
        call=call,
        backend="step",
        references=references,
        streams=streams,
        accesses=len(steps),
        truncated=False,
        registers=target.registers,
        mappings=target.mappings,
        allocations=target.allocations,
    )
    return Foreign(trace, notes_of(to, [references[number].pc for number in lost]))


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
    try:
        process.run_to(entry.address + base, call)
    except ProgramError as error:
        raise ProgramError(f"call {call} of {entry.symbol} was not reached step by step", error.line()) from error
    return base


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


def _streams(
    steps: Sequence[Step], numbers: dict[tuple[int, int], int], shift: int, to: AddressMap
) -> tuple[tuple[Stream | None, ...], list[int]]:
    count = len(numbers)
    if not steps:
        return (None,) * count, []
    sites = np.array([numbers[s.pc + shift, s.operand] for s in steps], dtype=np.uint64)
    addresses = np.array([s.address for s in steps], dtype=np.uint64)
    streams: list[Stream | None] = []
    lost = []
    for number, stream in enumerate(fold_records(addresses | sites << np.uint64(48), count)):
        moved = move(stream, to) if stream is not None else None
        if moved is not None and moved.lost != 0:
            lost.append(number)
        streams.append(moved.stream if moved is not None else None)
    return tuple(streams), lost
