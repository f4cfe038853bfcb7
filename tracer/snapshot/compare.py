"""Did two runs from the same state leave the same bytes?

Compared is the memory that belongs to the program: its heap blocks, its globals, anonymous mappings of its own, the live
stack. Allocator metadata, TLS and TCB, the data of loader and system libraries change for reasons of their own (rseq, a
``dlopen``); their differences are counted as ``other`` and do not decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.pages.process_memory import ProcessMemory
from layout_advise.tracer.trace.trace import Mapping

CHUNK = 8 << 20
SHOWN = 16
_SYSTEM = (
    "ld-linux", "libc.so", "libc-", "libm.so", "libm-", "libpthread", "libdl", "librt", "libgomp", "libomp", "libiomp",
    "libstdc++", "libgcc_s", "libgfortran", "libquadmath",
)  # fmt: skip
_TCB_BYTES = 4096
_TLS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Comparison:
    """``differences`` are the first few (address, byte of a, byte of b); ``bytes_changed`` counts bytes that ``a`` changed
    since ``before``; ``other`` the differing bytes outside the program's own data by mapping; ``max_ulp`` the greatest
    distance of two differing 8-byte floats, None where all is equal."""

    equal: bool
    bytes_compared: int
    bytes_changed: int
    differences: tuple[tuple[int, int, int], ...]
    max_ulp: int | None = None
    other: dict[str, int] = field(default_factory=dict)


def subtract(ranges: list[tuple[int, int]], holes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of ascending ranges without the holes."""
    first, last = (ranges[0][0], ranges[-1][1]) if ranges else (0, 0)
    for low, high in holes:
        if high <= first or low >= last:  # by far the most, and there may be tens of thousands of ranges
            continue
        ranges = [
            piece
            for start, end in ranges
            for piece in ((start, min(end, low)), (max(start, high), end))
            if piece[0] < piece[1]
        ]
    return ranges


class _Plan:
    """The bytes that decide: per mapping a list of ranges, or the heap blocks within it."""

    def __init__(self, before: StoppedProgram, exclude: Sequence[Range]) -> None:
        blocks = before.allocations()
        table = np.array([(b.address, b.address + b.bytes) for b in blocks], dtype=np.uint64).reshape(-1, 2)
        self.starts, self.ends = table[:, 0].copy(), table[:, 1].copy()
        registers = before.registers()
        self.rsp, self.fs_base = registers.gpr[4], registers.fs_base
        own = before.own_ranges() if isinstance(before, AgentProcess) else ()
        tcb = (registers.fs_base - _TLS_BYTES, registers.fs_base + _TCB_BYTES)
        self.holes = [(r.start, r.end) for r in (*exclude, *own)]
        self.tcb = tcb

    def has_blocks(self, mapping: Mapping) -> bool:
        return bool(np.any((self.starts < mapping.end) & (self.ends > mapping.start)))

    def ranges(self, mapping: Mapping) -> list[tuple[int, int]]:
        """The deciding ranges of a mapping without heap blocks; empty: all of it is `other`."""
        if any(PurePath(mapping.path).name.startswith(name) for name in _SYSTEM):
            return []
        if mapping.start <= self.rsp < mapping.end:
            # a thread's stack ends with its TCB, in which the kernel writes the processor that it runs on (rseq)
            return subtract([(self.rsp, mapping.end)], [*self.holes, (self.fs_base, self.tcb[1])])
        # libc's own variables share the TLS mapping with the program's: they cannot be told apart here.
        if not mapping.path and mapping.start < self.tcb[1] and self.tcb[0] < mapping.end:
            return subtract([(mapping.start, mapping.end)], [*self.holes, self.tcb])
        return subtract([(mapping.start, mapping.end)], self.holes)

    def in_blocks(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """A mask of the addresses that lie in a heap block."""
        position = np.searchsorted(self.starts, addresses, side="right")
        hit = position > 0
        hit[hit] &= addresses[hit] < self.ends[position[hit] - 1]
        return hit

    def one_block(self, low: int, high: int) -> bool:
        """Returns whether a single heap block holds all of [low, high)."""
        at = int(np.searchsorted(self.starts, np.uint64(low), side="right")) - 1
        return at >= 0 and high <= int(self.ends[at])

    def block_bytes(self, low: int, high: int) -> int:
        """Bytes of heap blocks in [low, high)."""
        inside = (self.starts < high) & (self.ends > low)
        starts, ends = np.maximum(self.starts[inside], np.uint64(low)), np.minimum(self.ends[inside], np.uint64(high))
        return int((ends - starts).sum())


def unequal(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Offsets of differing bytes; words first, since nearly all are equal."""
    words = a.size // 8 * 8
    first, second = a[:words].view(np.uint64), b[:words].view(np.uint64)
    # by far the usual case is equality, and that is found four times as fast
    hit = np.empty(0, dtype=np.intp) if np.array_equal(first, second) else np.flatnonzero(first != second)
    near = (hit[:, None] * 8 + np.arange(8)).ravel()
    tail = np.arange(words, a.size)
    candidates = np.concatenate((near, tail))
    unequal: NDArray[np.intp] = candidates[a[candidates] != b[candidates]]
    return unequal


def _ulp(a: NDArray[np.uint8], b: NDArray[np.uint8], offsets: NDArray[np.intp]) -> int:
    """Greatest distance in units of the last place of the 8-byte floats that hold ``offsets``."""
    words = np.unique(offsets // 8)
    words = words[(words + 1) * 8 <= a.size]

    def ordered(data: NDArray[np.uint8]) -> NDArray[np.int64]:
        values = data[: data.size // 8 * 8].view(np.int64)[words]
        return np.where(values >= 0, values, -(values & 0x7FFFFFFFFFFFFFFF))

    one, other = ordered(a), ordered(b)
    # modulo 2**64 the difference is right also where it does not fit into 63 bits
    distance = np.maximum(one, other).astype(np.uint64) - np.minimum(one, other).astype(np.uint64)
    return int(distance.max(initial=0))


class _Tally:
    def __init__(self) -> None:
        self.compared = self.changed = self.unequal = 0
        self.first: list[tuple[int, int, int]] = []
        self.ulp = 0
        self.other: dict[str, int] = {}

    def result(self) -> Comparison:
        equal = self.unequal == 0
        return Comparison(
            equal, self.compared, self.changed, tuple(self.first), None if equal else self.ulp, dict(self.other)
        )  # fmt: skip


def _stretch(
    memory: ProcessMemory, plan: _Plan, mapping: Mapping, start: int, end: int, own: bool, tally: _Tally, changes: bool
) -> None:
    """Compare [start, end) in chunks; what none of the processes has touched is equal and is not looked at."""
    tally.compared += end - start if own else plan.block_bytes(start, end)
    for first, last in memory.touched(start, end):
        for low in range(first, last, CHUNK):
            _chunk(memory, plan, mapping, low, min(low + CHUNK, last), own, tally, changes)


def _chunk(
    memory: ProcessMemory, plan: _Plan, mapping: Mapping, low: int, high: int, own: bool, tally: _Tally, changes: bool
) -> None:
    """Compare [low, high). ``own``: the whole of it is the program's; else only what lies in heap blocks is."""
    own = own or plan.one_block(low, high)
    for start, end in memory.apart(low, high):
        _piece(memory, plan, mapping, start, end, own, tally, changes)


def _piece(
    memory: ProcessMemory, plan: _Plan, mapping: Mapping, low: int, high: int, own: bool, tally: _Tally, changes: bool
) -> None:
    first = memory.read(1, low, high - low)
    if changes:
        tally.changed += _changed(memory.read(0, low, high - low), first, plan, low, own)
    if memory.same(1, 2):
        return
    second = memory.read(2, low, high - low)
    different = unequal(first, second)
    if not own and different.size:
        inside = plan.in_blocks(np.uint64(low) + different.astype(np.uint64))
        name = mapping.path or "anonymous"
        if not inside.all():
            tally.other[name] = tally.other.get(name, 0) + int((~inside).sum())
        different = different[inside]
    tally.unequal += different.size
    if different.size:
        tally.ulp = max(tally.ulp, _ulp(first, second, different))
        room = different[: SHOWN - len(tally.first)].tolist()
        tally.first += [(low + k, int(first[k]), int(second[k])) for k in room]


def _changed(before: NDArray[np.uint8], after: NDArray[np.uint8], plan: _Plan, low: int, own: bool) -> int:
    """How many of the program's bytes differ; counting is several times as fast as finding out which."""
    if np.array_equal(before, after):
        return 0
    if own:
        return int(np.count_nonzero(before != after))
    return int(plan.in_blocks(np.uint64(low) + unequal(before, after).astype(np.uint64)).sum())


def compare(
    before: StoppedProgram, a: StoppedProgram, b: StoppedProgram, exclude: Sequence[Range] = (), *, changes: bool = True
) -> Comparison:
    """Compare the program's data in ``a`` and ``b``, both descended from ``before`` (which gives what existed then).

    ``exclude`` are ranges to leave out; without ``changes`` the bytes that ``a`` changed are not counted, which is faster.
    Raises :class:`SnapshotError` when one of the three is gone.
    """
    plan = _Plan(before, exclude)
    tally = _Tally()
    memory = ProcessMemory((before, a, b))
    try:
        # Mock-ups' contexts and buffers lie in mappings that came later (and that may merge with older ones).
        born = before.mappings_at_park() if isinstance(before, AgentProcess) else before.mappings()
        for mapping in born:
            if not mapping.permissions.startswith("rw") or mapping.path.startswith(("/dev/", "[v")):
                continue
            by_block = plan.has_blocks(mapping)
            pieces = [] if by_block else plan.ranges(mapping)
            others = subtract([(mapping.start, mapping.end)], [*pieces, *plan.holes])
            if by_block:
                pieces, others = [], subtract([(mapping.start, mapping.end)], plan.holes)
            for own, ranges in ((True, pieces), (False, others)):
                for start, end in ranges:
                    _stretch(memory, plan, mapping, start, end, own, tally, changes)
    finally:
        memory.close()
    return tally.result()
