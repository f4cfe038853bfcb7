"""The writes of the program between short calls: recorded while it runs, settled in a copy of the stopped program, put back
between the calls of a batch.

At the entry of each recorded call the agent notes the words that are others than at the entry before, in all memory of the
program (``tracer/agent/program/between.c``). Some of them the call itself wrote. Replayed in a copy of the program that is
stopped at the first of these calls, one after the other with what was recorded put into memory after each, the rest shows:
the words that differ from what the replayed call left. Every call so finds what it found in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import SettleError, SnapshotError, TooMuchWrittenError
from layout_advise.tracer.process.channel import RunFolder
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.trace.trace import Mapping, Registers

PAGE = 4096
_PAGES, _GAPS = 1 << 16, 1 << 14
_HEAD = PAGE // 8
_RECORDS = _HEAD + _PAGES + _GAPS
"""Words of the file before the records: counters, pages, where each gap ends."""
_END = 1
"""A record that ends a gap."""
_WHY = {
    1: "this kernel does not tell which pages are written (Linux 6.7 and later do)",
    2: "the program writes too much between them",
    3: "to find it takes too long",
}
_TOO_MUCH = "the program writes too much between the calls"
"""The agent's words where there are more words than it was told to keep (``put_back.c``)."""
_TCB_BYTES = 4096
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Room:
    """The room for records: so many bytes, for so many ``seconds`` (without those that the program itself takes)."""

    size: int
    seconds: float

    @property
    def table(self) -> dict[str, int]:
        """The agent's file, with its size."""
        return {"between": -(-(8 * _RECORDS + self.size) // PAGE) * PAGE}

    @property
    def head(self) -> bytes:
        """The words that the agent finds in it."""
        return np.array([0, 0, 0, int(self.seconds * 1e9)], np.uint64).tobytes()


@dataclass(frozen=True, slots=True)
class Between:
    """Recorded between calls: ``records`` of words, those of each gap up to its one of ``ends``, and the ``pages``
    in which they lie. ``why`` there are no more gaps; empty where there are as many as calls."""

    records: Words
    ends: Words
    pages: Words
    why: str = ""

    @property
    def gaps(self) -> int:
        """The number of gaps that were recorded wholly."""
        return len(self.ends)

    def part(self, first: int, count: int) -> Between | None:
        """The ``count`` gaps from the ``first`` one on (from 0); None where some of them are missing."""
        if first + count > self.gaps:
            return None
        begin = self.ends[first - 1] if first else np.uint64(0)
        ends = self.ends[first : first + count] - begin
        return Between(self.records[int(begin) : int(begin + ends[-1])], ends, self.pages)


def read_between(folder: Path, count: int) -> Between:
    """Reads what the agent left in its file, of at most ``count`` gaps."""
    words = np.memmap(folder / "between", np.uint64, "r")
    gaps, pages, why = (int(word) for word in words[:3])
    gaps = min(gaps, count)
    ends = np.array(words[_HEAD + _PAGES : _HEAD + _PAGES + gaps])
    records = np.array(words[_RECORDS : _RECORDS + (int(ends[-1]) if gaps else 0)])
    if gaps == count - 1:  # no call comes after the last one
        records = np.append(records, np.uint64(_END))
        ends, gaps = np.append(ends, np.uint64(len(records))), count
    reason = "" if gaps == count else _WHY.get(why, "the program ended before")
    return Between(records, ends, np.array(words[_HEAD : _HEAD + pages]), reason)


@dataclass(frozen=True, slots=True)
class Puts:
    """Words to put back: ``counts`` of them after each call, ``words`` with the address, which bits are kept, and the
    value of each."""

    counts: Words
    words: Words

    def __len__(self) -> int:
        return len(self.words)

    def chosen(self, keep: NDArray[np.bool_]) -> Puts:
        """Those that ``keep`` tells."""
        until = np.concatenate(([0], np.cumsum(self.counts.astype(np.int64))))
        kept = np.concatenate(([0], np.cumsum(keep)))
        return Puts(np.diff(kept[until]).astype(np.uint64), self.words[keep])

    def within(self, ranges: Sequence[Range]) -> Puts:
        """Those that touch ``ranges``, which are sorted and whole words."""
        return self.chosen(self._inside(ranges))

    def without(self, ranges: Sequence[Range]) -> Puts:
        """Those that lie beside all of ``ranges``, which are sorted and whole words."""
        return self.chosen(~self._inside(ranges))

    def _inside(self, ranges: Sequence[Range]) -> NDArray[np.bool_]:
        starts = np.array([r.start for r in ranges], np.uint64)
        ends = np.array([r.end for r in ranges], np.uint64)
        at = self.words[:, 0]
        place = np.searchsorted(starts, at, side="right")
        inside = place > 0
        inside[inside] = at[inside] < ends[place[inside] - 1]
        return inside

    @property
    def lines(self) -> tuple[Range, ...]:
        """The cache lines that they lie in, ascending."""
        numbers = np.unique(self.words[:, 0] // 64)
        if not len(numbers):
            return ()
        cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
        runs = np.split(numbers, cuts)
        return tuple(Range(64 * int(run[0]), 64 * int(run[-1]) + 64) for run in runs)

    def install(self, program: BatchProgram) -> None:
        """Has them put back between the calls of the batch that ``program`` makes, and copies of it."""
        program.put(self.counts.tobytes(), self.words.tobytes())


class BatchProgram(Protocol):
    """The stopped program that makes the calls of a batch, as :class:`.agent_process.AgentProcess` is one."""

    folder: RunFolder

    def registers(self) -> Registers:
        """The registers at the first call."""
        ...

    def mappings_at_park(self) -> tuple[Mapping, ...]:
        """The mappings that can be the program's own."""
        ...

    def map_later(self, ranges: Sequence[Range]) -> None:
        """Memory that the program gets between the calls."""
        ...

    def settle(self, records: Path, most: int) -> int:
        """Runs the batch with what was recorded, and writes which words were others."""
        ...

    def put(self, counts: bytes, puts: bytes) -> None:
        """Has words put into memory between the calls from now on."""
        ...

    def fork(self) -> Self:
        """A copy."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def missing_pages(program: BatchProgram, pages: Words) -> list[Range]:
    """Those of ``pages`` that ``program`` cannot write to: it gets them later."""
    known = [m for m in program.mappings_at_park() if m.permissions.startswith("rw")]
    starts, ends = (np.array([getattr(m, side) for m in known], np.uint64) for side in ("start", "end"))
    place = np.searchsorted(starts, pages, side="right")
    there = place > 0
    there[there] = pages[there] < ends[place[there] - 1]
    found: list[Range] = []
    for page in np.unique(pages[~there]).tolist():
        if found and found[-1].end == page:
            found[-1] = Range(found[-1].start, page + PAGE)
        else:
            found.append(Range(page, page + PAGE))
    return found


def _below(program: BatchProgram, top: int) -> Range:
    """The stack up to ``top``: of the calls' frames, and of those that led to a deeper call after the last one."""
    return next((Range(m.start, top) for m in program.mappings_at_park() if m.start < top <= m.end), Range(top - 8, top))


def settle(program: BatchProgram, between: Between, own: Sequence[Range], most: int) -> Puts:
    """The words that have to be put back between the calls of the batch that ``program`` makes, between which ``between``
    was recorded: at most ``most`` of them. ``own``: what is each call's own already. Raises SettleError where the calls
    cannot be repeated so, :class:`TooMuchWrittenError` where there are more words."""
    program.map_later(missing_pages(program, between.pages))
    path = program.folder.path / program.folder.fresh_name("between")
    path.write_bytes(between.records.tobytes())
    try:
        with program.fork() as fork:
            count = fork.settle(path, most)
        words = np.fromfile(path, np.uint64)
    except SnapshotError as error:
        kind = TooMuchWrittenError if _TOO_MUCH in error.line() else SettleError
        raise kind(error.what, error.why or error.what) from error
    finally:
        path.unlink(missing_ok=True)
    found = Puts(words[: between.gaps], words[between.gaps :].reshape(-1, 3))
    assert len(found) == count
    registers = program.registers()
    thread = Range(registers.fs_base, registers.fs_base + _TCB_BYTES)  # there the kernel writes, too
    apart = sorted((*own, thread, _below(program, registers.gpr[4] + 8)), key=lambda r: r.start)
    return found.without(apart)
