"""The trace of one call of a hotspot, as data. Its file is in :mod:`layout_advise.tracer.trace.trace_file`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.layoutalgebra.sets.nests import Node, Stream

_RSP, _RDI = 4, 7
_MORE = (6, 2, 1, 8, 9)


OTHERS = "other threads ran during the call; their accesses are not in the trace"
"""The note for a trace whose :attr:`Trace.others` holds."""


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
    """A live heap block: ``order`` counts allocations from 0; ``site`` is the run-time return address of the call.

    ``stack`` are the return addresses from ``site`` on outwards, at most 16. Only the agent takes it, for blocks
    of 64 KiB or more and for the first 64 smaller ones of each site; where code has no unwind tables it ends there.
    """

    address: int
    bytes: int
    order: int
    site: int
    stack: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of the team of a parallel region, by its number in it (``omp_get_thread_num``). ``data`` is the first
    argument of the region's body, ``more`` are those in the next registers (rsi rdx rcx r8 r9) where it has more; ``rsp``
    points at its return address, ``stack`` is the lowest address of the stack; ``fs_base`` is that of the thread control
    block, which ends the stacks of all threads but the main one. ``top``, if not 0, ends what the runtime made for this
    thread alone above the return address: arguments on the stack, the thread's number."""

    number: int
    data: int
    rsp: int
    fs_base: int
    stack: int
    more: tuple[int, ...] = ()
    top: int = 0

    @property
    def end(self) -> int:
        """The first address above the frames that the thread had in the region."""
        return max(self.rsp + 8, self.top)

    def owns(self, address: int) -> bool:
        """Returns whether the address lies in the frames that the thread had in the region."""
        return self.stack <= address < self.end


@dataclass(frozen=True, slots=True)
class InlinedCall:
    """``function`` was inlined where ``file``:``line`` calls it; ``file`` as the compiler recorded it."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The source line of the instruction at ``pc``: ``function`` is the one whose machine code it is, ``inlined``
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
    """How often a field is read and written in one loop (``None``: outside all loops) of the hotspot; in a parallel region
    by one ``thread``."""

    loop: int | None
    reads: int
    writes: int
    thread: int | None = None


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


Life = Literal["whole", "freed", "born"]
"""A heap block in the window of the traced call: there all the time, freed in it (or moved), or allocated in it."""


@dataclass(frozen=True, slots=True)
class TracedObject:
    """Memory that the call touches: ``bytes`` bytes at ``base``, touched from ``low`` to ``high`` (both included).

    Of a heap block ``site`` is the allocating call in the source, ``stack`` the calls that led to it, innermost first, where
    they are known (``pc`` is the return address); ``order`` is its number among all allocations, ``life`` what becomes of
    it in the call where that was watched. ``references`` are ids of the trace's; ``accesses`` is ``None`` where
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
    stack: tuple[SourcePlace, ...] = ()


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
    """The accesses of one call of the hotspot, or of a batch of ``calls`` of them, the first of which is ``call`` (from 1).

    ``streams[i]`` belongs to ``references[i]``; ``None`` where the reference was never executed. Addresses are those of
    the parked process, and so of every snapshot of it. ``truncated`` tells that something was cut; ``limits`` says what and
    why, a line each. ``places`` (by pc), ``loops``, ``objects`` and ``control`` are there for reading the trace without the
    program; they are empty where nobody looked them up. ``allocations`` are the heap blocks at the entry; where the call's
    own were ``watched``, ``born`` are those that it left behind, and ``freed`` the orders of those that it freed. Where the
    trace was taken in another process than the parked one, new blocks lie beyond all memory, or in a gap.
    ``untaken`` are the addresses at which pieces of code begin that the call did not run, ``called`` those of its indirect
    calls that it made, each with the functions that they called (none where they are too many), where the backend tells.
    ``others``: threads that are not in the trace ran during the call.
    ``threads`` is empty unless the hotspot is the body of a parallel region; then ``registers`` are those of the call that
    starts it, and ``team_control`` has the order in which each of them ran the code, instead of ``control``. In which order
    two threads ran theirs is not known.
    """

    symbol: str
    call: int
    backend: str
    references: tuple[Reference, ...]
    streams: tuple[Stream | None, ...]
    accesses: int
    truncated: bool
    registers: Registers
    mappings: tuple[Mapping, ...]
    allocations: tuple[Allocation, ...]
    limits: tuple[str, ...] = ()
    places: tuple[SourcePlace, ...] = ()
    loops: tuple[CodeLoop, ...] = ()
    objects: tuple[TracedObject, ...] = ()
    control: Control | None = None
    watched: bool = False
    born: tuple[Allocation, ...] = ()
    freed: tuple[int, ...] = ()
    threads: tuple[Thread, ...] = ()
    calls: int = 1
    others: bool = False
    team_control: tuple[Control, ...] = ()
    untaken: tuple[int, ...] = ()
    called: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def of_thread(self, thread: Thread) -> Trace:
        """One thread of the team as the trace of a call by itself: its references are numbered from 0."""
        control = next((c for t, c in zip(self.threads, self.team_control, strict=False) if t == thread), None)
        mine = [(r, s) for r, s in zip(self.references, self.streams, strict=True) if r.thread == thread.number]
        gpr = list(self.registers.gpr)
        gpr[_RSP], gpr[_RDI] = thread.rsp, thread.data
        for register, value in zip(_MORE, thread.more, strict=False):
            gpr[register] = value
        return replace(
            self,
            references=tuple(replace(r, id=n) for n, (r, _) in enumerate(mine)),
            streams=tuple(s for _, s in mine),
            accesses=sum(s.count for _, s in mine if s is not None),
            registers=replace(self.registers, gpr=tuple(gpr), fs_base=thread.fs_base),
            threads=(thread,),
            control=_from_zero(control) if control is not None else None,
            team_control=(),
        )


def _from_zero(control: Control) -> Control:
    start = control.pieces[0][0] if control.pieces else 0
    return replace(control, pieces=tuple((first - start, last - start) for first, last in control.pieces))
