"""A small memory, and traces of lifted code interpreted on it."""

from __future__ import annotations

import numpy as np

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted, Val
from layout_advise.tracer.trace.trace import Trace
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.native import references_of, trace_of

MEMORY_BYTES, MEMORY_START = 512, 0x10000

COUNTER, POINTER = Val(1, "i64"), Val(2, "i64")


class SmallMemory:
    """MEMORY_BYTES bytes at MEMORY_START."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def read(self, address: int, size: int) -> bytes:
        assert 0 <= address - MEMORY_START <= MEMORY_BYTES - size
        return bytes(self.data[address - MEMORY_START : address - MEMORY_START + size])

    def write(self, address: int, data: bytes) -> None:
        assert 0 <= address - MEMORY_START <= MEMORY_BYTES - len(data)
        self.data[address - MEMORY_START : address - MEMORY_START + len(data)] = data


def interpreted(lifted: Lifted, locations: dict[Gpr | Lane, int], memory: SmallMemory) -> Trace:
    """Run it and make a trace of what it touched."""
    references = references_of(lifted)
    numbers = {(r.pc, r.operand): r.id for r in references}
    words: list[int] = []

    def watch(access: tuple[int, int, int, int]) -> None:
        pc, operand, part, address = access
        if part == 0:
            words.append(address & (1 << 48) - 1 | numbers[pc, operand] << 48)

    run_lifted(lifted, dict(locations), memory, watch=watch)
    return trace_of(lifted, np.array(words, np.uint64), references, lifted.symbol)
