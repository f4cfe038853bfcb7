"""A program under ptrace: the plain machinery behind the single-step oracle and the tests of the clone.

Nothing is preloaded and address-space randomisation is off, so two runs of a program have the same addresses.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping as Env
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import ProgramError, TraceError
from layout_advise.tracer.snapshot.protocol import CloneImage
from layout_advise.tracer.trace import Mapping

_TRACEME, _CONT, _STEP, _GETREGS, _SETREGS, _SETOPTIONS, _GETREGSET = 0, 7, 9, 12, 13, 0x4200, 0x4204
_EXITKILL = 0x100000
_NT_X86_XSTATE = 0x202
_NO_RANDOM = 0x0040000
_YMM_HIGH = 576  # of the standard XSAVE layout, which ptrace always uses; the xmm registers start at 160
_MMAP = 9
_TRAP_AT = 0x800  # an int3 in the clone's header page, for the return address

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


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class PtracedProgram:
    """A stopped child process; all methods raise :class:`ProgramError` when it ended or got a signal instead."""

    def __init__(self, command: Sequence[str], environment: Env[str, str] | None = None, stdin: Path | None = None) -> None:
        def prepare() -> None:
            libc.personality(_NO_RANDOM)
            libc.ptrace(_TRACEME, 0, None, None)

        with open(stdin or os.devnull, "rb") as source:
            self._process = subprocess.Popen(
                list(command),
                preexec_fn=prepare,
                stdin=source,
                stdout=subprocess.DEVNULL,
                env=dict(environment or {"LD_BIND_NOW": "1", "PATH": os.environ.get("PATH", "")}),
            )
        self.pid = self._process.pid
        self._wait()
        libc.ptrace(_SETOPTIONS, self.pid, None, _EXITKILL)
        self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Kills the program; may be called twice."""
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1
        self._process.kill()
        self._process.wait()

    def _wait(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        if not os.WIFSTOPPED(status):
            self._process.returncode = os.waitstatus_to_exitcode(status)
            raise ProgramError("the traced program ended", f"status {status:#x}")
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            name = signal.Signals(os.WSTOPSIG(status)).name
            raise ProgramError("the traced program stopped", f"{name} at {self.registers().rip:#x}")

    def registers(self) -> UserRegisters:
        """The general registers."""
        found = UserRegisters()
        libc.ptrace(_GETREGS, self.pid, None, ctypes.byref(found))
        return found

    def set_registers(self, registers: UserRegisters) -> None:
        """Sets the general registers."""
        libc.ptrace(_SETREGS, self.pid, None, ctypes.byref(registers))

    def vector(self, number: int) -> bytes:
        """The 32 bytes of ymm ``number``."""
        buffer = ctypes.create_string_buffer(16384)
        vector = _Vector(ctypes.cast(buffer, ctypes.c_void_p), len(buffer))
        libc.ptrace(_GETREGSET, self.pid, _NT_X86_XSTATE, ctypes.byref(vector))
        low, high = 160 + 16 * number, _YMM_HIGH + 16 * number
        return buffer.raw[low : low + 16] + buffer.raw[high : high + 16]

    def read(self, address: int, size: int) -> bytes:
        """Memory of the program."""
        return os.pread(self._memory, size, address)

    def write(self, address: int, data: bytes) -> None:
        """Writes memory of the program, read-only code too."""
        os.pwrite(self._memory, data, address)

    def step(self) -> None:
        """One instruction (one iteration of a repeated string instruction)."""
        libc.ptrace(_STEP, self.pid, None, None)
        self._wait()

    def resume(self) -> None:
        """Runs until a breakpoint."""
        libc.ptrace(_CONT, self.pid, None, None)
        self._wait()

    def mappings(self) -> tuple[Mapping, ...]:
        """/proc/PID/maps."""
        found = []
        for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            span, permissions, offset, _, _, *path = line.split(maxsplit=5)
            start, end = (int(part, 16) for part in span.split("-"))
            found.append(Mapping(start, end, permissions, int(offset, 16), path[0] if path else ""))
        return tuple(found)

    def load_base(self, path: Path) -> int:
        """Where the file at ``path`` is mapped."""
        starts = [m.start for m in self.mappings() if m.path == str(path) and m.offset == 0]
        if not starts:
            raise ProgramError(f"{path} is not mapped in the traced program")
        return min(starts)

    def run_to(self, address: int, call: int = 1) -> None:
        """Runs until ``address`` is about to be executed for the ``call``-th time from now."""
        saved = self.read(address, 1)
        for remaining in range(call - 1, -1, -1):
            self.write(address, b"\xcc")
            self.resume()
            registers = self.registers()
            registers.rip -= 1
            self.set_registers(registers)
            self.write(address, saved)
            if remaining:
                self.step()

    def map_memory(self, address: int, size: int) -> int:
        """mmap of private memory (read, write, execute) by an injected system call; ``address`` 0: anywhere."""
        before = self.registers()
        saved = self.read(before.rip, 2)
        registers = UserRegisters.from_buffer_copy(before)
        registers.rax, registers.rdi, registers.rsi, registers.rdx = _MMAP, address, size, 7
        registers.r10, registers.r8, registers.r9 = 0x22 | (0x100000 if address else 0), (1 << 64) - 1, 0
        registers.orig_rax = (1 << 64) - 1
        self.write(before.rip, b"\x0f\x05")
        self.set_registers(registers)
        self.step()
        result = int(self.registers().rax)
        self.write(before.rip, saved)
        self.set_registers(before)
        if result >= 1 << 63:
            raise TraceError(f"no memory at {address:#x} in the traced program", os.strerror((1 << 64) - result))
        return result

    def run_clone(self, image: CloneImage, capacity: int) -> tuple[NDArray[np.uint64], bool, UserRegisters]:
        """Runs the clone once from the present state, which must be the hotspot's entry.

        Returns the raw records, whether the buffer (``capacity`` records) became full, and the registers at the return.
        """
        registers = self.registers()
        self.map_memory(image.address, -(-len(image.code) // 4096) * 4096)
        buffer = self.map_memory(0, max(8 * capacity, 4096))
        self.write(image.address, image.code)
        header = np.array([buffer, buffer + 8 * capacity, 0], dtype=np.uint64)
        self.write(image.address, header.tobytes())
        self.write(image.address + _TRAP_AT, b"\xcc")
        self.write(registers.rsp, (image.address + _TRAP_AT).to_bytes(8, "little"))
        registers.rip, registers.orig_rax = image.entry, (1 << 64) - 1
        self.set_registers(registers)
        self.resume()
        after = self.registers()
        if after.rip != image.address + _TRAP_AT + 1:
            raise ProgramError("the clone did not return", f"stopped at {after.rip:#x}")
        header = np.frombuffer(self.read(image.address, 24), dtype=np.uint64)
        records = np.frombuffer(self.read(buffer, int(header[0]) - buffer), dtype=np.uint64)
        return records, bool(header[2]), after
