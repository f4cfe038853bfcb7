"""A running program under ptrace with all its threads: its stops, its registers, system calls made in its name.

Unlike :class:`layout_advise.tracer.process.ptraced.PtracedProgram` it takes a program that runs already, here one that the
agent parked, and sets it off again. All methods are for one thread of ours: the kernel knows that one as the tracer.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import time
from dataclasses import dataclass

from layout_advise.errors import SnapshotError
from layout_advise.tracer.code.decoder import GPR_NAMES
from layout_advise.tracer.process import ptrace
from layout_advise.tracer.process.launch import describe_end
from layout_advise.tracer.process.ptrace import CALL_ARGUMENTS, NO_SYSTEM_CALL, TracedProcess, libc, next_stop, signed
from layout_advise.tracer.process.xstate import restored
from layout_advise.tracer.trace.trace import Registers

SYSTEM_CALL = signal.SIGTRAP | 0x80
_FOLLOWED = ptrace.OPTION_FORK | ptrace.OPTION_VFORK | ptrace.OPTION_CLONE | ptrace.OPTION_EXEC
_OPTIONS = _FOLLOWED | ptrace.OPTION_SYSGOOD | ptrace.OPTION_EXITKILL
_LONGEST_PAUSE = 5e-5


@dataclass(frozen=True, slots=True)
class StopEvent:
    """Thread ``thread`` stopped for signal ``signal`` (or ``event``), or ``ended`` tells how it is gone."""

    thread: int
    signal: int = 0
    event: int = 0
    ended: str = ""


@dataclass(frozen=True, slots=True)
class ParkedState:
    """The state of a parked thread, besides its general registers, that it needs to go on: its id, its signal mask, and the
    vector state as XSAVE wrote it (``components`` of it are valid)."""

    thread: int
    signals: int
    vectors: bytes
    components: int


class ThreadGone(SnapshotError):
    """A stopped thread is not there any more: another one ends the program."""


class Seized(TracedProcess):
    """The program ``pid``, which leads a process group of its own. Raises :class:`SnapshotError` where that is forbidden.

    It is killed by :meth:`close`, and by the kernel should we end first.
    """

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid
        self._late: dict[int, list[int]] = {}
        for thread in self.threads:
            if libc.ptrace(ptrace.SEIZE, thread, None, _OPTIONS):
                raise SnapshotError("cannot watch the program", f"ptrace: {os.strerror(ctypes.get_errno())}")
        self._open_memory()

    def close(self) -> None:
        """Kill it and wait for all its threads; may be called twice."""
        if self._memory < 0:
            return
        os.close(self._memory)
        self._memory = -1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + 5.0
        with contextlib.suppress(ChildProcessError):
            while (stop := self.wait(deadline)) is not None and not (stop.ended and stop.thread == self.pid):
                pass

    def fault_address(self, thread: int) -> int:
        """The address of the access that SIGSEGV stopped the thread for."""
        info = ctypes.create_string_buffer(128)
        self._ask(ptrace.GETSIGINFO, thread, None, info)
        return int.from_bytes(info.raw[16:24], "little")

    def enters_call(self, thread: int) -> bool:
        """Returns whether the stop at a system call is that before it."""
        info = ctypes.create_string_buffer(128)
        self._ask(ptrace.SYSCALL_INFO, thread, len(info), info)
        return info.raw[0] == 1

    def resume(self, thread: int, *, calls: bool, signal_number: int = 0) -> None:
        """Let the thread run, until its next system call if ``calls``; deliver the signal if there is one."""
        late = self._late.get(thread)
        if not signal_number and late:
            signal_number = late.pop(0)
        libc.ptrace(ptrace.SYSCALL if calls else ptrace.CONT, thread, None, signal_number)

    @property
    def threads(self) -> tuple[int, ...]:
        """The threads that it has now."""
        return tuple(map(int, os.listdir(f"/proc/{self.pid}/task")))

    def interrupt(self, thread: int) -> None:
        """The running thread will stop with EVENT_STOP."""
        libc.ptrace(ptrace.INTERRUPT, thread, None, None)

    def wait(self, deadline: float | None) -> StopEvent | None:
        """The next stop of any thread; None at ``deadline`` (of the monotonic clock). Raises ChildProcessError when all is
        over."""
        found = next_stop([-self.pid], deadline, _LONGEST_PAUSE)
        return _stop(*found) if found is not None else None

    def step(self, thread: int) -> StopEvent:
        """One instruction of the thread (one iteration of a repeated string instruction), and its stop: SIGTRAP after it, or
        SIGSEGV instead of it. Other signals that come meanwhile are delivered when the thread is resumed."""
        while True:
            self._ask(ptrace.STEP, thread)
            stop = self.wait_for(thread)
            if stop.ended or (not stop.event and stop.signal in (signal.SIGTRAP, signal.SIGSEGV)):
                return stop
            if not stop.event:
                self._late.setdefault(thread, []).append(stop.signal)

    def wait_for(self, thread: int) -> StopEvent:
        """The next stop of this thread, which comes soon."""
        return _stop(*os.waitpid(thread, ptrace.WALL))

    def system_call(self, thread: int, at: int, number: int, *arguments: int) -> int:
        """Have the stopped thread make a system call by the instruction at ``at``; the registers are the caller's to set
        again. Returns what it returned, negative for an error."""
        registers = self.registers_of(thread)
        registers.rip, registers.rax, registers.orig_rax = at, number, NO_SYSTEM_CALL
        for name, value in zip(CALL_ARGUMENTS, arguments, strict=False):
            setattr(registers, name, value)
        self.set_registers_of(thread, registers)
        stop = self.step(thread)
        if stop.ended or stop.signal != signal.SIGTRAP:
            raise SnapshotError("the watched program did not obey", stop.ended or f"signal {stop.signal}")
        return signed(self.registers_of(thread).rax)

    def unpark(self, state: ParkedState, registers: Registers) -> None:
        """Stop the thread that the agent parked and put it where the program was, as if it had never been parked."""
        self.interrupt(state.thread)
        stop = self.wait_for(state.thread)
        if stop.ended:
            raise SnapshotError("the parked program is gone", stop.ended)
        own = self.registers_of(state.thread)
        for name, value in zip(GPR_NAMES, registers.gpr, strict=True):
            setattr(own, name, value)
        own.rip, own.eflags, own.orig_rax = registers.rip, registers.rflags, NO_SYSTEM_CALL
        self.set_registers_of(state.thread, own)
        kernels = self.vector_state(state.thread)
        self.set_vector_state(state.thread, restored(state.vectors, state.components, kernels))
        mask = ctypes.c_uint64(state.signals)
        self._ask(ptrace.SETSIGMASK, state.thread, 8, ctypes.byref(mask))

    def _refused(self, request: int, why: str) -> None:
        kind = ThreadGone if why == os.strerror(errno.ESRCH) else SnapshotError
        raise kind("the watched program is out of reach", f"ptrace {request:#x}: {why}")


def _stop(thread: int, status: int) -> StopEvent:
    if os.WIFSTOPPED(status):
        return StopEvent(thread, os.WSTOPSIG(status), status >> 16)
    return StopEvent(thread, ended=describe_end(os.waitstatus_to_exitcode(status)))
