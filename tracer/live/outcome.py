"""One run of the program in a trial, as values."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layout_advise.tracer.process.launch import describe_end

ROWS = 1 << 17
"""So many calls are timed at most."""
_HEAD = struct.Struct("<256s12Q")
ROW = np.dtype([("tsc", np.uint64), ("cpu", np.uint64), ("role", np.uint64), ("copying", np.uint64)])
TABLE_BYTES = _HEAD.size + ROWS * ROW.itemsize
ORIGINAL, MOCKUP, CONVERTED, PASSED, STOPPED, FAULTED = 1, 2, 4, 8, 16, 32
"""Bits of a row's role: timed as the original, run as the mock-up, with the data converted before it, not like the traced
call and so the original's; in a survey, where the mock-up stopped at a way that no compared call took, or died otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveRun:
    """``calls`` of the region from the first of the trial on, of which ``mockups`` ran as the mock-up and ``passed`` were
    left to the original; ``conversions`` of the data, in and back. ``times`` are a call's ns and ``roles`` what it ran as.
    ``inside``: the call that was running as the mock-up when the program ended, 0 where none was. ``error``: why the mock-up
    was not used, or not any more."""

    calls: int
    mockups: int
    conversions: int
    passed: int
    inside: int
    error: str
    times: NDArray[np.float64]
    roles: NDArray[np.uint64]
    returncode: int
    seconds: float
    cpu_seconds: float
    stdout: bytes
    stderr: bytes
    surveyed: int = 0
    """The last call that a survey came to."""
    copying: NDArray[np.float64] | None = None
    """The ns that copies of the data took before and after each call; those before the first of them are not in it."""
    within: int = 0
    """Calls that the mock-up of another region made: they were the original's, and are not among ``calls``."""
    aside_s: float = 0.0
    """CPU seconds of the trial itself, where they were added up: all of the run but the program's code and the calls of
    mock-ups; ``copies_s`` of them are copies of the data."""
    copies_s: float = 0.0
    faults: int = 0
    """Page faults of the whole program that read nothing from a disk; ``aside_faults`` of them are the trial's own."""
    aside_faults: int = 0
    ended: int = 0
    """The first call after the time for mock-ups was over; 0: it was not."""

    @property
    def end(self) -> str:
        """Its end in words: ``exit status 0``."""
        return describe_end(self.returncode)

    def times_as(self, role: int) -> NDArray[np.float64]:
        """The ns of each call that ran so, NaN for the others."""
        return np.where((self.roles & np.uint64(role)) != 0, self.times, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class CallTable:
    """The agent's table of one region, as :class:`LiveRun` has it."""

    error: str
    calls: int
    mockups: int
    conversions: int
    passed: int
    inside: int
    surveyed: int
    within: int
    aside_s: float
    copies_s: float
    aside_faults: int
    ended: int
    times: NDArray[np.float64]
    copying: NDArray[np.float64]
    roles: NDArray[np.uint64]


def read_table(data: bytes, ns_per_tick: float | None) -> CallTable:
    """The table of a region. The CPU's time of a call where it was taken, else that of the time stamp counter, as of the
    copies."""
    error, calls, mockups, conversions, passed, inside, _, surveyed, within, *aside = _HEAD.unpack_from(data)
    rows = np.frombuffer(data, ROW, min(calls, ROWS), offset=_HEAD.size)
    quick = not rows["cpu"].any()
    tick = ns_per_tick or np.nan
    times = rows["tsc"] * tick if quick else rows["cpu"].astype(np.float64)
    text = error.split(b"\0")[0].decode(errors="replace")
    return CallTable(
        text, calls, mockups, conversions, passed, inside, surveyed, within, aside[0] / 1e9, aside[1] / 1e9,
        aside[2], aside[3], times, rows["copying"] * tick, rows["role"].copy(),
    )  # fmt: skip
