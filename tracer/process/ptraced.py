"""A program under ptrace: the plain machinery behind the single-step oracle and the tests of the clone.

Nothing is preloaded and address-space randomisation is off, so two runs of a program have the same addresses.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import ProgramError, TraceError
from layout_advise.tracer.process.stopped_program import CloneImage
from layout_advise.tracer.process.tracee import Tracee, UserRegisters, libc
from layout_advise.tracer.process.xstate import HIGH_16, OPMASK, ZMM_HIGH, Components, avx2_vector, avx512_vector, opmask

_GETREGSET = 0x4204
_NT_X86_XSTATE = 0x202
_XSTATE_LEAF = 13
_MMAP = 9
_TRAP_AT = 0x800  # an int3 in the clone's header page, for the return address


class _VectorState(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class PtracedProgram(Tracee):
    """A stopped child process; all methods raise :class:`ProgramError` when it ended or its time is over instead."""

    _places: Components | None = None

    def vector(self, number: int) -> bytes:
        """The 32 bytes of ymm ``number``."""
        return avx2_vector(self._xstate(), number)

    def wide_vector(self, number: int) -> bytes:
        """The 64 bytes of zmm ``number``."""
        return avx512_vector(self._xstate(), number, self._components())

    def mask(self, number: int) -> int:
        """Mask register k ``number``."""
        return opmask(self._xstate(), number, self._components())

    def _xstate(self) -> bytes:
        buffer = ctypes.create_string_buffer(16384)
        vector = _VectorState(ctypes.cast(buffer, ctypes.c_void_p), len(buffer))
        libc.ptrace(_GETREGSET, self.thread, _NT_X86_XSTATE, ctypes.byref(vector))
        return buffer.raw[: vector.length]

    def _components(self) -> Components:
        if self._places is None:
            self._places = Components(*(self.cpuid(_XSTATE_LEAF, part)[1] for part in (OPMASK, ZMM_HIGH, HIGH_16)))
        return self._places

    def cpuid(self, leaf: int, part: int) -> tuple[int, int, int, int]:
        """eax, ebx, ecx and edx of an injected ``cpuid``."""
        found = self._execute(b"\x0f\xa2", rax=leaf, rcx=part)
        return found.rax, found.rbx, found.rcx, found.rdx

    def load_base(self, path: Path) -> int:
        """Where the file at ``path`` is mapped."""
        starts = [m.start for m in self.mappings() if m.path == str(path) and m.offset == 0]
        if not starts:
            raise ProgramError(f"{path} is not mapped in the traced program")
        return min(starts)

    def run_to(self, address: int, call: int = 1) -> None:
        """Runs until ``address`` is about to be executed for the ``call``-th time from now, by whichever thread."""
        for remaining in range(call - 1, -1, -1):
            self.plant(address)
            self.resume()
            registers = self.registers()
            if registers.rip != address + 1:
                raise ProgramError("the traced program stopped", f"SIGTRAP at {registers.rip:#x}")
            registers.rip -= 1
            self.set_registers(registers)
            self.remove(address)
            while remaining and not self.step():
                pass

    def map_memory(self, address: int, size: int) -> int:
        """mmap of private memory (read, write, execute) by an injected system call; ``address`` 0: anywhere."""
        flags = 0x22 | (0x100000 if address else 0)
        given = {"rdi": address, "rsi": size, "rdx": 7, "r10": flags, "r8": (1 << 64) - 1, "r9": 0}
        result = int(self._execute(b"\x0f\x05", rax=_MMAP, **given).rax)
        if result >= 1 << 63:
            raise TraceError(f"no memory at {address:#x} in the traced program", os.strerror((1 << 64) - result))
        return result

    def _execute(self, code: bytes, **given: int) -> UserRegisters:
        """The registers after one instruction with these ones; the program does not notice."""
        before = self.registers()
        saved = self.read(before.rip, len(code))
        registers = UserRegisters.from_buffer_copy(before)
        for name, value in given.items():
            setattr(registers, name, value)
        registers.orig_rax = (1 << 64) - 1
        self.write(before.rip, code)
        self.set_registers(registers)
        while not self.step():
            pass
        after = self.registers()
        self.write(before.rip, saved)
        self.set_registers(before)
        return after

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
