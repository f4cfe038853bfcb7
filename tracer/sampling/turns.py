"""Timed parts of runs on one machine take turns: what runs beside a measurement is measured with it.

Who has the turn holds an abstract socket, which the kernel takes back when its holder ends, however that happens; no file is
left, and no permission is needed. Where none can be had, nobody waits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator

VARIABLE = "LAYOUT_ADVISE_TURNS"
LONGEST = 300.0
"""Seconds after which nobody waits any more: the holder may be stopped."""
_PAUSE = 0.02


class _Held:
    """The turn of this process: how often it was taken within itself, how long was waited for it in all, or something else
    done, and since when it is waited for now."""

    depth = 0
    waited = 0.0
    since: float | None = None


def own_time() -> float:
    """The monotonic clock in seconds, which stands still while this process waits for its turn, and while something that is
    :func:`set_apart` is done."""
    return (time.monotonic() if _Held.since is None else _Held.since) - _Held.waited


@contextlib.contextmanager
def set_apart() -> Iterator[None]:
    """Work that is done in it is no part of the run: a benchmark's own programs between the run's processes."""
    begun, waited = time.monotonic(), _Held.waited
    try:
        yield
    finally:
        _Held.waited = waited + time.monotonic() - begun


@contextlib.contextmanager
def own_turn() -> Iterator[None]:
    """What is done in it is done while no other run on this machine has its turn. ``LAYOUT_ADVISE_TURNS`` names those that
    take turns with each other. May be entered again within itself."""
    with contextlib.ExitStack() as held:
        if not _Held.depth:
            _Held.since = begun = time.monotonic()
            try:
                taken = _taken(begun + LONGEST)
            finally:
                _Held.waited, _Held.since = _Held.waited + time.monotonic() - begun, None
            if taken is not None:
                held.enter_context(taken)
        _Held.depth += 1
        try:
            yield
        finally:
            _Held.depth -= 1


def _taken(deadline: float) -> socket.socket | None:
    group = os.environ.get("LAYOUT_ADVISE_TURNS", "")
    name = f"\0layout-advise-turns-{group}"
    with contextlib.suppress(OSError):
        one = socket.socket(socket.AF_UNIX)
        while time.monotonic() < deadline:
            try:
                one.bind(name)
                return one
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    break
            time.sleep(_PAUSE)
        one.close()
    return None
