"""The parts of an address range that a process has touched, however much of it is only reserved.

Sanitizers and language runtimes map tens of terabytes and touch megabytes of them. The kernel finds those at once
(``PAGEMAP_SCAN``, since Linux 6.7; Documentation/admin-guide/mm/pagemap.rst); an older one is asked for each page's entry.
"""

from __future__ import annotations

import fcntl
import os
import struct

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
PRESENT = np.uint64(1 << 63)
SWAPPED = np.uint64(1 << 62)
_SCAN = 0xC0606610
"""``PAGEMAP_SCAN``: the request's number holds the size of its argument, 96 bytes."""
_ARGUMENT = struct.Struct("<12Q")
_IS_PRESENT, _IS_SWAPPED = 1 << 3, 1 << 4
_REGIONS = 4096
"""Regions that one request tells of."""
_STEP = 64 << 20
"""Bytes of the range whose entries are read at once."""

Ranges = list[tuple[int, int]]


def touched(pagemap: int, low: int, high: int) -> Ranges:
    """The page ranges of [low, high) that are in memory or swapped out, ascending, cut to it. ``pagemap`` is the open
    ``/proc/PID/pagemap``."""
    begin, end = low // PAGE * PAGE, -(-high // PAGE) * PAGE
    try:
        found = scan(pagemap, begin, end, _IS_PRESENT | _IS_SWAPPED)
    except OSError:  # the kernel does not know the request
        found = _read(pagemap, begin, end)
    return [(max(start, low), min(stop, high)) for start, stop in found]


def scan(pagemap: int, begin: int, end: int, kinds: int) -> Ranges:
    """The parts of [begin, end) that are of one of the ``kinds`` (bits ``PAGE_IS_…``). OSError on kernels before 6.7."""
    found: Ranges = []
    regions = np.empty((_REGIONS, 3), dtype=np.uint64)
    while begin < end:
        fields = (_ARGUMENT.size, 0, begin, end, 0, regions.ctypes.data, _REGIONS, 0, 0, 0, kinds, kinds)
        argument = bytearray(_ARGUMENT.pack(*fields))
        count = fcntl.ioctl(pagemap, _SCAN, argument)
        for start, stop in regions[:count, :2].tolist():
            _append(found, start, stop)
        begin = _ARGUMENT.unpack(argument)[4]
    return found


def _read(pagemap: int, begin: int, end: int) -> Ranges:
    found: Ranges = []
    for start in range(begin, end, _STEP):
        count = (min(start + _STEP, end) - start) // PAGE
        entries = np.frombuffer(os.pread(pagemap, 8 * count, 8 * (start // PAGE)), dtype=np.uint64)
        there = entries & (PRESENT | SWAPPED) != 0
        if not there.any():
            continue
        for first, last in runs(there):
            _append(found, start + first * PAGE, start + last * PAGE)
    return found


def _append(found: Ranges, start: int, stop: int) -> None:
    if found and found[-1][1] == start:
        found[-1] = found[-1][0], stop
    else:
        found.append((start, stop))


def runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The (first, end) positions of the stretches of a mask that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def united(ranges: Ranges) -> Ranges:
    """Ranges that overlap or meet as one, ascending."""
    found: Ranges = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found
