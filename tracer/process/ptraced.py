"""A program started under ptrace, as the single-step oracle needs it: run to a call, read its vector registers.

Nothing is preloaded and address-space randomisation is off, so two runs of a program have the same addresses.
"""

from __future__ import annotations

from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.process.ptrace import NO_SYSTEM_CALL, UserRegisters
from layout_advise.tracer.process.tracee import Tracee
from layout_advise.tracer.process.xstate import HIGH_16, OPMASK, ZMM_HIGH, Components, avx2_vector, avx512_vector, opmask

_XSTATE_LEAF = 13


class PtracedProgram(Tracee):
    """A stopped child process; all methods raise :class:`ProgramError` when it ended or its time is over instead."""

    _places: Components | None = None

    def vector(self, number: int) -> bytes:
        """The 32 bytes of ymm ``number``."""
        return avx2_vector(self.vector_state(self.thread), number)

    def wide_vector(self, number: int) -> bytes:
        """The 64 bytes of zmm ``number``."""
        return avx512_vector(self.vector_state(self.thread), number, self._components())

    def mask(self, number: int) -> int:
        """Mask register k ``number``."""
        return opmask(self.vector_state(self.thread), number, self._components())

    def _components(self) -> Components:
        if self._places is None:
            self._places = Components(*(self.cpuid(_XSTATE_LEAF, part)[1] for part in (OPMASK, ZMM_HIGH, HIGH_16)))
        return self._places

    def cpuid(self, leaf: int, part: int) -> tuple[int, int, int, int]:
        """eax, ebx, ecx and edx of an injected ``cpuid``."""
        found = self.execute(b"\x0f\xa2", rax=leaf, rcx=part)
        return found.rax, found.rbx, found.rcx, found.rdx

    def load_base(self, path: Path) -> int:
        """The address at which the file at ``path`` is mapped."""
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

    def execute(self, code: bytes, **given: int) -> UserRegisters:
        """The registers after one instruction with these ones; the program does not notice."""
        before = self.registers()
        saved = self.read(before.rip, len(code))
        registers = UserRegisters.from_buffer_copy(before)
        for name, value in given.items():
            setattr(registers, name, value)
        registers.orig_rax = NO_SYSTEM_CALL
        self.write(before.rip, code)
        self.set_registers(registers)
        while not self.step():
            pass
        after = self.registers()
        self.write(before.rip, saved)
        self.set_registers(before)
        return after
