"""The flags of a mock-up besides those of the program: what its compiler would not have done with the source is off."""

from __future__ import annotations

from layout_advise.build.policy import BUILD
from layout_advise.mockup.emit import Emitted
from layout_advise.mockup.emit.packs.fmaddsub import brings_together, elements_whole
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Recipe

SCALAR_FLAGS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")


def flags_of(recipe: Recipe, compiler: Compiled, made: Emitted) -> tuple[str, ...]:
    """Returns the flags of a mock-up besides the program's own."""
    if not recipe.vectorised:
        return SCALAR_FLAGS
    of = compiler.family
    flags = of.merged if compiler.short and not made.wide else ()
    if recipe.candidate is None or recipe.variant.promise != "plain" or made.overlaps <= BUILD.most_checked:
        # where the source would have too many, the limit stays; not where they are promised not to overlap: gcc forgets the
        # promise where it loads under a mask
        flags += of.more_checks
    if recipe.variant.promise == "simd" and not any(
        "vect" in flag for flag in compiler.flags
    ):  # else as the program wants it
        flags += of.promised
    if (made.packs and elements_whole(recipe.candidate)) or (made.unpacked and not brings_together(recipe.candidate)):
        flags += of.only_these
    return flags + of.kept if recipe.kept else flags
