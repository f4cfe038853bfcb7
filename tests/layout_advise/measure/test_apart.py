"""Batches whose calls take longer in the program, where they are timed one by one, than when they are repeated together."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.decide.budget import Circumstances, with_doubts
from layout_advise.decide.decision import measured
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import is_apart, mode_of, times_of_original
from layout_advise.measure.setup import Entrant
from layout_advise.mockup.timing.measure import measure
from layout_advise.mockup.timing.plan import Memory, Timed, TimingPlan
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL
from tests.support.mockups.fake_machine import APART, COLD, TRUE_NS, FakeMachine
from tests.support.variants import variant

C1 = variant("c1")


def timed(monkeypatch: pytest.MonkeyPatch, apart_calls: int = 4) -> Timings:
    """17 ns a call together and 30 one by one; of the candidate 17 and 24."""
    for name, together, apart in (("original", 1700.0, 3000.0), ("identity", 1700.0, 3000.0), ("c1", 1700.0, 2400.0)):
        monkeypatch.setitem(TRUE_NS, name, together)
        monkeypatch.setitem(COLD, name, 1.02)
        monkeypatch.setitem(APART, name, apart / together)
    variants = [Timed(name, Path(str(name))) for name in (IDENTITY, C1)]
    return measure(FakeMachine(), variants, Memory(), TimingPlan(restores=6, apart_calls=apart_calls), drop=False)


def doubts(timings: Timings, in_situ_ns: float) -> dict[str, tuple[float, float]]:
    """The doubts about the candidate, by their names, where the batch takes so long in the program."""
    mode = mode_of(timings, None, in_situ_ns)
    one = measured(Entrant(C1, "", "verified", Path("c1")), timings, mode or "steady", None)
    assert isinstance(one, Measured)
    (found,) = with_doubts([one], timings, Circumstances(in_situ_ns, mode or "steady", alike=mode is not None))
    return {d.name: (d.lo, d.hi) for d in found.doubts}


def test_the_calls_of_a_batch_are_timed_one_by_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    timings = timed(monkeypatch)
    assert timings.nanoseconds(ORIGINAL, "apart") == pytest.approx(3000, rel=0.05)
    assert len(times_of_original(timings)) == 3
    without = timed(monkeypatch, apart_calls=0)
    assert without.nanoseconds(ORIGINAL, "apart") is None
    assert len(times_of_original(without)) == 2


@pytest.mark.parametrize(
    ("in_situ_ns", "mode", "apart"),
    [
        (1650.0, "steady", False),  # as it is repeated
        (3000.0, "steady", True),
        (2400.0, "steady", True),  # its calls overlap less than repeated
        (5000.0, None, False),
        (1000.0, None, False),
    ],
)
def test_a_batch_is_as_in_the_program_between_its_times_together_and_one_by_one(
    monkeypatch: pytest.MonkeyPatch, in_situ_ns: float, mode: str | None, apart: bool
) -> None:
    timings = timed(monkeypatch)
    assert (mode_of(timings, None, in_situ_ns), is_apart(timings, in_situ_ns)) == (mode, apart)
    assert mode_of(timed(monkeypatch, apart_calls=0), None, 3000.0) is None


def test_what_the_layout_gains_one_by_one_is_an_end_of_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    timings = timed(monkeypatch)
    assert doubts(timings, 3000.0)["apart"] == pytest.approx((1.0, 1.25), rel=0.03)
    assert "program" not in doubts(timings, 3000.0)
    assert "apart" not in doubts(timings, 1700.0)
    assert doubts(timings, 5000.0).keys() >= {"program"}
    assert "apart" not in doubts(timed(monkeypatch, apart_calls=0), 3000.0)
