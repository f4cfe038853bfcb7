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
from types import TracebackType
from typing import Self

from layout_advise.errors import ProgramError
from layout_advise.tracer.process.launch import describe_end, signal_name
from layout_advise.tracer.process.procfs import parse_mappings
from layout_advise.tracer.trace.trace import Mapping

_TRACEME, _CONT, _STEP, _GETREGS, _SETREGS, _DETACH, _SETOPTIONS, _GETEVENTMSG = 0, 7, 9, 12, 13, 17, 0x4200, 0x4201
_FORK, _VFORK, _CLONE, _EXEC, _EXITKILL = 2, 4, 8, 16, 0x100000
_EVENT_VFORK, _EVENT_EXEC = 2, 4
_NO_RANDOM = 0x0040000
_WALL = 0x40000000
_TGKILL = 234
_SPINS = 40  # polls before the first sleep: a step takes a few microseconds
_PAUSE, _LONGEST_PAUSE = 2e-5, 2e-3
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS})

_NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)  # fmt: skip

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class UserRegisters(ctypes.Structure):
    """``struct user_regs_struct``."""

    _fields_ = [(name, ctypes.c_uint64) for name in _NAMES]


class Tracee:
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
            libc.ptrace(_TRACEME, 0, None, None)

        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._planted: dict[int, bytes] = {}
        self._still: dict[int, int] = {}  # threads to be set off, with a signal or 0; all others run
        self._memory = -1
        with open(stdin or os.devnull, "rb") as source:
            self._process = subprocess.Popen(
                list(command),
                preexec_fn=prepare,
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment or {"LD_BIND_NOW": "1", "PATH": os.environ.get("PATH", "")}),
                start_new_session=True,
            )
        self.pid = self.thread = self._process.pid
        self.threads = [self.pid]
        self._heard(*self._next(self.threads))
        libc.ptrace(_SETOPTIONS, self.pid, None, _FORK | _VFORK | _CLONE | _EXEC | _EXITKILL)
        self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Kills the program and what it started in its process group; may be called twice."""
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._process.returncode is None:  # not by Popen, which takes a stop for an end
            os.kill(self.pid, signal.SIGKILL)
            for thread in [*(t for t in self.threads if t != self.pid), self.pid]:  # the first thread's end comes last
                with contextlib.suppress(ChildProcessError):
                    while os.WIFSTOPPED(os.waitpid(thread, _WALL)[1]):
                        pass
            self._process.returncode = -signal.SIGKILL

    def registers(self) -> UserRegisters:
        """The general registers of ``thread``."""
        return self._registers(self.thread)

    def set_registers(self, registers: UserRegisters) -> None:
        """Sets the general registers of ``thread``."""
        libc.ptrace(_SETREGS, self.thread, None, ctypes.byref(registers))

    def read(self, address: int, size: int) -> bytes:
        """Memory of the program."""
        return os.pread(self._memory, size, address)

    def write(self, address: int, data: bytes) -> None:
        """Writes memory of the program, read-only code too."""
        os.pwrite(self._memory, data, address)

    def mappings(self) -> tuple[Mapping, ...]:
        """/proc/PID/maps."""
        return parse_mappings(Path(f"/proc/{self.thread}/maps").read_text())

    def plant(self, address: int) -> None:
        """Sets a breakpoint."""
        self._planted[address] = self.read(address, 1)
        self.write(address, b"\xcc")

    def remove(self, address: int) -> None:
        """Takes the breakpoint away."""
        self.write(address, self._planted.pop(address))

    def resume(self) -> None:
        """Runs all threads until one comes to a breakpoint; it is ``thread`` then."""
        self._still = dict.fromkeys(self.threads, 0)
        while True:
            for thread, number in self._still.items():
                libc.ptrace(_CONT, thread, None, number)
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
        libc.ptrace(_SETOPTIONS, self.thread, None, _EXITKILL)
        for other in self.threads:
            if other != self.thread:
                libc.ptrace(_DETACH, other, None, None)
        self.threads = [self.thread]

    def _registers(self, thread: int) -> UserRegisters:
        found = UserRegisters()
        libc.ptrace(_GETREGS, thread, None, ctypes.byref(found))
        return found

    def _next(self, threads: Sequence[int]) -> tuple[int, int]:
        """The next stop or end of one of ``threads``, and its wait status."""
        polls = 0
        while True:
            if self._deadline is not None and time.monotonic() >= self._deadline:
                hint = "raise --timeout, or ask for an earlier --call"
                raise ProgramError("the traced program was killed", f"not done after {self._timeout:g} s", hint)
            for thread in threads:
                try:
                    found, status = os.waitpid(thread, _WALL | os.WNOHANG)
                except ChildProcessError:  # another thread's exec took it away
                    return thread, 0
                if found:
                    return thread, status
            polls += 1
            if polls > _SPINS:
                time.sleep(min(_PAUSE * (polls - _SPINS), _LONGEST_PAUSE))

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
        if event == _EVENT_EXEC:
            raise ProgramError("the traced program cannot be followed", "it calls exec", "give the program that it becomes")
        message = ctypes.c_ulong()
        libc.ptrace(_GETEVENTMSG, thread, None, ctypes.byref(message))
        new = message.value
        if not os.WIFSTOPPED(os.waitpid(new, _WALL)[1]):
            return
        if os.path.exists(f"/proc/{self.pid}/task/{new}"):
            self.threads.append(new)
            self._still[new] = 0
            return
        if event != _EVENT_VFORK:  # which shares the memory until it calls exec, and may call nothing else
            self._clean(new)
        libc.ptrace(_DETACH, new, None, None)

    def _clean(self, child: int) -> None:
        """Takes the breakpoints out of a forked child."""
        with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory:
            for address, saved in self._planted.items():
                os.pwrite(memory.fileno(), saved, address)
                if self.read(address, 1) != b"\xcc":
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
            registers = self._registers(thread)
            if number == signal.SIGTRAP and registers.rip - 1 in self._planted:
                registers.rip -= 1
                libc.ptrace(_SETREGS, thread, None, ctypes.byref(registers))
            elif number and number not in _FAULTS:  # a fault comes again by itself
                late.append(number)
            libc.ptrace(_CONT, thread, None, None)
        for number in late:
            libc.syscall(_TGKILL, self.pid, thread, number)

    def _single(self, number: int) -> int:
        """One step, the signal ``number`` delivered first; the signal that came instead of it, or 0."""
        libc.ptrace(_STEP, self.thread, None, number)
        while True:
            thread, status = self._next([self.thread])
            found = self._heard(thread, status)
            if found is None:
                raise ProgramError("the traced thread ended", "the call did not return")
            if found:
                return 0 if found == signal.SIGTRAP else found
            libc.ptrace(_STEP, self.thread, None, None)

    def _catches(self, number: int) -> bool:
        """Whether the program has a handler for the signal."""
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
