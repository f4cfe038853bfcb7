"""Other threads of a watched program: stopped before the watch begins, and ending the program under it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any, cast

from layout_advise.tracer.process.ptrace import EVENT_STOP, UserRegisters
from layout_advise.tracer.process.seized import Seized, StopEvent, ThreadGone
from layout_advise.tracer.watch.user_watch import UserWatch
from layout_advise.tracer.watch.watched import Course, OwnCode


class Threads:
    """A program whose threads stop in a given order; what is asked of it is noted."""

    pid, threads = 1, (1, 2, 3)

    def __init__(self, *stops: StopEvent, gone: bool = False) -> None:
        self.stops: Iterator[StopEvent] = iter(stops)
        self.gone, self.asked = gone, list[tuple[str, int]]()

    def interrupt(self, thread: int) -> None:
        self.asked.append(("interrupt", thread))

    def wait(self, deadline: float | None) -> StopEvent | None:
        stop = next(self.stops, None)
        if stop is None:
            raise ChildProcessError
        return stop

    def resume(self, thread: int, *, calls: bool, signal_number: int = 0) -> None:
        assert calls or thread == 1  # the system calls of the others are seen
        self.asked.append(("resume", thread))

    def registers_of(self, thread: int) -> UserRegisters:
        if self.gone and thread != 1:
            raise ThreadGone("the watched program is out of reach", "No such process")
        self.asked.append(("registers", thread))
        return UserRegisters()

    def set_registers_of(self, thread: int, registers: UserRegisters) -> None: ...

    def read(self, address: int, size: int) -> bytes:
        return bytes(size)

    def write(self, address: int, data: bytes) -> None: ...


def watch(program: Threads, why: str = "") -> Any:
    own = OwnCode((), lambda address: False, 0)
    found = UserWatch(cast(Seized, program), 1, Course(3, 0), (), own, lambda: why)

    return found.run(1.0, 1.0)


def test_the_others_stop_before_the_hotspot_goes_on() -> None:
    """A thread that was in `read` when the memory was closed got EFAULT, under load one time in fifty."""
    program = Threads(StopEvent(3, signal.SIGTRAP, EVENT_STOP), StopEvent(2, signal.SIGTRAP, EVENT_STOP))
    seen = watch(program, "it is over")
    assert seen.reason == "it is over"
    assert sorted(program.asked[:2]) == [("interrupt", 2), ("interrupt", 3)]
    assert program.asked[2:] == [("resume", 3), ("resume", 2), ("registers", 1)]


def test_a_thread_that_is_gone_is_the_programs_end() -> None:
    """Another thread ended the program while one was looked at: `ptrace 0xc: No such process`, and the run failed."""
    others = [StopEvent(k, signal.SIGTRAP, EVENT_STOP) for k in (2, 3)]
    seen = watch(Threads(*others, StopEvent(2, signal.SIGTRAP), gone=True))
    assert (seen.ended, seen.reason) == (True, "")
