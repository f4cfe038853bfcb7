"""Batches whose calls take longer in the program, where they are timed one by one, than when they are repeated together."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from layout_advise.decide.budget import Circumstances, with_doubts
from layout_advise.decide.decision import measured
from layout_advise.measure import contest
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import is_apart, mode_of, times_of_original
from layout_advise.measure.setup import Entrant
from layout_advise.mockup.timing.measure import measure
from layout_advise.mockup.timing.plan import Memory, Timed, TimingPlan
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL
from tests.support.mockups.fake_machine import APART, COLD, FRESH, TRUE_NS, FakeMachine
from tests.support.variants import variant

C1 = variant("c1")


def timed(monkeypatch: pytest.MonkeyPatch, apart_calls: int = 4, unknown: float = 0.0) -> Timings:
    """17 ns a call together and 30 one by one; of the candidate 17 and 24."""
    for name, together, apart in (("original", 1700.0, 3000.0), ("identity", 1700.0, 3000.0), ("c1", 1700.0, 2400.0)):
        monkeypatch.setitem(TRUE_NS, name, together)
        monkeypatch.setitem(COLD, name, 1.02)
        monkeypatch.setitem(APART, name, apart / together)
    variants = [Timed(name, Path(str(name))) for name in (IDENTITY, C1)]
    plan = TimingPlan(restores=6, apart_calls=apart_calls, unknown=unknown, fresh_calls=4 if unknown else 0)
    return measure(FakeMachine(), variants, Memory(), plan, drop=False)


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


def test_how_far_calls_overlap_is_open_also_where_branches_explain_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """pykdtree: 70 ns together, 84 with its branches forgotten and in the program, 85 one by one."""
    for name in ("original", "identity", "c1"):
        monkeypatch.setitem(FRESH, name, 2)
    timings = timed(monkeypatch, unknown=0.5)
    assert timings.nanoseconds(ORIGINAL) == pytest.approx(2550, rel=0.05)
    found = doubts(timings, 2550.0)
    assert "program" not in found
    assert found["apart"] == pytest.approx((1.0, 1.25), rel=0.04)


@pytest.mark.parametrize(
    ("alone", "threads", "branches"), [(True, 1, True), (False, 1, True), (True, 2, True), (False, 1, False)]
)
def test_branches_of_one_threads_calls_are_forgotten_also_in_a_batch(
    monkeypatch: pytest.MonkeyPatch, alone: bool, threads: int, branches: bool
) -> None:
    monkeypatch.setattr(contest, "is_beyond_the_l2", lambda seen: False)
    monkeypatch.setattr(contest, "leaves_data", lambda seen: True)
    seen: Any = SimpleNamespace(written=(), touched=(), team=None if threads == 1 else object())
    space: Any = SimpleNamespace(progress=SimpleNamespace(count=None))
    snapshots: Any = None
    bench = contest.bench_of(
        space,
        seen,
        snapshots,
        20.0,
        restores=None,
        budget=10.0,
        clock="thread-cpu",
        canary=0,
        branches=branches,
        alone=alone,
    )
    assert bench.forgets == (branches and threads == 1)
    assert bench.lesser == alone
    assert bool(bench.plan.apart_calls) != alone
