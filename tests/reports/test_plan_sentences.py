"""The first line about the whole program, whichever of two plans changes something."""

from __future__ import annotations

from typing import Literal

import pytest

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.plan import StructurePlan
from layout_advise.reports.words.plan_words import headline

SAME, OTHER = Interval(1.0, 1.0, 1.0), Interval(0.97, 0.63, 1.17)


def plan(
    action: Literal["keep", "undecided"], label: str, program: Interval, second: str, second_program: Interval | None
) -> StructurePlan:
    """A plan of one structure."""
    return StructurePlan(
        structures=("pool",), action=action, candidate=None, label=label, places=(), program=program, regions=(),
        measured=0.9, converting=0.0, losing=(), second=second, second_program=second_program,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second"), [(("as it is", SAME), ("c4 (SoA)", OTHER)), (("c4 (SoA)", OTHER), ("as it is", SAME))]
)
def test_the_plan_that_changes_something_is_told(first: tuple[str, Interval], second: tuple[str, Interval]) -> None:
    """minisat: `as as it is would be 1.00× faster (1.00–1.00)`; CaDiCaL: `best other: as it is`."""
    assert headline(plan("undecided", *first, *second)) == (
        "Whole program, undecided: with pool as c4 (SoA) it runs 0.97× as fast (0.63–1.17)."
    )
    assert (
        headline(plan("keep", *first, *second))
        == "Whole program: keep pool as it is; best other: c4 (SoA), 0.97× (0.63–1.17)."
    )


def test_where_nothing_else_was_measured_no_other_is_told() -> None:
    assert headline(plan("keep", "as it is", SAME, "", None)) == "Whole program: keep pool as it is."
