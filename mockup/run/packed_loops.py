"""Whether a compiler vectorised the loops of a mock-up as it did those of another one, from its machine code.

A layout that gains nothing might gain with vector instructions that the compiler did not find in the mock-up. Where its
loops have those of the unchanged mock-up, that is excluded, and where the original itself has none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from layout_advise.errors import BinaryError, NotLiftedError
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.run.code_placement import inner_loops
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Trace

_WORD = 8

_ARITHMETIC = re.compile(
    r"v?(add|sub|mul|div|sqrt|rsqrt|rcp|min|max|addsub|hadd|hsub|cmp\w*|f(n)?m(add|sub|addsub|subadd)\d+)p[sd]"
    r"|v?p(add|sub|mul|madd|min|max|avg|abs|sad|cmp)\w+"
    r"|v?cvt\w+p[sdhi]\w*"
)
"""Arithmetic on several elements; shuffles, moves and logic are also made of what is done one by one."""


def keeps_vectors(one: Path, other: Path, kernel: str) -> bool:
    """Tells whether the function ``kernel`` of ``one`` has, for each innermost loop with packed arithmetic of ``other``, one
    with as much of it. False where ``other`` has none, or one of them cannot be read."""
    mine, theirs = packed_counts(one, kernel), packed_counts(other, kernel)
    return bool(theirs) and len(mine) >= len(theirs) and all(a >= b for a, b in zip(mine, theirs, strict=False))


def is_scalar(code: Region, trace: Trace) -> bool:
    """Tells whether the original does all one by one: it and what is lifted with it have no packed arithmetic anywhere, and
    no traced access takes more than eight bytes. False where the code cannot be read."""
    wide = any(reference.bytes > _WORD for reference in trace.references)
    try:
        return not wide and not any(_has_packed(one) for one in (code, *code.callees))
    except NotLiftedError:
        return False


def _has_packed(code: Region) -> bool:
    cfg = build_cfg(code, strict=False, indirect_calls=True)
    return any(_ARITHMETIC.fullmatch(insn.mnemonic) for block in cfg.blocks.values() for insn in block.insns)


def packed_counts(mockup: Path, kernel: str) -> tuple[int, ...]:
    """How many instructions of packed arithmetic each innermost loop has, descending; those without are left out."""
    return _packed_counts(mockup, kernel, mockup.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _packed_counts(mockup: Path, kernel: str, changed: int) -> tuple[int, ...]:
    try:
        loops = inner_loops(ElfBinary.open_module(mockup).region(kernel, 0), {})
    except (BinaryError, NotLiftedError):
        return ()
    counts = (sum(n for name, n in loop.mnemonics.items() if _ARITHMETIC.fullmatch(name)) for loop, _ in loops)
    return tuple(sorted(filter(None, counts), reverse=True))
