"""Room on a disk: asked for before it is needed, and refused with figures."""

from __future__ import annotations

import os
from pathlib import Path

from layout_advise.errors import TraceError

RECORD_BYTES = 8
"""Size of one raw record of the clone."""

KEEP_FREE = 64 << 20
"""Bytes of the scratch folder that are left to others."""

RECORDS_ROOM = KEEP_FREE + (8 << 20)
"""Free bytes there without which no trace is begun: with fewer, there is no room for a million records."""


def free_bytes(folder: Path) -> int:
    """Bytes that may still be written to the file system of ``folder``, or of the nearest folder above it that exists."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def runs_code(folder: Path) -> bool:
    """Returns whether libraries in ``folder`` can be loaded: it is not mounted noexec, as containers mount /dev/shm."""
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def memory_folder(room: int) -> Path | None:
    """/dev/shm where it can be written, and so many bytes are free there; ``None`` where not."""
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK | os.X_OK) and free_bytes(shm) >= room else None


def is_full(folder: Path) -> bool:
    """Returns whether next to nothing can be written there any more."""
    return free_bytes(folder) < 1 << 16


def require(folder: Path, needed: int, what: str, hint: str) -> None:
    """Raises :class:`TraceError` that names both where fewer than ``needed`` bytes are free."""
    free = free_bytes(folder)
    if free < needed:
        raise TraceError(f"no room for {what}", f"{needed:,} bytes are needed in {folder}, {free:,} are free", hint)
