"""Decisions by the running program alone, from given trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from layout_advise.decide.live import LiveOnly, decide_live
from layout_advise.decide.requests import RunLive
from layout_advise.decide.verdict import VerdictContext, undecided
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.setup import Entrant
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import IDENTITY_UNROLLED, Variant
from layout_advise.reasons import Reason
from tests.support.variants import variants

C1, C1_RESTRICT, C2, C3, C4 = variants("c1", "c1-restrict", "c2", "c3", "c4")
WHY = undecided(Reason.NOT_IN_SITU, "its calls are too short.")


def ran(gain: float, spread: float = 0.01) -> LiveTrial:
    return LiveTrial(Ratio(gain, gain * (1 - spread), gain * (1 + spread), 5), calls=100, timed=98)


def decided(
    trials: Mapping[Variant, Sequence[LiveTrial]], names: Sequence[Variant] = (C1, C2)
) -> tuple[LiveOnly, list[Variant]]:  # fmt: skip
    """The decision, and what was tried in which order; of each variant the trials one after the other."""
    entrants = [Entrant(name, f"store {name}", "verified", Path(str(name))) for name in names]
    left = {name: list(given) for name, given in trials.items()}
    asking = decide_live(entrants, IDENTITY_UNROLLED, (), VerdictContext("criu", "verified", True), WHY)
    answer: LiveTrial | None = None
    asked: list[Variant] = []
    while True:
        try:
            request = asking.send(answer)
        except StopIteration as done:
            found: LiveOnly = done.value
            return found, asked
        assert isinstance(request, RunLive)
        asked.append(request.variant)
        answer = left[request.variant].pop(0)


def test_what_gains_there_is_tried_again_and_advised() -> None:
    found, asked = decided({IDENTITY_UNROLLED: [ran(1.0)], C1: [ran(1.1)], C2: [ran(1.5), ran(1.4)]})
    assert asked == [IDENTITY_UNROLLED, C1, C2, C2]
    assert (found.verdict.action, found.verdict.candidate) == ("change", "c2")
    assert found.verdict.gain == pytest.approx(1.4)
    assert {d.name for d in found.results[1].budget} == {"live", "form", "rebuild"}


def test_what_does_not_gain_again_is_not_advised() -> None:
    found, _ = decided({IDENTITY_UNROLLED: [ran(1.0)], C1: [ran(1.5), ran(1.02)], C2: [ran(1.0)]})
    assert (found.verdict.action, found.verdict.reason) == ("undecided", "not-confirmed")


def test_a_gain_that_the_unchanged_mockup_has_too_is_not_the_layouts() -> None:
    found, _ = decided({IDENTITY_UNROLLED: [ran(1.5)], C1: [ran(1.5)], C2: [ran(1.4)]})
    assert found.verdict.action != "change"
    assert all((r.floor() or 0) < 1.05 for r in found.results)


def test_where_none_gains_it_is_kept() -> None:
    found, asked = decided({IDENTITY_UNROLLED: [ran(1.0)], C1: [ran(0.9)], C2: [ran(1.01)]})
    assert asked == [IDENTITY_UNROLLED, C1, C2]
    assert (found.verdict.action, found.verdict.about) == ("keep", "c2")


def test_one_variant_of_the_first_few_layouts_is_tried() -> None:
    trials = {name: [ran(0.9)] for name in (IDENTITY_UNROLLED, C1, C2, C3)}
    found, asked = decided(trials, (C1, C1_RESTRICT, C2, C3, C4))
    assert asked == [IDENTITY_UNROLLED, C1, C2, C3]
    assert [r.reason for r in found.results if r.speedup is None] == ["it was not tried in the running program"] * 2


def test_without_a_trial_it_stays_as_it_was() -> None:
    none = LiveTrial(None, "several threads run the region")
    found, asked = decided({IDENTITY_UNROLLED: [none]})
    assert asked == [IDENTITY_UNROLLED]
    assert found.verdict == WHY
    assert [t.reason for t in found.trials.values()] == [none.reason]
    found, _ = decided({IDENTITY_UNROLLED: [ran(1.0)], C1: [none], C2: [none]})
    assert found.verdict == WHY
