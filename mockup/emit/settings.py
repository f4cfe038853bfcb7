"""How one mock-up is written: what its caller decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.layoutalgebra.derive.structure import Candidate

Variant = Literal["plain", "restrict", "lanes", "simd"]
"""``restrict`` promises the compiler that the new buffers' fields do not overlap, ``simd`` also that the iterations of the
loops marked so are independent (:func:`layout_advise.mockup.rewrite.reroll.reroll` marks them). ``lanes`` promises what
``restrict`` does, and has a loop over a block's elements inside of what they share, in plain C."""


@dataclass(frozen=True, slots=True)
class EmitSettings:
    """How one mock-up is written; the defaults are the plain mock-up of the road."""

    variant: Variant = "plain"
    check: bool = False
    """Every reference is recorded, and every new place compared with the map (slow)."""
    wrong: bool | Literal["writes", "values"] = False
    """Elements are read at wrong places, in bounds, or written there where nothing is read or ``"writes"`` is given;
    ``"values"``: all bits of what is read are others. Such a mock-up must fail the comparison."""
    offset: int = 0
    """Bytes from the start of a page to the new buffers, a multiple of 64."""
    varying: frozenset[int] = frozenset()
    """The general registers of which the mock-up must not take the traced value for granted."""
    vector_bytes: int = 16
    """Width of the vector registers that the compiler's flags allow: of loops around others whose iterations are
    independent, ``simd`` runs as many side by side as fill one."""
    vectors: bool = True
    """Whether what was packed instructions may be written as vector statements."""
    blocks: Candidate | None = None
    """Loops are cut into blocks as for this candidate."""
    clang: bool = False
    """Whether clang is going to compile it."""
    put: bool = False
    """Whether it is to tell where its layout has what was at an old address."""
    ends: bool = False
    """A check build that ends its process at the first access whose place is not that of the map, those included that the
    layout leaves where they are; it records nothing."""

    reread: bool = False
    """What the hotspot never writes is read where it is used, as a source does that has no variables of its own for it
    (:mod:`layout_advise.mockup.remap.reread_fields`)."""

    @property
    def turned(self) -> bool:
        """Returns whether iterations are to run side by side."""
        return self.variant in ("simd", "lanes")

    @property
    def compared(self) -> bool:
        """Returns whether it is a build for the comparison only: checked, or wrong on purpose."""
        return self.check or bool(self.wrong)
