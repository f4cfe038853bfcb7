"""The end of a study that takes too long: comparing and timing may take any time, and what is known of other regions is not
to go with it."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from layout_advise.tracer.sampling.turns import own_time

AGAIN_S = 20.0
"""Seconds after which it is raised once more: what is raised in the middle of an import, or in a destructor, may be lost."""


class StudyOver(BaseException):
    """The time of a study is over. It is no error: what goes on after an error must not go on after it."""


@contextmanager
def ended_at(end: float) -> Iterator[None]:
    """Raises :class:`StudyOver` in its body when :func:`own_time` comes to ``end``, by SIGALRM: in the main thread only, and
    nowhere where ``end`` is infinite."""
    if math.isinf(end) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        left = end - own_time()
        if left <= 0:
            raise StudyOver
        signal.setitimer(signal.ITIMER_REAL, left, AGAIN_S)  # it has waited for its turn meanwhile

    before = signal.signal(signal.SIGALRM, ring)
    other = signal.setitimer(signal.ITIMER_REAL, max(end - own_time(), 0.001), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *other)
