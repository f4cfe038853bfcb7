"""Ending what a start of the program leaves running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator

from layout_advise.tracer.offspring.marks import MARK, mark_of
from layout_advise.tracer.offspring.processes import Running, running, start_time

SWEEPS = 20
"""Processes left behind are looked for again until none is found, so often at most."""
_SUBREAPER, _IS_SUBREAPER = 36, 37
_PAUSE = 0.01
_libc = ctypes.CDLL(None, use_errno=True)


def end_started(leader: int, mark: str) -> None:
    """Kills the session and the group that ``leader`` led, all with ``mark``, and their descendants."""

    def theirs(found: Collection[Running]) -> set[int]:
        led = {one.pid for one in found if leader in (one.pid, one.session, one.group)}
        return _with_descendants(led | {one.pid for one in found if mark_of(one.pid) == mark}, found)

    _end(theirs)


def end_marked(wanted: Callable[[str], bool], variable: str = MARK) -> None:
    """Kills all processes whose mark is ``wanted``, and those that they start meanwhile; not those that have the mark of
    this process, which are started by the same as it."""
    own = os.environ.get(variable)

    def marked(found: Collection[Running]) -> set[int]:
        marks = ((one.pid, mark_of(one.pid, variable)) for one in found)
        return {pid for pid, mark in marks if mark is not None and mark != own and wanted(mark)}

    _end(marked, since=0)


@contextlib.contextmanager
def adopting() -> Iterator[Callable[[], None]]:
    """What is called begins the adoption: processes whose parents end become children of this one, and at the end all
    descendants are killed that were not there at the beginning."""
    was = ctypes.c_int()
    _libc.prctl(_IS_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    before: set[int] | None = None

    def begin() -> None:
        nonlocal before
        if before is None and _libc.prctl(_SUBREAPER, 1, 0, 0, 0) == 0:
            before = _descendants(running())

    try:
        yield begin
    finally:
        if before is not None:
            spared = before
            _end(lambda found: _descendants(found) - spared)
            _libc.prctl(_SUBREAPER, was.value, 0, 0, 0)


def _descendants(found: Collection[Running]) -> set[int]:
    return _with_descendants({os.getpid()}, found) - {os.getpid()}


def _with_descendants(pids: set[int], found: Collection[Running]) -> set[int]:
    while more := {one.pid for one in found if one.parent in pids} - pids:
        pids = pids | more
    return pids


def _end(chosen: Callable[[Collection[Running]], set[int]], since: int | None = None) -> None:
    """Kills the chosen ones of the running processes until there are none. ``since``: as of :func:`running`; what this
    process has started is not older than itself."""
    oldest = int(start_time(os.getpid()) or 0) if since is None else since
    for _ in range(SWEEPS):
        pids = chosen(running(oldest))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        time.sleep(_PAUSE)
