"""Regions that are traced before any is studied: a loop in the place of one that allocates what it works on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.observe.case import Case
from layout_advise.observe.stage import Observed
from layout_advise.progress import Progress
from layout_advise.regions import survey


@pytest.mark.parametrize(
    ("own", "nest", "batch", "loop", "taken"),
    [
        (True, None, False, "loop", "loop"),
        (True, None, False, None, "whole"),
        (True, "nest", False, "loop", "whole"),
        (True, None, True, "loop", "whole"),
        (False, None, False, "loop", "whole"),
    ],
)
def test_of_a_call_that_allocates_what_it_works_on_a_loop_is_taken(
    own: bool, nest: str | None, batch: bool, loop: str | None, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """probcons: 97 % of the accesses go to a matrix that the call allocates; nothing was measured in 36 % of the samples. Of
    mawk's short calls in a row half go to what the program allocates between them: nothing was measured any more."""

    def traced(name: str, nest: str | None) -> Observed:
        profiled, space = SimpleNamespace(name=name, nest=nest), SimpleNamespace(progress=Progress(quiet=True))
        none = cast(Any, None)
        calls = cast(Any, SimpleNamespace() if batch else None)
        return Observed(Case(none, none, cast(Any, profiled), none, none, None, cast(Any, space), calls), none)

    monkeypatch.setattr(survey, "is_mostly_own", lambda seen: own)
    monkeypatch.setattr(survey, "loop_of", lambda case, least: loop)
    monkeypatch.setattr(survey, "observed_at", lambda case: traced(case, "nest"))
    assert survey.or_its_loop(traced("whole", nest)).case.profiled.name == taken
