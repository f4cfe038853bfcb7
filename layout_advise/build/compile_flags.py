"""The flags of a mock-up besides those of the program: what its compiler would not have done with the source is off."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.build.recipes import Recipe
from layout_advise.mockup.emit import Emitted
from layout_advise.mockup.emit.packs.fmaddsub import brings_together, elements_whole
from layout_advise.mockup.run.compilers import CompilerFamily, family

SCALAR_FLAGS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")
MOST_CHECKED = 10
"""So many pairs of arrays gcc checks for overlaps at run time, and no more, to vectorise a loop. Where the source would have
too many, it stays; not where they are promised not to overlap: gcc forgets the promise where it loads under a mask."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiler and flags; ``short``: for a hotspot whose loop is a short one. ``last`` flags come after all others."""

    executable: str
    flags: tuple[str, ...]
    short: bool = False
    last: tuple[str, ...] = ()

    @property
    def family(self) -> CompilerFamily:
        """The family's flags."""
        return family(self.executable)

    @property
    def all_flags(self) -> tuple[str, ...]:
        """In the order in which the compiler gets them."""
        return (*self.flags, *self.last)

    def with_flags(self, extra: tuple[str, ...]) -> Compiled:
        """The same with further flags."""
        return replace(self, flags=(*self.flags, *extra))


def flags_of(recipe: Recipe, compiler: Compiled, made: Emitted) -> tuple[str, ...]:
    """Returns the flags of a mock-up besides the program's own."""
    if not recipe.vectorised:
        return SCALAR_FLAGS
    of = compiler.family
    flags = of.merged if compiler.short and not made.wide else ()
    if recipe.candidate is None or recipe.variant.promise != "plain" or made.overlaps <= MOST_CHECKED:
        flags += of.more_checks
    if (made.packs and elements_whole(recipe.candidate)) or (made.unpacked and not brings_together(recipe.candidate)):
        flags += of.only_these
    return flags + of.kept if recipe.kept else flags
