"""Reasons to end a study before a candidate is timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from layout_advise.decide.obstacles import unlike_program
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation


@pytest.mark.parametrize(
    ("puts", "ns", "written", "refused"),
    [
        (None, (36e3, 273e3), 16, True),
        (2, (36e3, 273e3), 16, False),  # qhull: all that the program writes is put back, and 98 µs lie between warm and cold
        (0, (36e3, 273e3), 16, False),
        (None, (36e3, 101e3), 16, False),
        (None, (36e3, 273e3), 0, False),
    ],
)
def test_calls_whose_data_are_as_in_the_program_may_take_another_time(
    puts: int | None, ns: tuple[float, ...], written: int, refused: bool
) -> None:
    batch = SimpleNamespace(size=4096, unknown="")
    case = cast(Case, SimpleNamespace(batch=batch, chosen=SimpleNamespace(in_situ_ns=98e3)))
    seen = cast(Observation, SimpleNamespace(puts=puts))
    verdict = unlike_program(case, seen, ns, written)
    assert (verdict is not None) == refused
    if verdict is not None:
        assert verdict.reason == "not-in-situ"
        assert "4,096 of them take 98 µs one after the other in the program, but 273 µs" in verdict.text
