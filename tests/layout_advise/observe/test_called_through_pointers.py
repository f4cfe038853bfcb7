"""Functions that are called through pointers are traced with the region, as far as there is room for their accesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.observe import stage
from layout_advise.observe.case import Case


@dataclass(frozen=True)
class Call:
    """What of a case matters here: the functions taken in, and the calls of its batch."""

    called: frozenset[int] = frozenset()
    batch: int | None = None
    profiled: Any = field(default_factory=lambda: SimpleNamespace(module=None))
    notes: list[str] = field(default_factory=list)

    @property
    def space(self) -> Any:
        return SimpleNamespace(progress=SimpleNamespace(step=self.notes.append, note=self.notes.append))


def observed(case: Call, monkeypatch: pytest.MonkeyPatch, seen: list[tuple[int | None, bool]]) -> tuple[Any, Any]:
    """The case that is gone on with and its trace, where the traces are of such batches and truncated or not, one after the
    other, and each shows two further functions."""
    made: list[Call] = []

    def traced(case: Call, parked: object) -> tuple[Call, Any]:
        batch, truncated = seen[len(made)]
        made.append(Call(case.called, batch, notes=case.notes))
        return made[-1], SimpleNamespace(trace=SimpleNamespace(truncated=truncated), number=len(made))

    monkeypatch.setattr(stage, "_traced", traced)
    monkeypatch.setattr(stage, "called_beside", lambda module, one: frozenset({10 * one.number, 10 * one.number + 1}))
    return stage._with_callees(cast(Case, case), cast(Any, None))


@pytest.mark.parametrize(
    ("seen", "number", "called"),
    [
        ([(None, False), (None, False), (None, False)], 3, {10, 11, 20, 21}),
        ([(None, False), (None, True)], 1, set()),
        ([(None, False), (None, False), (None, True)], 2, {10, 11}),
        ([(None, True), (None, True), (None, True)], 3, {10, 11, 20, 21}),  # it was cut before
        ([(40, False), (10, True), (10, True)], 3, {10, 11, 20, 21}),  # the program is not where it was
    ],
)
def test_where_they_make_too_many_accesses_their_calls_stay_calls(
    monkeypatch: pytest.MonkeyPatch, seen: list[tuple[int | None, bool]], number: int, called: set[int]
) -> None:
    case, found = observed(Call(), monkeypatch, seen)
    assert (found.number, set(case.called)) == (number, called)
