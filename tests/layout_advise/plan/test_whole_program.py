"""Intervals of regions carried over to the whole program."""

from __future__ import annotations

import pytest

from layout_advise.plan.whole_program import UNCHANGED, Gain, RegionPart, amdahl, of_regions


def test_amdahls_law_over_two_regions() -> None:
    parts = [RegionPart(0.5, Gain(2.0, 1.6, 2.5)), RegionPart(0.3, Gain(0.75, 0.5, 1.0))]
    found = amdahl(parts)
    assert found.median == pytest.approx(1 / (0.2 + 0.25 + 0.4))
    assert found.lo == pytest.approx(1 / (0.2 + 0.5 / 1.6 + 0.6))
    assert found.hi == pytest.approx(1 / (0.2 + 0.2 + 0.3))


def test_conversions_come_on_top() -> None:
    assert amdahl([RegionPart(1.0, Gain(2.0, 2.0, 2.0))], 0.5).median == pytest.approx(1.0)


def test_the_regions_alone_are_not_thinned_by_the_rest() -> None:
    parts = [RegionPart(0.1, Gain(2.0, 2.0, 2.0)), RegionPart(0.1, UNCHANGED)]
    assert of_regions(parts).median == pytest.approx(1 / 0.75)
    assert of_regions(()) == UNCHANGED


def test_parts_are_not_more_than_the_whole() -> None:
    with pytest.raises(ValueError, match="120%"):
        amdahl([RegionPart(0.6, UNCHANGED), RegionPart(0.6, UNCHANGED)])
