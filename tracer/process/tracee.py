"""A child process under ptrace with all its threads: stops, signals, forked children, and the time that it may take.

A breakpoint byte is seen by every thread and copied into forked children. So all threads are traced and stand still while
the byte is away, and children get the program's own byte before they are let go.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping as Env
from collections.abc import Sequence
from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.offspring.ending import end_started
from layout_advise.tracer.offspring.marks import MARK, fresh_mark
from layout_advise.tracer.process import ptrace
from layout_advise.tracer.process.launch import describe_end, signal_name
from layout_advise.tracer.process.procfs import parse_mappings
from layout_advise.tracer.process.ptrace import INT3, TracedProcess, UserRegisters, libc, next_stop
from layout_advise.tracer.trace.trace import Mapping

_NO_RANDOM = 0x0040000
_TGKILL = 234
_LONGEST_PAUSE = 2e-3
_FOLLOWED = ptrace.OPTION_FORK | ptrace.OPTION_VFORK | ptrace.OPTION_CLONE | ptrace.OPTION_EXEC | ptrace.OPTION_EXITKILL
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS})


class Tracee(TracedProcess):
    """A stopped child process, its output discarded. Registers and steps are those of ``thread``; between two calls of the
    methods all ``threads`` that are traced stand still.

    All methods raise :class:`ProgramError` where it ended instead, or ``timeout`` seconds after the start.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Env[str, str] | None = None,
        stdin: Path | None = None,
        timeout: float | None = None,
    ) -> None:
        def prepare() -> None:
            libc.personality(_NO_RANDOM)
            libc.ptrace(ptrace.TRACEME, 0, None, None)

        super().__init__()
        self._timeout, self._mark = timeout, fresh_mark()
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._planted: dict[int, bytes] = {}
        self._still: dict[int, int] = {}  # threads to be set off, with a signal or 0; all others run
        with open(stdin or os.devnull, "rb") as source:
            self._process = subprocess.Popen(
                list(command),
                preexec_fn=prepare,
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**(environment or {"LD_BIND_NOW": "1", "PATH": os.environ.get("PATH", "")}), MARK: self._mark},
                start_new_session=True,
            )
        self.pid = self.thread = self._process.pid
        self.threads = [self.pid]
        self._heard(*self._next(self.threads))
        self._ask(ptrace.SETOPTIONS, self.pid, None, _FOLLOWED)
        self._open_memory()

    def close(self) -> None:
        """Kills the program and what it started; may be called twice."""
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1
            end_started(self.pid, self._mark)
        if self._process.returncode is None:  # not by Popen, which takes a stop for an end
            os.kill(self.pid, signal.SIGKILL)
            for thread in [*(t for t in self.threads if t != self.pid), self.pid]:  # the first thread's end comes last
                with contextlib.suppress(ChildProcessError):
                    while os.WIFSTOPPED(os.waitpid(thread, ptrace.WALL)[1]):
                        pass
            self._process.returncode = -signal.SIGKILL

    def registers(self) -> UserRegisters:
        """The general registers of ``thread``."""
        return self.registers_of(self.thread)

    def set_registers(self, registers: UserRegisters) -> None:
        """Sets the general registers of ``thread``."""
        self.set_registers_of(self.thread, registers)

    def mappings(self) -> tuple[Mapping, ...]:
        """/proc/PID/maps."""
        return parse_mappings(Path(f"/proc/{self.thread}/maps").read_text())  # the first thread's is empty once it ended

    def plant(self, address: int) -> None:
        """Sets a breakpoint."""
        self._planted[address] = self.read(address, 1)
        self.write(address, INT3)

    def remove(self, address: int) -> None:
        """Takes the breakpoint away."""
        self.write(address, self._planted.pop(address))

    def resume(self) -> None:
        """Runs all threads until one comes to a breakpoint; it is ``thread`` then."""
        self._still = dict.fromkeys(self.threads, 0)
        while True:
            for thread, number in self._still.items():
                self._ask(ptrace.CONT, thread, None, number)
            self._still = {}
            thread, status = self._next(self.threads)
            found = self._heard(thread, status)
            if found == signal.SIGTRAP:
                break
            if found is not None:
                self._still[thread] = found
        self.thread = thread
        for other in [t for t in self.threads if t != thread]:
            self._hold(other)

    def step(self) -> bool:
        """One instruction of ``thread`` (one iteration of a repeated string instruction). False where a signal came first:
        its handler was run, and the thread stands where that left it."""
        number = self._single(0)
        while number:
            if self._catches(number):
                self._run_handler(number)
                return False
            number = self._single(number)  # ignored, or the end
        return True

    def detach_others(self) -> None:
        """From now on only ``thread`` is traced, and no breakpoint may be set any more."""
        self._ask(ptrace.SETOPTIONS, self.thread, None, ptrace.OPTION_EXITKILL)
        for other in self.threads:
            if other != self.thread:
                self._ask(ptrace.DETACH, other)
        self.threads = [self.thread]

    def _refused(self, request: int, why: str) -> None:
        pass  # the thread was killed: that is found when it is waited for

    def _next(self, threads: Sequence[int]) -> tuple[int, int]:
        """The next stop or end of one of ``threads``, and its wait status."""
        late = self._deadline is not None and time.monotonic() >= self._deadline  # though there is always a next stop
        found = None if late else next_stop(threads, self._deadline, _LONGEST_PAUSE)
        if found is None:
            hint = "raise --timeout, or ask for an earlier --call"
            raise ProgramError("the traced program was killed", f"not done after {self._timeout:g} s", hint)
        return found

    def _heard(self, thread: int, status: int) -> int | None:
        """The signal that stopped the thread; 0 for an event, which is dealt with; None where the thread ended."""
        if not os.WIFSTOPPED(status):
            self.threads.remove(thread)
            if thread == self.pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
            if thread == self.pid or not self.threads:
                raise ProgramError("the traced program ended", describe_end(os.waitstatus_to_exitcode(status)))
            return None
        if status >> 16:
            self._event(thread, status >> 16)
            return 0
        return os.WSTOPSIG(status)

    def _event(self, thread: int, event: int) -> None:
        """A new thread is traced too, a new process is let go."""
        if event == ptrace.EVENT_EXEC:
            raise ProgramError("the traced program cannot be followed", "it calls exec", "give the program that it becomes")
        message = ctypes.c_ulong()
        self._ask(ptrace.GETEVENTMSG, thread, None, ctypes.byref(message))
        new = message.value
        if not os.WIFSTOPPED(os.waitpid(new, ptrace.WALL)[1]):
            return
        if os.path.exists(f"/proc/{self.pid}/task/{new}"):
            self.threads.append(new)
            self._still[new] = 0
            return
        if event != ptrace.EVENT_VFORK:  # which shares the memory until it calls exec, and may call nothing else
            self._clean(new)
        self._ask(ptrace.DETACH, new)

    def _clean(self, child: int) -> None:
        """Takes the breakpoints out of a forked child."""
        with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory:
            for address, saved in self._planted.items():
                os.pwrite(memory.fileno(), saved, address)
                if self.read(address, 1) != INT3:
                    why = "it shares its memory with a process that it started"
                    raise ProgramError("the traced program cannot be followed", why, "use --backend valgrind")

    def _hold(self, thread: int) -> None:
        """Stops a running thread, as if neither this nor another breakpoint had come in its way."""
        libc.syscall(_TGKILL, self.pid, thread, int(signal.SIGSTOP))
        late = []
        while True:
            number = self._heard(*self._next([thread]))
            if number is None:
                return
            if number == signal.SIGSTOP:
                break
            registers = self.registers_of(thread)
            if number == signal.SIGTRAP and registers.rip - 1 in self._planted:
                registers.rip -= 1
                self.set_registers_of(thread, registers)
            elif number and number not in _FAULTS:  # a fault comes again by itself
                late.append(number)
            self._ask(ptrace.CONT, thread)
        for number in late:
            libc.syscall(_TGKILL, self.pid, thread, number)

    def _single(self, number: int) -> int:
        """One step, the signal ``number`` delivered first; the signal that came instead of it, or 0."""
        self._ask(ptrace.STEP, self.thread, None, number)
        while True:
            thread, status = self._next([self.thread])
            found = self._heard(thread, status)
            if found is None:
                raise ProgramError("the traced thread ended", "the call did not return")
            if found:
                return 0 if found == signal.SIGTRAP else found
            self._ask(ptrace.STEP, self.thread)

    def _catches(self, number: int) -> bool:
        """Returns whether the program has a handler for the signal."""
        status = Path(f"/proc/{self.thread}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> number - 1 & 1)

    def _run_handler(self, number: int) -> None:
        """Delivers the signal and steps until its handler returned or was left. Its frames lie below the interrupted one's,
        or on another stack."""
        low = self.registers().rsp
        high = min(m.end for m in self.mappings() if m.end > low)  # the stack may yet have to grow down to `low`
        found = self._single(number)
        if low <= self.registers().rsp < high:
            why = f"the handler of {signal_name(number)} runs on a stack beside the call's"
            raise ProgramError("the traced program cannot be stepped", why, "use --backend valgrind")
        while not low <= self.registers().rsp < high:
            found = self._single(found)
        if found:  # it comes again, now that the call goes on
            libc.syscall(_TGKILL, self.pid, self.thread, found)
