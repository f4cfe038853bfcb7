"""Regions that are traced before any is studied: a loop in the place of one that allocates what it works on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.observe.stage import Observed
from layout_advise.progress import Progress
from layout_advise.regions import survey


@pytest.mark.parametrize(
    ("own", "nest", "loop", "taken"),
    [
        (True, None, "loop", "loop"),
        (True, None, None, "whole"),
        (True, "nest", "loop", "whole"),
        (False, None, "loop", "whole"),
    ],
)
def test_of_a_call_that_allocates_what_it_works_on_a_loop_is_taken(
    own: bool, nest: str | None, loop: str | None, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """probcons: 97 % of the accesses go to a matrix that the call allocates; nothing was measured in 36 % of the samples."""

    def traced(name: str, nest: str | None) -> Observed:
        case = SimpleNamespace(
            name=name, profiled=SimpleNamespace(nest=nest), space=SimpleNamespace(progress=Progress(quiet=True))
        )
        return Observed(cast(Any, case), cast(Any, None))

    monkeypatch.setattr(survey, "is_mostly_own", lambda seen: own)
    monkeypatch.setattr(survey, "loop_of", lambda case, least: loop)
    monkeypatch.setattr(survey, "observed_at", lambda case: traced(case, "nest"))
    assert cast(Any, survey.or_its_loop(traced("whole", nest)).case).name == taken
