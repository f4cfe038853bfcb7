"""A running program under ptrace with all its threads: its stops, its registers, system calls made in its name.

Unlike :class:`layout_advise.tracer.process.ptraced.PtracedProgram` it takes a program that runs already, here one that the
agent parked, and sets it off again. All methods are for one thread of ours: the kernel knows that one as the tracer.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from layout_advise.errors import SnapshotError
from layout_advise.tracer.code.operands import GPR_NAMES
from layout_advise.tracer.process.tracee import UserRegisters, libc
from layout_advise.tracer.trace.trace import Registers

_CONT, _STEP, _GETREGS, _SETREGS, _SYSCALL = 7, 9, 12, 13, 24
_GETSIGINFO, _GETREGSET, _SETREGSET, _SEIZE, _INTERRUPT, _SETSIGMASK, _SYSCALL_INFO = (
    *(0x4202, 0x4204, 0x4205, 0x4206, 0x4207, 0x420B, 0x420E),
)
_SYSGOOD, _FORK, _VFORK, _CLONE, _EXEC, _EXITKILL = 1, 2, 4, 8, 16, 0x100000
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC, EVENT_STOP = 1, 2, 3, 4, 128
_NT_X86_XSTATE = 0x202
_XSAVE_BITS = 512  # where the header with the components present stands
_XSAVE_KEPT = slice(464, 512)  # the kernel's own
_WALL = 0x40000000
_NONE = (1 << 64) - 1
_SPINS = 40
_PAUSE = 5e-5
SYSTEM_CALL = signal.SIGTRAP | 0x80


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


@dataclass(frozen=True, slots=True)
class Stop:
    """Thread ``thread`` stopped for signal ``signal`` (or ``event``), or ``ended`` tells how it is gone."""

    thread: int
    signal: int = 0
    event: int = 0
    ended: str = ""


@dataclass(frozen=True, slots=True)
class ParkedState:
    """What a parked thread needs, besides its general registers, to go on: its id, its signal mask, and the vector state as
    XSAVE wrote it (``components`` of it are valid)."""

    thread: int
    signals: int
    vectors: bytes
    components: int


class Seized:
    """The program ``pid``, which leads a process group of its own. Raises :class:`SnapshotError` where that is forbidden.

    It is killed by :meth:`close`, and by the kernel should we end first.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._memory = -1
        self._late: dict[int, list[int]] = {}
        options = _SYSGOOD | _FORK | _VFORK | _CLONE | _EXEC | _EXITKILL
        for name in os.listdir(f"/proc/{pid}/task"):
            if libc.ptrace(_SEIZE, int(name), None, options):
                raise SnapshotError("cannot watch the program", f"ptrace: {os.strerror(ctypes.get_errno())}")
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

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

    def read(self, address: int, size: int) -> bytes:
        """Memory of the program, whatever its protection."""
        return os.pread(self._memory, size, address)

    def write(self, address: int, data: bytes) -> None:
        """Writes memory of the program, code too."""
        os.pwrite(self._memory, data, address)

    def registers(self, thread: int) -> UserRegisters:
        """The general registers of a stopped thread."""
        found = UserRegisters()
        self._ask(_GETREGS, thread, None, ctypes.byref(found))
        return found

    def set_registers(self, thread: int, registers: UserRegisters) -> None:
        """Sets the general registers of a stopped thread."""
        self._ask(_SETREGS, thread, None, ctypes.byref(registers))

    def fault_address(self, thread: int) -> int:
        """Where the access went that SIGSEGV stopped the thread for."""
        info = ctypes.create_string_buffer(128)
        self._ask(_GETSIGINFO, thread, None, info)
        return int.from_bytes(info.raw[16:24], "little")

    def enters_call(self, thread: int) -> bool:
        """Whether the stop at a system call is that before it."""
        info = ctypes.create_string_buffer(128)
        self._ask(_SYSCALL_INFO, thread, len(info), info)
        return info.raw[0] == 1

    def resume(self, thread: int, *, calls: bool, signal_number: int = 0) -> None:
        """Let the thread run, until its next system call if ``calls``; deliver the signal if there is one."""
        late = self._late.get(thread)
        if not signal_number and late:
            signal_number = late.pop(0)
        libc.ptrace(_SYSCALL if calls else _CONT, thread, None, signal_number)

    def interrupt(self, thread: int) -> None:
        """The running thread will stop with EVENT_STOP."""
        libc.ptrace(_INTERRUPT, thread, None, None)

    def wait(self, deadline: float | None) -> Stop | None:
        """The next stop of any thread; None at ``deadline`` (of the monotonic clock). Raises ChildProcessError when all is
        over."""
        spins = 0
        while True:
            thread, status = os.waitpid(-self.pid, _WALL | os.WNOHANG)
            if thread:
                return _stop(thread, status)
            if deadline is not None and time.monotonic() >= deadline:
                return None
            spins += 1
            if spins > _SPINS:
                time.sleep(_PAUSE)

    def step(self, thread: int) -> Stop:
        """One instruction of the thread (one iteration of a repeated string instruction), and its stop: SIGTRAP after it, or
        SIGSEGV instead of it. Other signals that come meanwhile are delivered when the thread is resumed."""
        while True:
            self._ask(_STEP, thread, None, None)
            stop = self.wait_for(thread)
            if stop.ended or (not stop.event and stop.signal in (signal.SIGTRAP, signal.SIGSEGV)):
                return stop
            if not stop.event:
                self._late.setdefault(thread, []).append(stop.signal)

    def wait_for(self, thread: int) -> Stop:
        """The next stop of this thread, which comes soon."""
        return _stop(*os.waitpid(thread, _WALL))

    def system_call(self, thread: int, at: int, number: int, *arguments: int) -> int:
        """Have the stopped thread make a system call by the instruction at ``at``; the registers are the caller's to set
        again. Returns what it returned, negative for an error."""
        registers = self.registers(thread)
        registers.rip, registers.rax, registers.orig_rax = at, number, _NONE
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments, strict=False):
            setattr(registers, name, value)
        self.set_registers(thread, registers)
        stop = self.step(thread)
        if stop.ended or stop.signal != signal.SIGTRAP:
            raise SnapshotError("the watched program did not obey", stop.ended or f"signal {stop.signal}")
        result = int(self.registers(thread).rax)
        return result - (1 << 64) if result >> 63 else result

    def unpark(self, state: ParkedState, registers: Registers) -> None:
        """Stop the thread that the agent parked and put it where the program was, as if it had never been parked."""
        self.interrupt(state.thread)
        stop = self.wait_for(state.thread)
        if stop.ended:
            raise SnapshotError("the parked program is gone", stop.ended)
        own = self.registers(state.thread)
        for name, value in zip(GPR_NAMES, registers.gpr, strict=True):
            setattr(own, name, value)
        own.rip, own.eflags, own.orig_rax = registers.rip, registers.rflags, _NONE
        self.set_registers(state.thread, own)
        self._set_vectors(state)
        mask = ctypes.c_uint64(state.signals)
        self._ask(_SETSIGMASK, state.thread, 8, ctypes.byref(mask))

    def _set_vectors(self, state: ParkedState) -> None:
        buffer = ctypes.create_string_buffer(16384)
        vector = _Vector(ctypes.cast(buffer, ctypes.c_void_p), len(buffer))
        self._ask(_GETREGSET, state.thread, _NT_X86_XSTATE, ctypes.byref(vector))
        kernel, size = buffer.raw, min(vector.length, len(state.vectors))
        data = bytearray(kernel[: vector.length])
        data[:size] = state.vectors[:size]
        data[_XSAVE_KEPT] = kernel[_XSAVE_KEPT]
        bits = [int.from_bytes(source[_XSAVE_BITS : _XSAVE_BITS + 8], "little") for source in (state.vectors, kernel)]
        present = bits[0] & state.components | bits[1] & ~state.components
        data[_XSAVE_BITS : _XSAVE_BITS + 8] = present.to_bytes(8, "little")
        data[_XSAVE_BITS + 8 : _XSAVE_BITS + 64] = kernel[_XSAVE_BITS + 8 : _XSAVE_BITS + 64]
        ctypes.memmove(buffer, bytes(data), len(data))
        self._ask(_SETREGSET, state.thread, _NT_X86_XSTATE, ctypes.byref(vector))

    def _ask(self, request: int, thread: int, address: object, data: object) -> None:
        if libc.ptrace(request, thread, address, data) < 0:
            error = os.strerror(ctypes.get_errno())
            raise SnapshotError("the watched program is out of reach", f"ptrace {request:#x}: {error}")


def _stop(thread: int, status: int) -> Stop:
    if os.WIFSTOPPED(status):
        return Stop(thread, os.WSTOPSIG(status), status >> 16)
    if os.WIFSIGNALED(status):
        return Stop(thread, ended=f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    return Stop(thread, ended=f"exit status {os.WEXITSTATUS(status)}")
