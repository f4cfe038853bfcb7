"""The variants of a hotspot that are built and timed, as values: which layout, which promise, which form, at which place."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

Promise = Literal["plain", "restrict", "lanes", "simd"]
"""What the source says beyond the layout: nothing; arrays that do not overlap; also a loop over each block's elements inside
of the others; also loops whose iterations are independent, in vector types."""
Form = Literal[
    "",
    "again",
    "scalar",
    "unrolled",
    "blocks",
    "placed",
    "reindexed",
    "replay",
    "wrong",
    "wrong-writes",
    "wrong-values",
    "machine",
    "machine-twice",
    "reread",
]

PLACEMENTS = 3
"""How many further builds of a variant have their code at other places (``docs/decisions/0037``). In the last two, loads
come in another order where there is one (``docs/decisions/0051``)."""


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """One build of the hotspot, used as a key. ``layout`` is ``original`` (the program's machine code), ``identity`` (the
    mock-up of the unchanged layout) or a candidate's id; ``placement`` 0 is the build's own place, others are numbered from
    1; ``converted``: timed with the conversion to its layout and back around every call; ``reached``: of an unchanged layout
    the structures (ids) that are reached as other layouts are, where not all are that any candidate reaches so."""

    layout: str
    promise: Promise = "plain"
    form: Form = ""
    placement: int = 0
    converted: bool = False
    reached: tuple[str, ...] = ()

    def __str__(self) -> str:
        promise = "" if self.promise == "plain" else f"-{self.promise}"
        form = f"-{self.form}" if self.form else ""
        place = f"@{self.placement}" if self.placement else ""
        reached = f"-{'-'.join(self.reached)}" if self.reached else ""
        return f"{self.layout}{promise}{form}{reached}{place}{'+conversion' if self.converted else ''}"

    @property
    def is_candidate(self) -> bool:
        """Whether it has another layout than the program."""
        return self.layout not in (ORIGINAL.layout, IDENTITY.layout)

    @property
    def is_reindexed(self) -> bool:
        """Whether it is the unchanged layout reached as other layouts are, of all structures or some."""
        return self.form == "reindexed"

    @property
    def is_contender(self) -> bool:
        """Whether it is a candidate's build that can be advised: vectorised, at its own place."""
        return self.is_candidate and not self.form and not self.placement

    @property
    def own(self) -> Variant:
        """The build at its own place."""
        return replace(self, placement=0)

    @property
    def elsewhere(self) -> tuple[Variant, ...]:
        """The builds with their code at other places."""
        return tuple(replace(self, placement=k) for k in range(1, PLACEMENTS + 1))

    @property
    def reordered(self) -> Variant:
        """The first build with its loads in another order."""
        return self.elsewhere[1]

    @property
    def with_conversion(self) -> Variant:
        """The same with the conversion around every call."""
        return replace(self, converted=True)

    @property
    def reread(self) -> Variant:
        """The plain build that reads what is never written where it is used (``docs/decisions/0132``)."""
        return Variant(self.layout, form="reread")

    @property
    def scalar(self) -> Variant:
        """The layout without vector instructions: what it gains alone."""
        return Variant(self.layout, form="scalar")


ORIGINAL = Variant("original")
SHADOW = Variant("original", form="again")
"""The original once more: what it differs from itself is the noise."""
IDENTITY = Variant("identity")
SCALAR = IDENTITY.scalar
"""The identity without vector instructions that the compiler finds by itself: what losing them costs."""
IDENTITY_SIMD = Variant("identity", "simd")
"""The identity rerolled, and told which loops' iterations are independent: what SIMD gains with the layout unchanged."""
IDENTITY_RESTRICT = Variant("identity", "restrict")
"""The identity whose arrays are promised not to overlap: what `restrict` gains with the layout unchanged."""
IDENTITY_UNROLLED = Variant("identity", form="unrolled")
"""The identity from the loops as the original's compiler unrolled them, where the other identity is rerolled."""
IDENTITY_BLOCKS = Variant("identity", form="blocks")
"""The identity with its loops cut into blocks of elements as the best candidate's: what that gains with the layout
unchanged (``docs/decisions/0039``)."""
PLACED = Variant("identity", form="placed")
"""The identity with its hot loop where the original has it (:mod:`layout_advise.mockup.run.code_placement`)."""
IDENTITY_REINDEXED = Variant("identity", form="reindexed")
"""The unchanged layout in a buffer of its own, reached as other layouts are: where these test addresses, and make indices of
pointers, so does it (``docs/decisions/0067``)."""


MACHINE_CODE = Variant("identity", form="machine")
"""The original's machine code at other places, its layout unchanged: what it gains by its place alone."""


def machine_code(layout: str) -> Variant:
    """The original's machine code on a candidate's layout: only its addresses are re-indexed (``docs/decisions/0115``)."""
    return Variant(layout, form="machine")


def machine_code_twice(layout: str) -> Variant:
    """The same with all its work on addresses done twice."""
    return Variant(layout, form="machine-twice")


def machine_code_moved(structures: Collection[str]) -> Variant:
    """The original's machine code on the unchanged layout of these structures, in memory of their own: with its addresses
    re-indexed as another layout's are."""
    return replace(MACHINE_CODE, reached=tuple(sorted(structures)))


def reindexed_for(structures: Collection[str]) -> Variant:
    """The unchanged layout of which just these structures are reached as other layouts are."""
    return replace(IDENTITY_REINDEXED, reached=tuple(sorted(structures)))


REPLAY = Variant("identity", form="replay")
"""The loads and stores of the hotspot in its own layout, without the computation."""

WRITTEN = (SCALAR, IDENTITY_BLOCKS, IDENTITY_SIMD, IDENTITY_RESTRICT)
"""Builds of the unchanged layout that a user can have, too: by a flag, a promise, or a loop written so."""
FORMS_OF_IDENTITY = (IDENTITY, IDENTITY_UNROLLED, IDENTITY_RESTRICT, IDENTITY_SIMD)
OTHER_PLACES = tuple(place for form in FORMS_OF_IDENTITY for place in form.elsewhere)
CONTROLS = (
    IDENTITY,
    PLACED,
    SCALAR,
    IDENTITY_RESTRICT,
    IDENTITY_SIMD,
    IDENTITY_UNROLLED,
    IDENTITY_BLOCKS,
    IDENTITY_REINDEXED,
    *OTHER_PLACES,
)
"""What is timed besides candidates; never dropped, no layout of its own."""
