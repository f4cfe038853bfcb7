"""Whether a compiler vectorised the loops of a mock-up as it did those of another one, from its machine code.

A layout that gains nothing might gain with vector instructions that the compiler did not find in the mock-up. Where its
loops have those of the unchanged mock-up, that is excluded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from layout_advise.errors import BinaryError, NotLiftedError
from layout_advise.mockup.run.code_placement import inner_loops
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary

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


def packed_counts(mockup: Path, kernel: str) -> tuple[int, ...]:
    """How many instructions of packed arithmetic each innermost loop has, descending; those without are left out."""
    return _packed_counts(mockup, kernel, mockup.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def packed_in(region: Region) -> int:
    """How many instructions of packed arithmetic the innermost loops of ``region`` and its callees have, all together; 0
    where they cannot be told."""
    return sum(sum(_counts(function)) for function in functions_of(region))


@lru_cache(maxsize=256)
def _packed_counts(mockup: Path, kernel: str, changed: int) -> tuple[int, ...]:
    try:
        return _counts(ElfBinary.open_module(mockup).region(kernel, 0))
    except BinaryError:
        return ()


def _counts(region: Region) -> tuple[int, ...]:
    try:
        loops = inner_loops(region, {})
    except NotLiftedError:
        return ()
    counts = (sum(n for name, n in loop.mnemonics.items() if _ARITHMETIC.fullmatch(name)) for loop, _ in loops)
    return tuple(sorted(filter(None, counts), reverse=True))
