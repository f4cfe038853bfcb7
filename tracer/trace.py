"""The trace of one call of a hotspot, as data. Its file is in :mod:`layout_advise.tracer.trace_file`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.layoutalgebra.nests import Node, Stream


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
class InlinedCall:
    """``function`` was inlined where ``file``:``line`` calls it; ``file`` as the compiler recorded it."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where the instruction at ``pc`` stands in the source: ``function`` is the one whose machine code it is, ``inlined``
    what was inlined into it there, innermost first. ``loop`` numbers the innermost loop around it (:attr:`Trace.loops`)."""

    pc: int
    function: str | None
    file: str | None
    line: int | None
    inlined: tuple[InlinedCall, ...] = ()
    loop: int | None = None


@dataclass(frozen=True, slots=True)
class CodeLoop:
    """A natural loop of the machine code, outermost first in :attr:`Trace.loops`; ``head`` is its first instruction,
    ``parent`` the number of the loop around it, ``file``:``line`` that of ``head``."""

    head: int
    parent: int | None
    depth: int
    function: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class LoopUse:
    """How often a field is read and written in one loop (``None``: outside all loops) of the hotspot."""

    loop: int | None
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class TracedField:
    """``bytes`` bytes at ``offset`` of an element. ``reads`` and ``writes`` count accesses, ``uses`` tells in which loop."""

    name: str
    offset: int
    bytes: int
    type: str | None
    reads: int
    writes: int
    uses: tuple[LoopUse, ...] = ()


Life = Literal["whole", "freed"]
"""A heap block in the window of the traced call: there all the time, or freed in it."""


@dataclass(frozen=True, slots=True)
class TracedObject:
    """Memory that the call touches: ``bytes`` bytes at ``base``, touched from ``low`` to ``high`` (both included).

    Of a heap block ``site`` is the allocating call in the source, ``order`` its number among all allocations, ``life`` what
    becomes of it in the call where that was watched. ``references`` are ids of the trace's; ``accesses`` is ``None`` where
    theirs cannot be told apart from those to other objects.
    """

    kind: Literal["heap", "global", "stack", "mapped"]
    name: str
    type: str | None
    base: int
    bytes: int
    low: int
    high: int
    accesses: int | None
    references: tuple[int, ...]
    order: int | None = None
    site: str | None = None
    life: Life | None = None
    layout: str | None = None
    element_bytes: int | None = None
    fields: tuple[TracedField, ...] = ()


@dataclass(frozen=True, slots=True)
class Control:
    """The order in which the hotspot's pieces of code ran. A piece is a run of references whose ids follow each other; every
    point of ``nodes`` stands for one execution of piece ``address.const``, every loop for repetitions of its body.

    ``nodes`` is ``None`` where the order does not fold, with the ``reason``. ``pieces[k]`` is the first and the last id.
    """

    nodes: tuple[Node, ...] | None
    pieces: tuple[tuple[int, int], ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What one call of the hotspot touched.

    ``streams[i]`` belongs to ``references[i]``; ``None`` where the reference was never executed. Addresses are those of
    the parked process, and so of every snapshot of it. ``truncated`` tells that something was cut; ``limits`` says what and
    why, a line each. ``places`` (by pc), ``loops``, ``objects`` and ``control`` are there for reading the trace without the
    program; they are empty where nobody looked them up. ``allocations`` are the heap blocks at the entry; where the call's
    own were ``watched``, ``born`` are those that it left behind, and ``freed`` the orders of those that it freed.
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
    limits: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    loops: tuple[CodeLoop, ...] = ()
    objects: tuple[TracedObject, ...] = ()
    control: Control | None = None
    watched: bool = False
    born: tuple[Allocation, ...] = ()
    freed: tuple[int, ...] = ()
