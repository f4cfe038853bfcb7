"""A clone that runs in a program under ptrace, without the agent."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import ProgramError, TraceError
from layout_advise.tracer.process.ptrace import INT3, NO_SYSTEM_CALL, UserRegisters, signed
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.process.stopped_program import CloneImage

_MMAP = 9
_ANONYMOUS, _FIXED_NOREPLACE = 0x22, 0x100000
_TRAP_AT = 0x7C0  # an int3 in the clone's header page, for the return address


def map_memory(program: PtracedProgram, address: int, size: int) -> int:
    """mmap of private memory (read, write, execute) by an injected system call; ``address`` 0: anywhere."""
    flags = _ANONYMOUS | (_FIXED_NOREPLACE if address else 0)
    given = {"rdi": address, "rsi": size, "rdx": 7, "r10": flags, "r8": (1 << 64) - 1, "r9": 0}
    result = signed(program.execute(b"\x0f\x05", rax=_MMAP, **given).rax)
    if result < 0:
        raise TraceError(f"no memory at {address:#x} in the traced program", os.strerror(-result))
    return result


def run_clone(program: PtracedProgram, image: CloneImage, capacity: int) -> tuple[NDArray[np.uint64], bool, UserRegisters]:
    """Runs the clone once from the present state, which must be the hotspot's entry.

    Returns the raw records, whether the buffer (``capacity`` records) became full, and the registers at the return.
    """
    registers = program.registers()
    map_memory(program, image.address, -(-len(image.code) // 4096) * 4096)
    buffer = map_memory(program, 0, max(8 * capacity, 4096))
    program.write(image.address, image.code)
    header = np.array([buffer, buffer + 8 * capacity, 0], dtype=np.uint64)
    program.write(image.address, header.tobytes())
    program.write(image.address + _TRAP_AT, INT3)
    program.write(registers.rsp, (image.address + _TRAP_AT).to_bytes(8, "little"))
    registers.rip, registers.orig_rax = image.entry, NO_SYSTEM_CALL
    program.set_registers(registers)
    program.resume()
    after = program.registers()
    if after.rip != image.address + _TRAP_AT + 1:
        raise ProgramError("the clone did not return", f"stopped at {after.rip:#x}")
    header = np.frombuffer(program.read(image.address, 24), dtype=np.uint64)
    records = np.frombuffer(program.read(buffer, int(header[0]) - buffer), dtype=np.uint64)
    return records, bool(header[2]), after
