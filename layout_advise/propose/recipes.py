"""The mock-ups to make of a hotspot: the identity in its forms, candidates in their variants, one with a wrong map."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.explore.relayout import ALIGN, unchanged
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.ir.lifted import Item, Lifted, LiftedLoop
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.timing.variants import (
    IDENTITY,
    IDENTITY_REINDEXED,
    IDENTITY_RESTRICT,
    IDENTITY_SIMD,
    IDENTITY_UNROLLED,
    SCALAR,
    Form,
    Promise,
    Variant,
)
from layout_advise.observe.gather import tables_of
from layout_advise.tracer.trace.trace import Trace

LONGEST_BODY = 200
"""Statements of a loop body; with more, telling the compiler of independence gains nothing, and gcc 12 takes minutes."""


_WRONG: dict[Form, bool | Literal["writes", "values"]] = {"wrong": True, "wrong-writes": "writes", "wrong-values": "values"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One mock-up to make; ``candidate`` None is the identity."""

    variant: Variant
    candidate: Candidate | None = None
    checked: bool = True
    """Whether a check build is made too."""
    kept: bool = False
    """Whether the compiler is to leave the loops as they are: see :func:`~layout_advise.build.mockups.better_kept`."""
    offset: int = 0
    """Distance of the new buffers from the start of a page, a multiple of 64."""
    blocks: Candidate | None = None
    """Of an identity: its loops are cut into blocks of elements as for this candidate."""
    through: Candidate | None = None
    """Of an identity: the layouts that it has already, and that it reaches as another one is reached."""

    @property
    def relaid(self) -> Candidate | None:
        """The layouts in buffers of its own: those of the candidate, or unchanged ones."""
        return self.candidate or self.through

    @property
    def wrong(self) -> bool | Literal["writes", "values"]:
        """Tells whether the map is wrong on purpose, for reads and writes or for writes only, or the values read."""
        return _WRONG.get(self.variant.form, False)

    @property
    def vectorised(self) -> bool:
        """Tells whether the compiler may vectorise it."""
        return self.variant.form != "scalar"


@dataclass(frozen=True, slots=True)
class Code:
    """The lifted hotspot ``unrolled``, as its compiler left it, and ``elements``, with one element an iteration where that
    is shown to be the same. Other layouts are tried on the elements; the identity, which has to be like the original, is
    made of both, and the nearer one counts."""

    unrolled: Lifted
    elements: Lifted
    gathered: Mapping[frozenset[str], tuple[Lifted, Trace]] = field(default_factory=dict)
    """By ids of structures reached through pointers: the elements, and the trace, with these thought to lie together
    (``mockup/evidence/gather_objects.py``)."""
    rolled: Lifted | None = None
    """The elements with loops over their fields, which ``elements`` has written out; None where there are none."""

    def of(self, recipe: Recipe, trace: Trace, structures: Sequence[Structure]) -> tuple[Lifted, Trace]:
        """The code that a recipe is made of, and the trace that goes with it. Loops over fields stay loops where the layout
        allows it."""
        if recipe.variant == IDENTITY_UNROLLED:
            return self.unrolled, trace
        candidate = recipe.candidate or recipe.blocks
        if self.rolled is not None and candidate is not None and not tables_of(candidate):
            try:
                plan(self.rolled, candidate, bind(self.rolled, trace, structures))
            except RemapError:
                return self.elements, trace
            return self.rolled, trace
        return self.under(recipe.candidate, trace)

    def under(self, candidate: Candidate | None, trace: Trace) -> tuple[Lifted, Trace]:
        """The elements for the layout of a candidate."""
        through = tables_of(candidate)
        return self.gathered[through] if through else (self.elements, trace)

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The promises worth making of any layout: ``simd`` where there is a loop with independent iterations to tell of."""
        return ("plain", "restrict", "simd") if any(map(_independent, self.bodies)) else ("plain", "restrict")

    def promises_of(self, candidate: Candidate) -> tuple[Promise, ...]:
        """Those of one layout: besides, with the loop over a block's elements inside, where the elements lie in blocks and
        have loops of their own. Arrays that only begin elsewhere are held against the same code: one is enough."""
        if ALIGN in candidate.families:
            return ("plain",)
        turned = candidate.block is not None and any(map(_abreast, self.bodies))
        return (*self.promises, "lanes") if turned else self.promises

    @property
    def bodies(self) -> list[tuple[Item, ...]]:
        """The code that mock-ups in new layouts are made of."""
        return [self.elements.body, *(lifted.body for lifted, _ in self.gathered.values())]


def reindexed(
    structures: Sequence[Structure], names: Collection[str], variant: Variant = IDENTITY_REINDEXED, *, begins: bool = False
) -> Recipe:
    """The unchanged layout of the structures ``names``, reached as another one is reached: as far into a line as it lies;
    with ``begins`` as one is reached in which arrays only begin elsewhere."""
    rules = (ALIGN,) if begins else ()
    layouts = tuple(replace(unchanged(s, s.base % LINE), rules=rules) for s in structures if s.id in names)
    return Recipe(variant, through=Candidate("identity", layouts, (), ()))


def _independent(items: Sequence[object]) -> bool:
    loops = [i for i in items if isinstance(i, LiftedLoop)]
    return any((i.independent and len(i.body) <= LONGEST_BODY) or i.abreast or _independent(i.body) for i in loops)


def _abreast(items: Sequence[Item]) -> bool:
    return any(i.abreast or _abreast(i.body) for i in items if isinstance(i, LiftedLoop))


def recipes(candidates: Sequence[Candidate], code: Code, kept: bool = False) -> tuple[Recipe, ...]:
    """The identity, every candidate in every variant, and the best candidate with a wrong map. ``kept``: the identity in the
    form that the original's compiler gave it is built with its loops left alone.

    One check build a candidate is enough: its variants differ in what they promise the compiler, or in the order of what
    they do for several elements, not in where it is done."""
    promises = code.promises
    made = [Recipe(IDENTITY), Recipe(SCALAR, checked=False)]
    if code.unrolled != code.elements or kept:
        made.append(Recipe(IDENTITY_UNROLLED, kept=kept, checked=code.unrolled != code.elements))
    if "restrict" in promises and candidates:
        made.append(Recipe(IDENTITY_RESTRICT, checked=False))
    if "simd" in promises:
        made.append(Recipe(IDENTITY_SIMD, checked=False))
    made += [Recipe(Variant(c.id, p), c, checked=p == "plain") for c in candidates for p in code.promises_of(c)]
    if candidates:
        # nothing keeps a mock-up from objects that share pages with others: there the wrong map tells most
        doubtful = next((c for c in candidates if tables_of(c)), candidates[0])
        made.append(Recipe(Variant(doubtful.id, promises[0], "wrong"), doubtful))
    return tuple(made)
