"""Who proposed the best layout, counted by hand."""

from __future__ import annotations

from types import ModuleType

import pytest

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import HotspotReport
from tests.support.benchmark_scripts import script
from tests.support.sample_report import candidate, report


@pytest.fixture(scope="module")
def told() -> ModuleType:
    return script("proposers")


def gain(median: float) -> Interval:
    return Interval(lo=median - 0.1, median=median, hi=median + 0.1)


def region(*proposed: tuple[str, float, tuple[str, ...]]) -> HotspotReport:
    """With layouts: id of a variant, gain, and proposers."""
    made = tuple(candidate(0, gain(speed), id=name, proposers=by) for name, speed, by in proposed)
    hotspot = report().hotspots[0]
    return type(hotspot)(**{name: getattr(hotspot, name) for name in hotspot.__struct_fields__} | {"candidates": made})


def test_a_layout_counts_by_its_fastest_variant(told: ModuleType) -> None:
    (one, other) = told.layouts(region(("c1", 1.0, ("rules",)), ("c1-simd", 1.5, ("rules",)), ("c2", 1.2, ("search",))))
    assert (one.gain, other.gain) == (1.5, 1.2)


def test_what_has_no_times_does_not_count(told: ModuleType) -> None:
    found = region(("c1", 1.0, ("rules",)))
    assert len(told.layouts(found)) == 1
    assert told.layouts(region()) == []


def test_the_best_and_what_is_as_fast_are_told_by_proposer(told: ModuleType) -> None:
    first = told.layouts(region(("c1", 2.0, ("rules",)), ("c2", 1.9, ("rules", "field graph")), ("c3", 1.0, ("search",))))
    second = told.layouts(region(("c1", 1.0, ("rules",)), ("c2", 1.4, ("field graph",))))
    assert told.rows([first, second]) == [("field graph", 2, 1, 2, 1), ("rules", 2, 1, 1, 1.5), ("search", 1, 0, 0, 1)]


def test_the_table_is_markdown(told: ModuleType) -> None:
    found = [told.layouts(region(("c1", 2.0, ("rules",)), ("c2", 1.0, ("search",))))]
    assert list(told.table(found))[2:] == ["| rules | 1 of 1 | 1 | 1 | 1 |", "| search | 1 of 1 | 0 | 0 | 1 |"]
