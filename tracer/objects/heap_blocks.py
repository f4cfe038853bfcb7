"""Finds the heap block of a trace that an address lies in: one that was there at the entry, else one that the call left
behind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout_advise.tracer.trace.trace import Allocation, Life, Trace


@dataclass(frozen=True, slots=True)
class BlockPiece:
    """``start`` .. ``end`` (exclusive) of ``block``: all of it, or what of a new block lies where no block was before."""

    start: int
    end: int
    block: Allocation
    life: Life | None


class HeapBlocks:
    """The heap blocks of a trace by address. Where a new block takes the place of one that was freed, the memory is the
    old one's: the trace does not tell which accesses came when."""

    def __init__(self, trace: Trace) -> None:
        self._freed = frozenset(trace.freed)
        self._watched = trace.watched
        self._blocks = sorted(trace.allocations, key=lambda a: a.address)
        self._starts = [a.address for a in self._blocks]
        self._born = sorted(_between(trace.born, self._blocks), key=lambda p: p.start)
        self._born_starts = [p.start for p in self._born]

    def at(self, address: int) -> BlockPiece | None:
        """The block around ``address``."""
        block = self.at_entry(address)
        if block is not None:
            life: Life | None = None if not self._watched else "freed" if block.order in self._freed else "whole"
            return BlockPiece(block.address, block.address + block.bytes, block, life)
        index = bisect_right(self._born_starts, address) - 1
        found = self._born[index] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def next_start(self, address: int) -> int | None:
        """Where the first block after ``address`` begins; None where there is none."""
        after = [
            starts[index]
            for starts in (self._starts, self._born_starts)
            if (index := bisect_right(starts, address)) < len(starts)
        ]
        return min(after, default=None)

    def last_end(self, address: int) -> int | None:
        """Returns the end of the last block before ``address``, in which none is; None where there is none."""
        index, later = bisect_right(self._starts, address) - 1, bisect_right(self._born_starts, address) - 1
        ends = [self._blocks[index].address + self._blocks[index].bytes] if index >= 0 else []
        return max([*ends, *([self._born[later].end] if later >= 0 else [])], default=None)

    def lie_in(self, start: int, end: int) -> bool:
        """Returns whether a block begins at ``start`` or later, and before ``end``."""
        found = self.next_start(start - 1)
        return found is not None and found < end

    def at_entry(self, address: int) -> Allocation | None:
        """The block around ``address`` when the call began."""
        index = bisect_right(self._starts, address) - 1
        found = self._blocks[index] if index >= 0 else None
        return found if found is not None and address < found.address + found.bytes else None


def _between(born: Sequence[Allocation], blocks: Sequence[Allocation]) -> Iterator[BlockPiece]:
    """The parts of the new blocks that lie in none of ``blocks``, which are sorted."""
    taken: list[tuple[int, int]] = []
    for block in blocks if born else ():
        end = block.address + block.bytes
        if taken and block.address <= taken[-1][1]:
            taken[-1] = taken[-1][0], max(end, taken[-1][1])
        else:
            taken.append((block.address, end))
    ends = [end for _, end in taken]
    for block in born:
        start, end = block.address, block.address + block.bytes
        while start < end:
            index = bisect_right(ends, start)
            begins, goes_on = taken[index] if index < len(taken) else (end, end)
            if start < begins:
                yield BlockPiece(start, min(begins, end), block, "born")
            start = goes_on
