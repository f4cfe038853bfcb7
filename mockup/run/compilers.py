"""What differs between the compilers of mock-ups: one value for each family, the only place that tells them apart."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TIME_LIMIT = 60.0
"""Seconds that a compiler may take over a mock-up."""

# Merged branches (a & b != 0) hide from the loop passes that a trip count is positive; the original's branches are kept.
# What the original's compiler did to the loop nest is in the lifted code already; done anew it would be a gain of the
# mock-up's own (two passes over the data merged into one: 1.6x).
_GCC_ONLY = (
    "--param=logical-op-non-short-circuit=0",
    "-fno-loop-unroll-and-jam",
    "-fno-loop-interchange",
)
IN_ORDER = ("-mllvm", "-hints-allow-reordering=false")
"""To clang a loop that is said to be independent is one whose sums it may reorder. It did so with what a fleet of vehicles
used in all: 4.1 times as fast with clang's own order, and the same bytes, as these were whole numbers."""
UNTOLD = ("-DLA_UNTOLD",)
"""For a clang that does not know the switch: nothing is said of loops."""


@cache
def _in_order(compiler: str) -> tuple[str, ...]:
    argv = [compiler, *IN_ORDER, "-x", "c", "-c", os.devnull, "-o", os.devnull]
    try:
        known = subprocess.run(argv, capture_output=True, timeout=TIME_LIMIT, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        known = False
    return IN_ORDER if known else UNTOLD


@dataclass(frozen=True, slots=True)
class CompilerFamily:
    """Flags by what they do."""

    before: tuple[str, ...]
    """Given before the program's own flags, which may say otherwise. gcc: without it a large vector body spilt: 2.7x where
    4.1x was to be had."""
    exact: Callable[[str], tuple[str, ...]]
    """For a compiler of the family: what keeps its loops and sums as the lifted code has them."""
    merged: tuple[str, ...]
    """For short loops, as gcc does by itself. Where expressions are not put together again, it kept a value in a register
    for its second use (``particles`` as a structure of arrays: three loads an iteration) that of a source, whatever its
    order, is loaded twice: 4.2 times as fast as the original for 3.2."""
    own_alignment: tuple[str, ...]
    """Aligns loops as the compiler does it by itself. How well a processor predicts branches on data changes with their
    addresses, also relative to each other: ``scan`` took 1.36 times as long with its loops at multiples of 16 or 32,
    wherever these were, as at the odd multiple of 8 that gcc gives it."""
    more_checks: tuple[str, ...]
    """A lifted loop has more pointers than the source it stands for (one for each row of a stencil): with gcc's usual limit
    of checks for overlaps at run time a layout was given up for lost that is vectorised in hand-written code (2.5x)."""
    promised: tuple[str, ...]
    """For loops whose iterations are promised to be independent: as `#pragma omp simd` in a source, the promise has them put
    into vectors also where the compiler by itself leaves loops of unknown length (gcc at -O2). Sums stay in their order."""
    only_these: tuple[str, ...]
    """What the original's compiler put side by side is written so already; what it left is no vector in the original either.
    So it is where it put nothing side by side, and nothing comes to lie so: clang found pairs in lifted ``kmeans`` that it
    had left in the source, and the unchanged layout ran 1.13 times as fast as the original."""
    kept: tuple[str, ...]
    """Loops stay as they are: what one iteration does side by side may still be put into vectors."""
    unrelated: bool
    """Whether it makes more of promises about static arrays than of a source."""


GCC = CompilerFamily(
    before=("-fno-tree-ter",),
    exact=lambda compiler: _GCC_ONLY,
    merged=("-ftree-ter",),
    own_alignment=("-falign-loops=0",),
    more_checks=("--param=vect-max-version-for-alias-checks=100",),
    promised=("-ftree-loop-vectorize", "-fvect-cost-model=dynamic"),
    only_these=("-fno-tree-slp-vectorize",),
    kept=("-fno-tree-loop-vectorize",),
    unrelated=False,
)
CLANG = CompilerFamily(
    before=(),
    exact=_in_order,
    merged=(),
    own_alignment=("-falign-loops=16",),
    more_checks=(),
    promised=(),
    only_these=("-fno-slp-vectorize",),
    kept=("-fno-vectorize",),
    unrelated=True,
)


def family(compiler: str) -> CompilerFamily:
    """The family of a compiler, by the name of its executable."""
    return CLANG if "clang" in Path(compiler).name else GCC
