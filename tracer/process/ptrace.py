"""The kernel's ptrace interface on x86-64: requests, register structs, stops, and what every tracer of a process shares."""

from __future__ import annotations

import ctypes
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Self

TRACEME, CONT, STEP, GETREGS, SETREGS, DETACH, SYSCALL = 0, 7, 9, 12, 13, 17, 24
SETOPTIONS, GETEVENTMSG, GETSIGINFO, GETREGSET, SETREGSET = 0x4200, 0x4201, 0x4202, 0x4204, 0x4205
SEIZE, INTERRUPT, SETSIGMASK, SYSCALL_INFO = 0x4206, 0x4207, 0x420B, 0x420E

OPTION_SYSGOOD, OPTION_FORK, OPTION_VFORK, OPTION_CLONE, OPTION_EXEC, OPTION_EXITKILL = 1, 2, 4, 8, 16, 0x100000
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC, EVENT_STOP = 1, 2, 3, 4, 128

WALL = 0x40000000
"""The option of waitpid with which threads are waited for too."""
NO_SYSTEM_CALL = (1 << 64) - 1
"""As ``orig_rax``: the thread does not stand in a system call that the kernel would start again."""
INT3, SYSCALL_CODE = b"\xcc", b"\x0f\x05"
CALL_ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")

_NT_X86_XSTATE = 0x202
_XSTATE_ROOM = 16384
_SPINS = 40  # polls before the first sleep: a step takes a few microseconds
_PAUSE = 2e-5

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


class _IoVector(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def signed(value: int) -> int:
    """A register's 64 bits as a signed number."""
    return value - (1 << 64) if value >> 63 else value


def next_stop(ids: Iterable[int], deadline: float | None, longest_pause: float) -> tuple[int, int] | None:
    """The thread of the next stop or end among ``ids`` (as for waitpid), and its wait status.

    ``None`` at ``deadline`` (of the monotonic clock). Between looks it sleeps for ``longest_pause`` seconds at most. The
    status is 0 for a thread that another thread's exec took away.
    """
    polls = 0
    while True:
        for wanted in ids:
            try:
                thread, status = os.waitpid(wanted, WALL | os.WNOHANG)
            except ChildProcessError:
                if wanted < 0:
                    raise
                return wanted, 0
            if thread:
                return thread, status
        if deadline is not None and time.monotonic() >= deadline:
            return None
        polls += 1
        if polls > _SPINS:
            time.sleep(min(_PAUSE * (polls - _SPINS), longest_pause))


class TracedProcess(ABC):
    """A process under ptrace. It is a context manager: leaving it kills the process.

    Memory can be read and written whatever its protection; registers are those of threads that are stopped.
    """

    def __init__(self) -> None:
        self.pid = -1
        self._memory = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Kills the process and waits for its threads; may be called twice."""

    @abstractmethod
    def _refused(self, request: int, why: str) -> None:
        """Called where the kernel refused a request that was asked for."""

    def read(self, address: int, size: int) -> bytes:
        """Memory of the process."""
        return os.pread(self._memory, size, address)

    def write(self, address: int, data: bytes) -> None:
        """Writes memory of the process, code too."""
        os.pwrite(self._memory, data, address)

    def registers_of(self, thread: int) -> UserRegisters:
        """The general registers of ``thread``."""
        found = UserRegisters()
        self._ask(GETREGS, thread, None, ctypes.byref(found))
        return found

    def set_registers_of(self, thread: int, registers: UserRegisters) -> None:
        """Sets the general registers of ``thread``."""
        self._ask(SETREGS, thread, None, ctypes.byref(registers))

    def vector_state(self, thread: int) -> bytes:
        """The XSAVE area of ``thread`` (:mod:`layout_advise.tracer.process.xstate`)."""
        buffer = ctypes.create_string_buffer(_XSTATE_ROOM)
        vector = _IoVector(ctypes.cast(buffer, ctypes.c_void_p), len(buffer))
        self._ask(GETREGSET, thread, _NT_X86_XSTATE, ctypes.byref(vector))
        return buffer.raw[: vector.length]

    def set_vector_state(self, thread: int, area: bytes) -> None:
        """Sets the XSAVE area of ``thread``."""
        buffer = ctypes.create_string_buffer(area, len(area))
        vector = _IoVector(ctypes.cast(buffer, ctypes.c_void_p), len(area))
        self._ask(SETREGSET, thread, _NT_X86_XSTATE, ctypes.byref(vector))

    def _open_memory(self) -> None:
        self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDWR)

    def _ask(self, request: int, thread: int, address: object = None, data: object = None) -> None:
        if libc.ptrace(request, thread, address, data) < 0:
            self._refused(request, os.strerror(ctypes.get_errno()))
