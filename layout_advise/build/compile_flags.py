"""Which flags a mock-up gets besides those of the program: what its compiler would not have done with the source is off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from layout_advise.build.recipes import Recipe
from layout_advise.mockup.emit import Emitted
from layout_advise.mockup.emit.packs.fmaddsub import brings_together, elements_whole
from layout_advise.mockup.run.build import MERGED

SCALAR_FLAGS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")
ONLY_THESE_GCC = ("-fno-tree-slp-vectorize",)
ONLY_THESE_CLANG = ("-fno-slp-vectorize",)
"""What the original's compiler put side by side is written so already; what it left is no vector in the original either.
So it is where it put nothing side by side, and nothing comes to lie so: clang found pairs in lifted ``kmeans`` that it had
left in the source, and the unchanged layout ran 1.13 times as fast as the original."""
MOST_CHECKED = 10
"""So many pairs of arrays gcc checks for overlaps at run time, and no more, to vectorise a loop."""
MORE_CHECKS = ("--param=vect-max-version-for-alias-checks=100",)
"""A lifted loop has more pointers than the source it stands for (one for each row of a stencil): with the usual limit gcc
gave a layout up for lost that it vectorises in hand-written code (2.5x). Where the source would have too many, it stays; not
where they are promised not to overlap: gcc forgets the promise where it loads under a mask."""
KEEP_GCC = ("-fno-tree-loop-vectorize",)
KEEP_CLANG = ("-fno-vectorize",)
"""What several iterations are made into; what one does side by side may still be put into vectors."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiler and flags; ``short``: for a hotspot whose loop is a short one."""

    executable: str
    flags: tuple[str, ...]
    short: bool = False


def own_alignment(compiler: Compiled) -> tuple[str, ...]:
    """Flags that align loops as the compiler does it by itself. How well a processor predicts branches on data changes with
    their addresses, also relative to each other: ``scan`` took 1.36 times as long with its loops at multiples of 16 or 32,
    wherever these were, as at the odd multiple of 8 that gcc gives it."""
    return ("-falign-loops=16",) if "clang" in Path(compiler.executable).name else ("-falign-loops=0",)


def flags_of(recipe: Recipe, compiler: Compiled, made: Emitted) -> tuple[str, ...]:
    """What a mock-up is compiled with besides the program's own flags."""
    if not recipe.vectorised:
        return SCALAR_FLAGS
    clang = "clang" in Path(compiler.executable).name
    flags: tuple[str, ...] = MERGED if compiler.short and not made.wide and not clang else ()
    if (recipe.candidate is None or recipe.variant != "plain" or made.overlaps <= MOST_CHECKED) and not clang:
        flags += MORE_CHECKS
    if (made.packs and elements_whole(recipe.candidate)) or (made.unpacked and not brings_together(recipe.candidate)):
        flags += ONLY_THESE_CLANG if clang else ONLY_THESE_GCC
    if recipe.kept:
        flags += KEEP_CLANG if clang else KEEP_GCC
    return flags
