"""Finds a free place in memory for a clone."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.errors import TraceError
from layout_advise.tracer.trace.trace import Mapping

CLONE_ROOM = 32 << 20
"""Address space kept free for one image, in bytes."""

_STEP = 16 << 20
_FARTHEST = 1 << 30
_LOWEST = 1 << 20


def choose_address(mappings: Sequence[Mapping], near: int, room: int = CLONE_ROOM) -> int:
    """A page-aligned address within 1 GB of ``near`` with ``room`` free bytes, and as many free on both sides.

    Starts 64 MB away and prefers what lies below: the heap grows upwards behind an executable. Raises
    :class:`TraceError` where there is no such place.
    """
    near -= near % (1 << 16)
    for distance in range(4 * _STEP, _FARTHEST - room, _STEP):
        for start in (near - distance - room, near + distance):
            low, high = start - room, start + 2 * room
            if low >= _LOWEST and high < 1 << 47 and not any(m.start < high and low < m.end for m in mappings):
                return start
    raise TraceError("no place for the clone", f"no {room >> 20} MB are free within 1 GB of {near:#x}")
