"""Work in a process of its own, which can be killed: native code that does not end heeds no signal of Python's."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class EndedError(Exception):
    """The process ended without an answer, or had to be ended."""


class FailedError(Exception):
    """What the work raised, as text."""


def in_child(work: Callable[[], T], seconds: float | None = None, passed_on: tuple[type[BaseException], ...] = ()) -> T:
    """What ``work`` returns, done in a fork of this process, which is killed after so many seconds, and where this one is
    interrupted. Raises EndedError where it did not answer, FailedError with the traceback where ``work`` raised something
    that is none of ``passed_on``: those are raised here with their arguments."""
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that this process has threads: the child starts none
        child = os.fork()
    if child == 0:
        os.close(ours)
        _answer(work, theirs, passed_on)
    os.close(theirs)
    try:
        said = _read(ours, seconds)
    finally:
        os.close(ours)
        if (ended := os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None or not ended.si_pid:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not said:
        code = os.waitstatus_to_exitcode(status)
        raise EndedError(f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}")
    kind, value = pickle.loads(said)
    if kind == "failed":
        raise FailedError(value)
    if kind == "raised":
        raise value[0](*value[1])
    answer: T = value
    return answer


def _answer(work: Callable[[], Any], out: int, passed_on: tuple[type[BaseException], ...]) -> NoReturn:
    code = 1
    gc.freeze()  # a collection would write to all objects of the parent, and copy their pages
    try:
        try:
            said: tuple[str, Any] = "done", work()
        except passed_on as error:
            said = "raised", (type(error), error.args)
        except BaseException:
            said = "failed", traceback.format_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(out, "wb") as file:
            file.write(pickle.dumps(said))
        code = 0
    finally:
        os._exit(code)


def _read(handle: int, seconds: float | None) -> bytes:
    """All that is written until the other end is closed; raises EndedError where that takes longer."""
    deadline = None if seconds is None else time.monotonic() + seconds
    pieces: list[bytes] = []
    while True:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and (left <= 0 or not select.select([handle], [], [], left)[0]):
            raise EndedError(f"did not end within {seconds:g} s")
        piece = os.read(handle, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
