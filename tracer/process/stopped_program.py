"""A stopped instance of the program at the entry of its hotspot: parked, forked from one that is, or restored.

Everything downstream works on this protocol and does not know which of the three it has. All methods raise
:class:`layout_advise.errors.SnapshotError` when the process died, hung (time-out) or answered with an error; the message
holds the signal where there is one. ``close`` kills the process and is idempotent; instances are context managers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self

from layout_advise.tracer.trace.trace import Allocation, Mapping, Reference, Registers


@dataclass(frozen=True, slots=True)
class CloneImage:
    """An instrumented copy of the hotspot, ready to be mapped (RWX) at ``address`` and entered at ``entry``.

    The image starts with a header of three 64-bit words that the agent fills before and reads after the run:
    ``next`` (where the next 8-byte record goes), ``end`` (first byte after the record buffer), ``full`` (1 once the buffer
    was full and the plain copy went on). A record is ``address | reference_id << 48``.
    """

    address: int
    code: bytes
    entry: int
    references: tuple[Reference, ...]
    marks: tuple[int, ...] = ()
    """Where the pieces of code begin that leave a mark when they run, in the order of their marks."""
    called: tuple[int, ...] = ()
    """The addresses of the indirect calls that leave what they call, in the order of their words."""


@dataclass(frozen=True, slots=True)
class TeamMember:
    """The outcome of one thread of a team with its clone. ``entered`` is False where the region had fewer threads.
    ``arguments`` are those of the region's body in registers: rdi rsi rdx rcx r8 r9, or fewer where the runtime hands over
    fewer."""

    entered: bool
    records: int
    truncated: bool
    rsp: int
    fs_base: int
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes ``start`` .. ``end`` of the program's memory."""

    start: int
    end: int


POISON = 0xDB
"""The byte that memory is overwritten with which a mock-up must not use."""


@dataclass(frozen=True, slots=True)
class Strided:
    """``bytes`` at ``start``, and again after each ``stride`` up to ``end``: a field of all elements."""

    start: int
    end: int
    stride: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed call. ``faults`` are minor page faults during the call (validity flag); ``canary`` are the ticks that a
    fixed loop of additions took, the slower of one right before and one right after, and ``memory`` those of reading what
    is in no cache (0: not known)."""

    wall_ns: float
    cpu_ns: float
    tsc: int
    faults: int
    canary: int = 0
    memory: int = 0
    between_ns: int = 0
    """Nanoseconds since the end of the call timed before, in the running program; 0: not known."""


@dataclass(frozen=True, slots=True)
class Calm:
    """Before timed calls, wait for at most ``patience_ns`` in all until the canary takes at most ``ticks``
    (``docs/decisions/0022``) and that of the memory ``memory`` (0: any); with 0 ``ticks`` there is no waiting. After
    ``enough`` calls with such canaries a block ends (0: it has all its calls). ``look``: the memory's is taken at all."""

    ticks: int = 0
    patience_ns: int = 0
    enough: int = 0
    memory: int = 0
    look: bool = False


AT_ONCE = Calm()
Clock = Literal["thread-cpu", "wall"]
Mode = Literal["steady", "cold", "fresh", "apart"]
"""The state that a timed call finds: the caches and the processor's memory of branches as the same call left them before;
flushed caches; branches that are not known (``docs/decisions/0052``). Or, of a batch, its calls one by one: each begins when
the one before it has ended, and what is around them does not count (``docs/decisions/0125``)."""
MODES: tuple[Mode, ...] = ("steady", "cold", "fresh", "apart")
"""By the agent's numbers."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Registers when the hotspot returned (rax, xmm0 and so on), and the check counters of a check build.

    Of a batch, ``returned`` holds rax, rdx, xmm0 and xmm1 after each call, and ``registers`` mean nothing."""

    registers: Registers
    records: int = 0
    mismatches: int = 0
    first_mismatch: tuple[int, int, int] | None = None  # site, old, new
    remapped: int = 0
    returned: tuple[bytes, ...] = ()


class StoppedProgram(Protocol):
    """See the module's text."""

    @property
    def pid(self) -> int:
        """Process id as seen from here."""
        ...

    @property
    def others_ran(self) -> bool:
        """Returns whether threads other than the one that made it ran during the last :meth:`trace`."""
        ...

    def registers(self) -> Registers:
        """The registers at the hotspot's entry."""
        ...

    def mappings(self) -> tuple[Mapping, ...]:
        """/proc/PID/maps now."""
        ...

    def allocations(self) -> tuple[Allocation, ...]:
        """The heap blocks alive at the entry, ascending by address."""
        ...

    def live_blocks(self) -> tuple[Allocation, ...]:
        """The heap blocks alive now: after :meth:`trace`, those at the end of the call."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """Memory of the process."""
        ...

    def fork(self) -> StoppedProgram:
        """A copy-on-write copy, stopped at the same point."""
        ...

    def close_forks(self) -> None:
        """Kill what was forked from it, whatever that is doing."""
        ...

    def trace(self, image: CloneImage, records: Path, capacity: int) -> tuple[int, bool]:
        """Run the clone once; raw records go to the file ``records`` (tmpfs). Returns (records, truncated)."""
        ...

    def load(self, shared_object: Path) -> int:
        """dlopen a mock-up; returns its variant number (from 1; 0 is the original)."""
        ...

    def run(
        self,
        variant: int,
        *,
        forbidden: Sequence[Range | Strided] = (),
        records: tuple[Path, int] | None = None,
        poison: int = POISON,
    ) -> RunResult:
        """For comparing: copy in, make ``forbidden`` inaccessible, run once, make it accessible, copy out.

        Partial pages at the edges of ``forbidden``, and fields between others, cannot be protected: their bytes that belong
        to it are overwritten by the byte ``poison`` during the run and put back before copy-out. ``records`` (file, number)
        collects a check build's records. Meant for a fork that is thrown away afterwards.
        """
        ...

    def prepare(
        self, variant: int, written: Sequence[Range], original: Sequence[Range] = (), *, like_original: bool = False
    ) -> int:
        """For timing: allocate and fill the variant's buffers, run it once over saved copies of ``written`` (and of its own
        buffers), note which 64-byte lines changed, and put them back. Returns the number of lines.
        ``original`` are the ranges to flush for cold calls. ``like_original``: the variant has the original's layout and is
        known to change the same bytes; the original (variant 0) must be prepared, and its lines are taken."""
        ...

    def put_back(self, variant: int) -> float:
        """Put back what the program writes between the calls of a batch, without the calls: ns that it takes, 0 where
        there is nothing. After it the memory of a prepared variant is as before; else it stays changed."""
        ...

    def block(
        self,
        variant: int,
        calls: int,
        mode: Mode = "steady",
        *,
        converted: bool = False,
        calm: Calm = AT_ONCE,
        settle: tuple[int, Clock] | None = None,
    ) -> tuple[tuple[Sample, ...], Calm]:
        """``calls`` timed calls, or enough that are calm, and what is left of the patience of ``calm``. With ``settle`` (not
        with ``cold``) so many calls at most, until they take the same time by that clock (``docs/decisions/0033``).

        Before each the changed lines are put back by ordinary stores and the save copy is flushed; with ``cold`` all ranges
        of the variant are flushed from the caches too, with ``fresh`` the processor is made to forget the branches it has
        learnt. ``converted``: each call converts the data to the variant's layout before and back after it, all of which is
        timed; the original must be prepared too."""
        ...

    def convert(self, variant: int, times: int = 3) -> tuple[tuple[float, float], ...]:
        """Thread-CPU ns of converting a prepared mock-up's data to its own buffers and back, of each of ``times`` runs."""
        ...

    def close(self) -> None:
        """Kill it and everything forked from it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Snapshots(Protocol):
    """A source of fresh copies of the parked program. ``close`` ends all of them, not the parked program."""

    kind: Literal["criu", "fork"]

    def restore(self) -> StoppedProgram:
        """A fresh copy, stopped at the hotspot's entry."""
        ...

    def close(self) -> None:
        """Idempotent."""
        ...
