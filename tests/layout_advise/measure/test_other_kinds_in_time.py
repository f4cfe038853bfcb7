"""What is timed at the calls of other kinds, where processes with all candidates take long."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.choose.calls import ChosenCall
from layout_advise.measure.stage import KindTimed, slow_elsewhere
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL
from tests.support.variants import variants

BUILDS = variants("c1", "c2", "c3", "c4")
NS = dict(zip(BUILDS, (100.0, 90.0, 80.0, 70.0), strict=True))


def case(ns: float | None) -> Any:
    return SimpleNamespace(chosen=ChosenCall(1, 9, ns, 0.0))


def first_kind(seconds: float, finalists: int | None = 2) -> KindTimed:
    """Calls of 1 ms, of which a process with all four builds took so many seconds."""
    process = {one: (ns,) for one, ns in {ORIGINAL: 75.0, IDENTITY: 75.0, **NS}.items()}
    timings = replace(Timings(steady=(process,) * 4), whole_seconds=seconds)
    contest = SimpleNamespace(entrants=[SimpleNamespace(variant=one) for one in BUILDS])
    bench = SimpleNamespace(plan=SimpleNamespace(finalists=finalists))
    times = SimpleNamespace(contest=contest, bench=bench, timings=timings)
    return cast(KindTimed, SimpleNamespace(times=times, case=case(1e6)))


@pytest.mark.parametrize(
    ("seconds", "ns", "few"),
    [(5.0, 1e6, False), (7.0, 1e6, True), (5.0, 3e6, True), (5.0, None, False), (1.0, 3e6, False)],
)
def test_losers_at_the_first_kind_areslow_elsewhere_where_three_processes_with_them_do_not_fit(
    seconds: float, ns: float | None, few: bool
) -> None:
    """metis: 17 seconds at the first kind, 31 and 68 at the others, of a region that has 60."""
    found = slow_elsewhere(first_kind(seconds), case(ns), 20.0)
    assert set(found) == (set(BUILDS[:2]) if few else set())
    assert all("2 builds were ahead of it" in why for why in found.values())


def test_where_all_candidates_always_go_on_none_isslow_elsewhere() -> None:
    assert slow_elsewhere(first_kind(100.0, None), case(1e6), 1.0) == {}
