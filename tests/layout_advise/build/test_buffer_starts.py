"""Where new arrays begin when the winner is built anew: where a source has them that calls malloc."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise.build.mockups import WIDE
from layout_advise.build.policy import BUILD
from layout_advise.build.stage import head_of
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.mockup.timing.variants import IDENTITY, Promise, Variant
from layout_advise.propose.line_starts import worth_lines
from layout_advise.propose.recipes import Recipe

FIELDS = (Field("a", 0, 8), Field("b", 8, 8))
MALLOCED = Structure("s0", "p", 0x10010, 1600, (Dim(100, 16),), FIELDS, block_base=0x10010)
PLAIN = replace(MALLOCED, dims=(Dim(100, 16),), fields=(Field("a", 0, 16, None, 1),))


def recipe(structure: Structure, promise: Promise = "plain") -> Recipe:
    layout = relayout(structure, LayoutPlan(tuple(Group((n,), whole(structure)) for n in (0, 1))))
    return Recipe(Variant("c1", promise), Candidate("c1", (layout,), ("soa",), ()))


@pytest.mark.parametrize(
    ("one", "head"),
    [
        (recipe(MALLOCED), BUILD.malloc_head),
        (recipe(replace(MALLOCED, base=0x10000, block_base=0x10000)), 0),  # the program has aligned them itself
        (recipe(replace(MALLOCED, kind="global")), 0),
        (recipe(MALLOCED, "lanes"), 0),  # in vector types, which begin with a line in a source, too
        (Recipe(IDENTITY), 0),
        (Recipe(Variant("c1"), worth_lines((PLAIN,))), 0),  # that is the layout
    ],
)
def test_arrays_begin_behind_the_allocators_own_bytes(one: Recipe, head: int) -> None:
    assert head_of(one) == head


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("*(const la_f64x4 *)(at + 32 * j)", True),
        ("*(la_f32x8 *)(at)", True),
        ("*(const la_f64x4_u *)(at)", False),
        ("*(const la_f64x2 *)(at)", False),
        ("const la_f64x4 v1 = v2;", False),
    ],
)
def test_accesses_that_need_a_lines_start_are_told(text: str, wide: bool) -> None:
    assert bool(WIDE.search(text)) == wide
