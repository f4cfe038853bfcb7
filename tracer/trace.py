"""The trace of one call of a hotspot, as data. (The file format stands below / in trace_file.py.)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.layoutalgebra.nests import Stream


@dataclass(frozen=True, slots=True)
class Reference:
    """One memory operand of one instruction.

    ``id`` numbers the references of a trace from 0 (it is the site number in the raw records); ``pc`` is the run-time
    address of the instruction, ``operand`` tells apart several memory operands of one instruction (string moves) or
    the lanes of a gather; ``bytes`` the size of one access.
    """

    id: int
    pc: int
    operand: int
    kind: Literal["read", "write", "both"]
    bytes: int


@dataclass(frozen=True, slots=True)
class Registers:
    """The machine state at the entry of the hotspot.

    ``gpr`` in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15. ``vector`` holds 32 registers of 64 bytes.
    """

    gpr: tuple[int, ...]
    rip: int
    rflags: int
    mxcsr: int
    fs_base: int
    vector: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/PID/maps."""

    start: int
    end: int
    permissions: str
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """A live heap block: ``order`` counts allocations from 0; ``site`` is the run-time return address of the call."""

    address: int
    bytes: int
    order: int
    site: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What one call of the hotspot touched.

    ``streams[i]`` belongs to ``references[i]``; ``None`` where the reference was never executed. Addresses are those of
    the parked process, and so of every snapshot of it. ``truncated`` tells that the record's cap was reached.
    """

    symbol: str
    call: int
    backend: Literal["clone", "valgrind", "pin", "step"]
    references: tuple[Reference, ...]
    streams: tuple[Stream | None, ...]
    accesses: int
    truncated: bool
    registers: Registers
    mappings: tuple[Mapping, ...]
    allocations: tuple[Allocation, ...]
