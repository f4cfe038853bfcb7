"""What the original, the mock-ups and their further builds are called where they are timed."""

from __future__ import annotations

ORIGINAL = "original"
SHADOW = "original'"
IDENTITY = "identity"
SCALAR = "identity-scalar"
"""The identity without vector instructions that the compiler finds by itself: what losing them costs."""

IDENTITY_SIMD = "identity-simd"
"""The identity rerolled, and told which loops' iterations are independent: what SIMD gains with the layout unchanged."""

IDENTITY_BLOCKS = "identity-blocks"
"""The identity with its loops cut into blocks of elements as the best candidate's: what that gains with the layout
unchanged (``docs/decisions/0039``)."""

IDENTITY_RESTRICT = "identity-restrict"
"""The identity whose arrays are promised not to overlap: what `restrict` gains with the layout unchanged."""

PLACED = "identity-placed"
"""The identity with its hot loop where the original has it (:mod:`layout_advise.mockup.run.code_placement`)."""
IDENTITY_LANES = "identity-lanes"
"""The identity from the loops as the original's compiler unrolled them, where the other identity is rerolled."""
LAYOUT_SCALAR = "layout-scalar"
"""The best candidate without vector instructions: what its layout gains alone."""


def elsewhere(name: str) -> tuple[str, ...]:
    """What the same build with its code at other places is called (``docs/decisions/0037``). That of a loop in which loads
    come in another order is what the last two are made of (``docs/decisions/0051``)."""
    return tuple(f"{name}@{k}" for k in (1, 2, 3))


def reordered(name: str) -> str:
    """What the mock-up with its loads in another order is called."""
    return elsewhere(name)[1]


def is_elsewhere(name: str) -> bool:
    """Whether that is a build with its code at another place."""
    return "@" in name


IDENTITY_MOVED = elsewhere(IDENTITY)
FORMS_OF_IDENTITY = (IDENTITY, IDENTITY_LANES, IDENTITY_RESTRICT, IDENTITY_SIMD)
OTHER_PLACES = tuple(place for form in FORMS_OF_IDENTITY for place in elsewhere(form))
CONTROLS = (IDENTITY, PLACED, SCALAR, IDENTITY_RESTRICT, IDENTITY_SIMD, IDENTITY_LANES, IDENTITY_BLOCKS, *OTHER_PLACES)
"""What is timed besides candidates; never dropped, no layout of its own."""


def converted(name: str) -> str:
    """Under which name the times of ``name`` with the conversion around every call are kept."""
    return f"{name}+conversion"
