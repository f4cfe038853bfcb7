"""The same addresses of several processes: which parts can differ, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.stopped_program import StoppedProgram
from layout_advise.tracer.snapshot.pages.touched import PAGE, PRESENT, SWAPPED, runs, touched, united

_FRAME = np.uint64((1 << 55) - 1)


class ProcessMemory:
    """Reads the same addresses of several processes."""

    def __init__(self, programs: Sequence[StoppedProgram]) -> None:
        self._files = [os.open(f"/proc/{program.pid}/mem", os.O_RDONLY | os.O_CLOEXEC) for program in programs]
        self._pids = [program.pid for program in programs]
        self._tables: list[int] = []
        try:
            for program in programs:
                self._tables.append(os.open(f"/proc/{program.pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:  # without it all is read
            self._drop_tables()

    def _drop_tables(self) -> None:
        for handle in self._tables:
            os.close(handle)
        self._tables = []

    def touched(self, low: int, high: int) -> list[tuple[int, int]]:
        """The parts of [low, high) that at least one of the processes has touched; all where that is not known."""
        if not self._tables:
            return [(low, high)]
        return united([part for table in self._tables for part in touched(table, low, high)])

    def apart(self, low: int, high: int) -> list[tuple[int, int]]:
        """The parts of [low, high) that can differ between the processes: not the pages that all of them share (forks do
        until one writes) or that none has touched. Frame numbers are hidden (0) from unprivileged readers; then nothing is
        known to be shared."""
        if not self._tables:
            return [(low, high)]
        first, count = low // PAGE, -(-high // PAGE) - low // PAGE
        tables = []
        for handle in self._tables:
            data = os.pread(handle, 8 * count, 8 * first)
            if len(data) != 8 * count:
                return [(low, high)]
            tables.append(np.frombuffer(data, dtype=np.uint64))
        known = tables[0] & (PRESENT | SWAPPED | _FRAME)
        shared = ((known & PRESENT != 0) & (known & _FRAME != 0)) | (known & (PRESENT | SWAPPED) == 0)
        for table in tables[1:]:
            shared &= (table & (PRESENT | SWAPPED | _FRAME)) == known
        pieces = [((first + start) * PAGE, (first + end) * PAGE) for start, end in runs(~shared)]
        return [(max(start, low), min(end, high)) for start, end in pieces]

    def read(self, which: int, address: int, size: int) -> NDArray[np.uint8]:
        data = np.empty(size, dtype=np.uint8)
        try:
            got = os.preadv(self._files[which], [data.data], address)
        except OSError as error:
            raise SnapshotError("cannot compare the program's memory", f"at {address:#x}: {error}") from error
        if got != size:
            raise SnapshotError("cannot compare the program's memory", f"only {got} of {size} bytes at {address:#x}")
        return data

    def same(self, one: int, other: int) -> bool:
        """Returns whether two of them are one process."""
        return self._pids[one] == self._pids[other]

    def close(self) -> None:
        for handle in self._files:
            os.close(handle)
        self._drop_tables()
