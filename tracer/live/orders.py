"""The orders of a trial in the running program, as the agent reads them (``tracer/agent/live.h``)."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.channel import MAGIC, MAX_FURTHER
from layout_advise.tracer.process.patching import Entry, plan_exit, plan_patch
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.trace.trace import Allocation

MOST_RANGES = 64
MOST_LEFT_OUT = 4096


class LiveCalls(IntEnum):
    """The calls that run as the mock-up: none, all, or of two that follow each other one. In runs with ``ONE`` and ``OTHER``
    each call is the original's once and the mock-up's once."""

    NONE = 0
    ALL = 1
    ONE = 2
    OTHER = 3
    SURVEY = 4
    """The original makes all calls, and each is tried before as the mock-up in a copy of the process."""
    LOADED = 5
    """The original makes all calls, with the mock-up loaded as in the others: what the program prints of its own time and
    memory is then as in these."""
    UNTIMED = 6
    """The same, and no call is timed: the program's own time, but for the load."""


@dataclass(frozen=True, slots=True)
class LiveTask:
    """The ``mockup`` of a region at the calls from ``first`` on whose general registers are as ``guarded`` says (number,
    least and greatest value) and do not point into ``ranges`` where they are ``outside``, while the heap ``blocks`` of the
    structures are the same.

    ``ranges`` is the memory of the structures that it re-lays. ``writes``: it writes to them. ``flush``: what was copied in
    is flushed from the caches before a call. ``left_out`` calls are the original's, and those after ``last`` (0: none).
    """

    mockup: Path
    first: int
    ranges: tuple[Range, ...]
    blocks: tuple[Allocation, ...] = ()
    guarded: tuple[tuple[int, int, int], ...] = ()
    outside: tuple[int, ...] = ()
    writes: bool = False
    flush: bool = False
    left_out: tuple[int, ...] = ()
    last: int = 0
    survey_s: float = 10.0
    """A survey ends after so many seconds."""
    limit_s: float = 0.0
    """So many seconds after the first one calls are the original's again; 0: never."""
    account: bool = False
    """The CPU's time that the trial itself takes is added up, at a microsecond or so more for each call of the mock-up."""
    arrays: int = 0
    """Regions with the same number have mock-ups of the same layout, to the byte, and one set of arrays: what one of them
    writes the others find there. 0: arrays of its own."""

    def packed(self, calls: LiveCalls, seed: int) -> bytes:
        """The agent's file of orders. Raises ValueError where there are more ranges or calls than it takes."""
        if max(len(self.ranges), len(self.blocks)) > MOST_RANGES or len(self.left_out) > MOST_LEFT_OUT:
            raise ValueError("too many structures or calls for one trial")
        low, high = [0] * 16, [0] * 16
        for number, least, greatest in self.guarded:
            low[number], high[number] = least, greatest
        masks = [sum(1 << number for number in numbers) for numbers in ((g[0] for g in self.guarded), self.outside)]
        head = [MAGIC, calls, seed, self.writes, self.flush, int(self.survey_s * 1e9)]
        head += [int(self.limit_s * 1e9), self.account, self.arrays, self.last]
        head += [*masks, *low, *high]
        ranges = [word for r in self.ranges for word in (r.start, r.end)]
        blocks = [word for b in self.blocks for word in (b.address, b.bytes, b.order)]
        words = [*head, len(self.ranges), *_padded(ranges, 2 * MOST_RANGES), len(self.blocks)]
        words += [*_padded(blocks, 3 * MOST_RANGES), len(self.left_out), *_padded(sorted(self.left_out), MOST_LEFT_OUT)]
        return struct.pack(f"<{len(words)}Q", *words) + os.fsencode(self.mockup.resolve()).ljust(4096, b"\0")


@dataclass(frozen=True, slots=True)
class RegionTask:
    """A region of a trial: its ``entry``, which ``calls`` of it run as ``task`` says, and whether its calls are ``quick``:
    only the time stamp counter is read around them."""

    entry: Entry
    task: LiveTask
    calls: LiveCalls
    quick: bool = False


def takes_breakpoint(entry: Entry) -> bool:
    """Tells whether there is no room for a jump at ``entry``."""
    try:
        return plan_patch(entry).int3
    except SnapshotError:
        return False


def why_not_together(entries: Sequence[Entry]) -> str:
    """The reason why calls of all these regions cannot run as mock-ups in one run of the program; empty where they can. The
    first of them may be one that takes a breakpoint."""
    if len(entries) > MAX_FURTHER + 1:
        return f"there are more than {MAX_FURTHER + 1} regions"
    taken: list[tuple[int, int]] = []
    for number, entry in enumerate(entries):
        if entry.outlined is not None:
            return f"{entry.symbol} is started as a parallel region"
        if entry.path != entries[0].path:
            return f"{entry.symbol} lies in another file than {entries[0].symbol}"
        try:
            patch = plan_patch(entry)
            spans = [(entry.address, entry.address + patch.size)]
            spans += [(place.address, place.address + plan_exit(place).size) for place in entry.exits]
        except SnapshotError as error:
            return error.line()
        if number and patch.int3:
            return f"the first instructions of {entry.symbol} cannot be moved"
        if any(low < end and start < high for low, high in spans for start, end in taken):
            return f"{entry.symbol} begins or ends where another region does"
        taken += spans
    return ""


def _padded(words: Sequence[int], count: int) -> list[int]:
    return [*words, *[0] * (count - len(words))]
