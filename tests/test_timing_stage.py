"""What the decision stage doubts: a `keep` that may only say that mock-ups are scalar."""

from __future__ import annotations

from layout_advise.mockup.measure import ORIGINAL, SCALAR, Timings
from layout_advise.mockup.statistics import Ratio
from layout_advise.reports.model import Verdict
from layout_advise.stages.timing import doubt_scalar, plan_for
from layout_advise.verdict import Measured

KEEP = Verdict("keep", None, None, "no-gain", "Keep it.")


def timings(scalar_cost: float) -> Timings:
    return Timings(steady=[{ORIGINAL: [100.0], SCALAR: [100.0 * scalar_cost]} for _ in range(5)])


def candidate(speedup: float) -> Measured:
    ratio = Ratio(speedup, speedup, speedup, 5)
    return Measured("c1", "verified", ratio, ratio)


def test_a_loss_like_that_of_scalar_code_decides_nothing() -> None:
    assert doubt_scalar(KEEP, timings(6.0), [candidate(0.17)], "steady").reason == "scalar-mockups"


def test_a_loss_that_is_not_explained_by_it_stays() -> None:
    assert doubt_scalar(KEEP, timings(1.05), [candidate(0.17)], "steady") == KEEP
    assert doubt_scalar(KEEP, timings(6.0), [candidate(0.17), candidate(0.9)], "steady") == KEEP


def test_other_verdicts_are_left_alone() -> None:
    change = Verdict("change", "c1", 2.0, "measured-gain", "Change it.")
    assert doubt_scalar(change, timings(6.0), [candidate(0.17)], "steady") == change


def test_slow_hotspots_are_called_less_often() -> None:
    quick, slow = plan_for(50_000, 9, "thread-cpu"), plan_for(80e6, 9, "thread-cpu")
    assert (quick.calls, quick.rounds) == (40, 3)
    assert slow.rounds == 1
    assert 2 <= slow.calls - slow.warm < quick.calls - quick.warm
