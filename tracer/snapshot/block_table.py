"""The agent's table of heap blocks, as it writes it: the slots, then the stacks of the allocations that have one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.tracer.trace.trace import Allocation

FRAMES = 16
"""Return addresses of one stack at most (``LA_FRAMES`` in agent.h)."""

_ORDER_BITS = 40
_ROW = 4


def read_blocks(path: Path, slots: int) -> tuple[Allocation, ...]:
    """The live blocks in the file, ascending by address; its first part are ``slots`` slots, some of them free."""
    words = np.fromfile(path, dtype="<u8")
    stacks = [_stack(row) for row in words[_ROW * slots :].reshape(-1, FRAMES)]
    return blocks_of(words[: _ROW * slots].reshape(-1, _ROW), stacks)


def _stack(row: NDArray[np.uint64]) -> tuple[int, ...]:
    return tuple(pc for pc in row.tolist() if pc)


def blocks_of(table: NDArray[np.uint64], stacks: list[tuple[int, ...]]) -> tuple[Allocation, ...]:
    """The used rows of the table; a row's order and its number in ``stacks`` (0: it has none) share a word."""
    used = table[table[:, 0] != 0]
    rows = used[np.argsort(used[:, 0])].tolist()
    mask = (1 << _ORDER_BITS) - 1
    return tuple(
        Allocation(address, size, order & mask, site, stacks[order >> _ORDER_BITS] if order >> _ORDER_BITS else ())
        for address, size, order, site in rows
    )
