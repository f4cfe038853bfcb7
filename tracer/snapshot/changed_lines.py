"""The memory that a run changed, whoever did: the hotspot, what it calls, the allocator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import CHUNK, subtract, unequal
from layout_advise.tracer.snapshot.pages.process_memory import ProcessMemory

LINE = 64
_THREAD_BYTES = 4096
"""On both sides of the thread's control block: the loader's and the kernel's own, which a run changes for other reasons."""


def changed_lines(before: AgentProcess, after: AgentProcess) -> tuple[Range, ...]:
    """The cache lines of ``before`` that are others in ``after``, a copy of it that has run; ascending. The stack below the
    entry is left out, as are the agent and the thread's control block. Raises SnapshotError when one of them is gone, and
    where the run gave memory back to the kernel: no write puts that back."""
    places = list(_places(before))
    mapped = [(mapping.start, mapping.end) for mapping in after.mappings()]
    gone = [part for place in places for part in subtract([place], mapped)]
    if gone:
        low, high = gone[0]
        why = f"it gives memory back to the kernel ({high - low} bytes at {low:#x}), and so cannot be run again there"
        raise SnapshotError("the call cannot be repeated", why, "name a region without that call (--hotspot)")
    memory = ProcessMemory((before, after))
    try:
        lines = [line for low, high in places for line in _changed(memory, low, high)]
    finally:
        memory.close()
    found: list[Range] = []
    for line in lines:
        if found and found[-1].end == line:
            found[-1] = Range(found[-1].start, line + LINE)
        else:
            found.append(Range(line, line + LINE))
    return tuple(found)


def _places(program: AgentProcess) -> Iterator[tuple[int, int]]:
    registers = program.registers()
    top, thread = registers.gpr[4], registers.fs_base
    holes = [(r.start, r.end) for r in program.own_ranges()]
    holes.append((thread - _THREAD_BYTES, thread + _THREAD_BYTES))
    for mapping in program.mappings_at_park():
        if mapping.permissions.startswith("rw") and not mapping.path.startswith(("/dev/", "[v")):
            start = top if mapping.start <= top < mapping.end else mapping.start
            yield from subtract([(start, mapping.end)], holes)


def _changed(memory: ProcessMemory, low: int, high: int) -> Iterator[int]:
    """The first addresses of the lines in [low, high) that differ."""
    pieces = [(at, min(at + CHUNK, end)) for start, end in memory.touched(low, high) for at in range(start, end, CHUNK)]
    for start, stop in pieces:
        for first, end in memory.apart(start, stop):
            different = unequal(memory.read(0, first, end - first), memory.read(1, first, end - first))
            yield from (np.unique((different + first) // LINE) * LINE).tolist()
