"""The trace of one call of a hotspot, as data. (The file format stands below / in trace_file.py.)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.layoutalgebra.nests import Stream

_RSP, _RDI = 4, 7


@dataclass(frozen=True, slots=True)
class Reference:
    """One memory operand of one instruction.

    ``id`` numbers the references of a trace from 0 (it is the site number in the raw records); ``pc`` is the run-time
    address of the instruction, ``operand`` tells apart several memory operands of one instruction (string moves) or
    the lanes of a gather; ``bytes`` the size of one access. In a parallel region each ``thread`` of the team has references
    of its own; 0 where there is one thread only.
    """

    id: int
    pc: int
    operand: int
    kind: Literal["read", "write", "both"]
    bytes: int
    thread: int = 0


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
class Thread:
    """A thread of the team of a parallel region, by its number in it (``omp_get_thread_num``). ``data`` is the argument of
    the region's body, ``rsp`` points at its return address, ``stack`` is the lowest address of the stack; ``fs_base`` is
    that of the thread control block, which ends the stacks of all threads but the main one."""

    number: int
    data: int
    rsp: int
    fs_base: int
    stack: int

    def owns(self, address: int) -> bool:
        """Whether the address lies in the frames that the thread had in the region."""
        return self.stack <= address < self.rsp + 8


@dataclass(frozen=True, slots=True)
class Trace:
    """What one call of the hotspot touched.

    ``streams[i]`` belongs to ``references[i]``; ``None`` where the reference was never executed. Addresses are those of
    the parked process, and so of every snapshot of it. ``truncated`` tells that the record's cap was reached. ``threads``
    is empty unless the hotspot is the body of a parallel region; then ``registers`` are those of the call that starts the
    region.
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
    threads: tuple[Thread, ...] = ()

    def of_thread(self, thread: Thread) -> Trace:
        """What one thread of the team did, as the trace of a call by itself: its references are numbered from 0."""
        mine = [(r, s) for r, s in zip(self.references, self.streams, strict=True) if r.thread == thread.number]
        gpr = list(self.registers.gpr)
        gpr[_RSP], gpr[_RDI] = thread.rsp, thread.data
        return replace(
            self,
            references=tuple(replace(r, id=n) for n, (r, _) in enumerate(mine)),
            streams=tuple(s for _, s in mine),
            accesses=sum(s.count for _, s in mine if s is not None),
            registers=replace(self.registers, gpr=tuple(gpr), fs_base=thread.fs_base),
            threads=(thread,),
        )
