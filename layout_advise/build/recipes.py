"""Which mock-ups are made of a hotspot: the identity in its forms, candidates in their variants, one with a wrong map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.ir.lifted import Item, Lifted, LiftedLoop
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.timing.names import IDENTITY, IDENTITY_LANES, IDENTITY_RESTRICT, IDENTITY_SIMD, SCALAR
from layout_advise.observe.gather import tables_of
from layout_advise.tracer.trace.trace import Trace

LONGEST_BODY = 200
Variant = Literal["plain", "restrict", "lanes", "simd"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One mock-up to make; ``candidate`` None is the identity."""

    name: str
    candidate: Candidate | None
    variant: Variant
    wrong: bool | Literal["writes"] = False
    checked: bool = True
    vectorised: bool = True
    """Whether the compiler may vectorise it."""
    kept: bool = False
    """Whether the compiler is to leave the loops as they are: see :func:`better_kept`."""
    offset: int = 0
    """Distance of the new buffers from the start of a page, a multiple of 64."""
    blocks: Candidate | None = None
    """Of an identity: its loops are cut into blocks of elements as for this candidate."""


@dataclass(frozen=True, slots=True)
class Code:
    """The lifted hotspot ``lanes``, as its compiler left it, and ``elements``, with one element an iteration where that is
    shown to be the same. Other layouts are tried on the elements; the identity, which has to be like the original, is made
    of both, and the nearer one counts."""

    lanes: Lifted
    elements: Lifted
    gathered: Mapping[frozenset[str], tuple[Lifted, Trace]] = field(default_factory=dict)
    """By ids of structures reached through pointers: the elements, and the trace, with these thought to lie together
    (``mockup/evidence/gather_objects.py``)."""
    rolled: Lifted | None = None
    """The elements with loops over their fields, which ``elements`` has written out; None where there are none."""

    def of(self, recipe: Recipe, trace: Trace, structures: Sequence[Structure]) -> tuple[Lifted, Trace]:
        """What a recipe is made of, and the trace that goes with it. Loops over fields stay loops where the layout allows
        it."""
        if recipe.name == IDENTITY_LANES:
            return self.lanes, trace
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
    def variants(self) -> tuple[Variant, ...]:
        """The variants worth making of any layout: ``simd`` where there is a loop with independent iterations to tell of."""
        return ("plain", "restrict", "simd") if any(map(_independent, self.bodies)) else ("plain", "restrict")

    def variants_of(self, candidate: Candidate) -> tuple[Variant, ...]:
        """Those of one layout: besides, with the loop over a block's elements inside, where the elements lie in blocks and
        have loops of their own."""
        turned = candidate.block is not None and any(map(_abreast, self.bodies))
        return (*self.variants, "lanes") if turned else self.variants

    @property
    def bodies(self) -> list[tuple[Item, ...]]:
        """What mock-ups in new layouts are made of."""
        return [self.elements.body, *(lifted.body for lifted, _ in self.gathered.values())]


def _independent(items: Sequence[object]) -> bool:
    """Whether a loop is worth telling the compiler that its iterations are independent. Bodies of some hundred statements
    (lanes that could not be rerolled) gain nothing by it, and gcc 12 takes minutes over them."""
    loops = [i for i in items if isinstance(i, LiftedLoop)]
    return any((i.independent and len(i.body) <= LONGEST_BODY) or i.abreast or _independent(i.body) for i in loops)


def _abreast(items: Sequence[Item]) -> bool:
    return any(i.abreast or _abreast(i.body) for i in items if isinstance(i, LiftedLoop))


def recipes(candidates: Sequence[Candidate], code: Code, kept: bool = False) -> tuple[Recipe, ...]:
    """The identity, every candidate in every variant, and the best candidate with a wrong map. ``kept``: the identity in the
    form that the original's compiler gave it is built with its loops left alone."""
    variants = code.variants
    made = [Recipe(IDENTITY, None, "plain"), Recipe(SCALAR, None, "plain", checked=False, vectorised=False)]
    if code.lanes != code.elements or kept:
        made.append(Recipe(IDENTITY_LANES, None, "plain", kept=kept, checked=code.lanes != code.elements))
    if "restrict" in variants and candidates:
        made.append(Recipe(IDENTITY_RESTRICT, None, "restrict", checked=False))
    if "simd" in variants:
        made.append(Recipe(IDENTITY_SIMD, None, "simd", checked=False))
    made += [_recipe(c, variant) for c in candidates for variant in code.variants_of(c)]
    if candidates:
        # nothing keeps a mock-up from objects that share pages with others: there the wrong map tells most
        doubtful = next((c for c in candidates if tables_of(c)), candidates[0])
        made.append(Recipe("wrong", doubtful, variants[0], wrong=True))
    return tuple(made)


def _recipe(candidate: Candidate, variant: Variant) -> Recipe:
    """One check build a candidate is enough: the variants differ in what they promise the compiler, or in the order of what
    they do for several elements, not in where it is done."""
    plain = variant == "plain"
    return Recipe(candidate.id if plain else f"{candidate.id}-{variant}", candidate, variant, checked=plain)
