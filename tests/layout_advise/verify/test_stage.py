"""Sentences about the unchanged mock-up, on which all else rests."""

from __future__ import annotations

from typing import cast

import pytest

from layout_advise.build.mockups import Mockup
from layout_advise.build.stage import Built
from layout_advise.mockup.timing.variants import IDENTITY
from layout_advise.propose.recipes import Recipe
from layout_advise.propose.source import Source
from layout_advise.reasons import Reason
from layout_advise.verify.compare import Findings
from layout_advise.verify.stage import Verified
from layout_advise.verify.verify import NOTHING_CHANGED, Finding


@pytest.mark.parametrize(
    ("why", "found", "wanted"),
    [
        ("gcc: redeclaration of 'r8'", {}, "the unchanged mock-up could not be built (gcc: redeclaration of 'r8')"),
        (
            None,
            {IDENTITY: Finding("8 bytes differ")},
            "the unchanged mock-up does not do what the original does (8 bytes differ)",
        ),
    ],
    ids=["not built", "differs"],
)
def test_what_was_never_compared_is_not_said_to_differ(why: str | None, found: Findings, wanted: str) -> None:
    """The first line blamed the comparison, where the compiler had refused the mock-up's text."""
    recipe = Recipe(IDENTITY)
    built = Built(cast(Source, None), (recipe,), {IDENTITY: Mockup(recipe, "", None, None, why)})
    problem = Verified(built, found).problem
    assert problem == (Reason.IDENTITY_NOT_VERIFIED, f"{wanted}, so no number counts.")


def test_calls_that_leave_memory_as_it_was_are_no_wrong_mock_up() -> None:
    """primer3: "the unchanged mock-up does not reproduce the original", where there was nothing to compare."""
    recipe = Recipe(IDENTITY)
    built = Built(cast(Source, None), (recipe,), {IDENTITY: Mockup(recipe, "", None, None, None)})
    problem = Verified(built, {IDENTITY: Finding(NOTHING_CHANGED)}).problem
    assert problem is not None
    assert problem[0] == Reason.NOTHING_CHANGED
    assert problem[1].startswith("no layout can be checked: the call returns nothing")
