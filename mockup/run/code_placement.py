"""Where the hot loop lies in memory: the identity built once more with it where the original has it.

Mock-ups have their loops aligned. A loop of a few instructions runs up to a quarter slower where it straddles a cache line:
``daxpy`` at -O3 takes 40.0 µs a call as compiled and 34.7 µs with -falign-loops=32. The aligned identity is then off by what
the place costs, which says nothing about the lifting; placed like the original it shows whether the code is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import BinaryError, NotLiftedError
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Trace

LINE = 64
ALIGNED = 32
"""Where mock-ups have their loops (``build.PLACED``)."""
SHORT = 256
"""Longer loops are fetched line after line wherever they lie."""
ALIKE = 0.6
NATURAL = ("-falign-functions=64", "-falign-loops=1", "-falign-jumps=1", "-falign-labels=1")


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """``start`` is its lowest address, ``size`` from there to the end of its last instruction, ``mnemonics`` what it is made
    of (without the operands, which register allocation decides)."""

    start: int
    size: int
    mnemonics: Counter[str]

    def likeness(self, other: InnerLoop) -> float:
        """Share of instructions in common, 0 to 1."""
        union = (self.mnemonics | other.mnemonics).total()
        return (self.mnemonics & other.mnemonics).total() / union if union else 0.0


def hot_loop(code: Region, trace: Trace, longest: int = SHORT) -> InnerLoop | None:
    """The innermost loop of ``code`` with the most traced accesses; None where there is none or it has more than
    ``longest`` bytes."""
    executed: Counter[int] = Counter()
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        executed[reference.pc] += stream.count if stream is not None else 0
    found = inner_loops(code, executed)
    hottest = max(found, key=lambda pair: pair[1], default=None)
    if hottest is None or not hottest[1] or hottest[0].size > longest:
        return None
    return hottest[0]


def likeness(loop: InnerLoop, mockup: Path, kernel: str) -> float:
    """How much the most similar loop of the function ``kernel`` of ``mockup`` has in common with ``loop``."""
    try:
        code = ElfBinary.open_module(mockup).region(kernel, 0)
        return max((loop.likeness(other) for other, _ in inner_loops(code, {})), default=0.0)
    except (BinaryError, NotLiftedError):
        return 0.0


def same_loops(one: Path, other: Path, kernel: str) -> bool:
    """Whether the innermost loops of the function ``kernel`` of both are made of the same instructions, wherever they lie
    and in whatever order these have their operands. What one of them takes longer is then not the code's."""
    found = []
    for path in (one, other):
        try:
            loops = inner_loops(ElfBinary.open_module(path).region(kernel, 0), {})
        except (BinaryError, NotLiftedError):
            return False
        found.append(Counter(frozenset(loop.mnemonics.items()) for loop, _ in loops))
    return found[0] == found[1] and bool(found[0])


def needs_placing(loop: InnerLoop) -> bool:
    """Whether the original's loop lies otherwise than a mock-up's."""
    return loop.start % ALIGNED != 0


def shift_to(loop: InnerLoop, mockup: Path, kernel: str) -> int | None:
    """By how many bytes the function ``kernel`` of ``mockup`` (built ``NATURAL``) must grow at its entry for its loop to lie
    as ``loop`` does, modulo a cache line; None where it has no such loop."""
    try:
        code = ElfBinary.open_module(mockup).region(kernel, 0)
        alike = [other for other, _ in inner_loops(code, {}) if loop.likeness(other) >= ALIKE]
    except (BinaryError, NotLiftedError):
        return None
    if not alike:
        return None
    return (loop.start - max(alike, key=loop.likeness).start) % LINE


def grown(shift: int) -> tuple[str, ...]:
    """Flags that put ``shift`` bytes before a function's code."""
    return (*NATURAL, f"-fpatchable-function-entry={shift}")


def inner_loops(code: Region, executed: Mapping[int, int]) -> list[tuple[InnerLoop, int]]:
    """The innermost loops and how many traced accesses each has."""
    cfg = build_cfg(code, strict=False, indirect_calls=True)  # what has two entries is lifted all the same (reducible.py)
    parents = {loop.parent for loop in cfg.loops}
    found = []
    for loop in cfg.loops:
        if loop.head in parents:
            continue
        insns = [insn for start in loop.blocks for insn in cfg.blocks[start].insns]
        start = min(insn.address for insn in insns)
        size = max(insn.end for insn in insns) - start
        accesses = sum(executed.get(insn.address, 0) for insn in insns)
        found.append((InnerLoop(start, size, Counter(insn.mnemonic for insn in insns)), accesses))
    return found
