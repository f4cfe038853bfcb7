"""Traces made up for the tests of their file."""

from __future__ import annotations

from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.trace.trace import (
    Allocation,
    Mapping,
    Reference,
    Registers,
    Trace,
)


def example(streams: tuple[object, ...]) -> Trace:
    return Trace(
        symbol="hot",
        call=3,
        backend="clone",
        references=tuple(Reference(n, 0x401000 + 4 * n, n % 2, "both", 32) for n in range(len(streams))),
        streams=streams,  # type: ignore[arg-type]
        accesses=77,
        truncated=True,
        registers=Registers(
            tuple(range((1 << 64) - 16, 1 << 64)), 0x401000, 0x246, 0x1F80, 0x7F00, (b"\0" * 63 + b"\xff",) * 32
        ),
        mappings=(Mapping(0x400000, 0x500000, "r-xp", 4096, "/tmp/äpp with blank"),),
        allocations=tuple(Allocation(0x10000 + 64 * n, 48, n, 0x401234) for n in range(500)),
    )


def endless() -> Trace:
    return example(tuple(fold([n * (n + k) % 1009 * 8 for n in range(50)]) for k in range(64)))
