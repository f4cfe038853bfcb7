"""Processes as /proc shows them: who started whom, and when."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Running:
    """A process that has not ended."""

    pid: int
    parent: int
    group: int
    session: int


def running(since: int = 0) -> list[Running]:
    """The processes that have not ended, but for this one, and that did not start before ``since`` (clock ticks)."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError, IndexError):
            state, *fields = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
            if state not in "ZX" and int(fields[18]) >= since:
                parent, group, session = map(int, fields[:3])
                found.append(Running(int(entry.name), parent, group, session))
    return found


def start_time(pid: int) -> str:
    """When a process started, in clock ticks since boot, empty where there is none: a pid alone may have been used again."""
    try:
        # The second field is the program's name and may hold anything, so count from its closing bracket.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
