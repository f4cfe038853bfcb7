"""Plans of structures, from given times: against going through every turn with every choice of layouts."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import Affine, Loop, Point, expand
from layout_advise.plan.region_order import (
    RegionEntry,
    RegionLoop,
    RegionStep,
    from_nodes,
    leaves,
    renumbered,
    said,
    turns,
    unrolled,
)
from layout_advise.plan.structure_plan import LayoutTable, best_ways
from layout_advise.plan.whole_program import UNCHANGED, Gain


def sure(value: float) -> Gain:
    return Gain(value, value, value)


STEPS = (RegionLoop(40, (RegionLoop(4, (RegionEntry(0),)), RegionLoop(32, (RegionEntry(1),)))),)
SPREAD_ASSIGN = ((UNCHANGED, sure(6.0)), (UNCHANGED, sure(0.5)))


def test_two_regions_that_want_different_layouts_are_converted_between_where_that_pays() -> None:
    cheap = LayoutTable((0.6, 0.4), SPREAD_ASSIGN, (0.0, 0.001), (0.0, 0.001))
    best = best_ways(STEPS, cheap).best
    assert best.layouts == (1, 0)
    assert best.converting == pytest.approx(40 * 0.001 + 39 * 0.001)  # back and in again, but for the first
    assert best.program.median == pytest.approx(1 / (0.1 + 0.4 + best.converting))
    assert best.regions == (sure(6.0), UNCHANGED)
    dear = LayoutTable((0.6, 0.4), SPREAD_ASSIGN, (0.0, 0.01), (0.0, 0.01))
    found = best_ways(STEPS, dear)
    assert found.best.permanent == 1
    assert found.best.program.median == pytest.approx(1 / (0.1 + 0.8))
    assert found.second is not None
    assert found.second.permanent == 0


def test_without_an_order_or_a_timed_conversion_nothing_is_converted() -> None:
    cheap = LayoutTable((0.6, 0.4), SPREAD_ASSIGN, (0.0, 0.001), (0.0, 0.001))
    assert best_ways(None, cheap).best.permanent == 1
    unknown = LayoutTable((0.6, 0.4), SPREAD_ASSIGN, (0.0, None), (0.0, 0.001))
    assert best_ways(STEPS, unknown).best.permanent == 1


def test_an_unsure_gain_is_not_converted_for() -> None:
    unsure = ((UNCHANGED, Gain(6.0, 1.0, 9.0)), (UNCHANGED, sure(0.5)))
    best = best_ways(STEPS, LayoutTable((0.6, 0.4), unsure, (0.0, 0.001), (0.0, 0.001))).best
    assert best.permanent is not None


nests = st.recursive(
    st.integers(0, 2).map(RegionEntry),
    lambda inner: st.builds(RegionLoop, st.integers(1, 4), st.lists(inner, min_size=1, max_size=2).map(tuple)),
    max_leaves=4,
)
gains = st.sampled_from([0.5, 0.8, 1.25, 2.0, 4.0]).map(sure)


@given(st.lists(nests, min_size=1, max_size=2).map(tuple), st.lists(st.tuples(gains, gains), min_size=3, max_size=3))
def test_no_choice_of_layouts_is_better_than_the_best_way(
    steps: tuple[RegionStep, ...], found: list[tuple[Gain, Gain]]
) -> None:
    costs = (0.0, 0.003, 0.02)
    table = LayoutTable((0.5, 0.3, 0.1), tuple((UNCHANGED, *pair) for pair in found), costs, costs)
    often = {region: list(unrolled(steps)).count(region) for region in set(leaves(steps))}

    def walked(layouts: tuple[int, ...]) -> float:
        """The time of the program, going through every turn."""
        places = []

        def go(parts: tuple[RegionStep, ...], place: int) -> int:
            for part in parts:
                if isinstance(part, RegionEntry):
                    places.append((part.region, layouts[place]))
                    place += 1
                else:
                    for _ in range(part.turns):
                        end = go(part.body, place)
                    place = end
            return place

        go(steps, 0)
        time, before = 0.1 + sum(share for r, share in enumerate(table.shares) if r not in often), None
        for region, layout in places:
            time += table.shares[region] / often[region] / table.gains[region][layout].median
            time += 0.0 if before is None else table.conversion(before, layout)
            before = layout
        return time

    best = best_ways(steps, table).best
    least = min(walked(layouts) for layouts in product(range(3), repeat=len(leaves(steps))))
    assert 1 / best.program.median == pytest.approx(walked(best.layouts)) == pytest.approx(least)


@given(st.lists(nests, min_size=1, max_size=3).map(tuple))
def test_turns_and_renumbering_are_those_of_the_unrolled_order(steps: tuple[RegionStep, ...]) -> None:
    assert sum(turns(steps)) == len(list(unrolled(steps)))
    kept = renumbered(steps, {2: 0, 0: 1})
    assert list(unrolled(kept)) == [{2: 0, 0: 1}[region] for region in unrolled(steps) if region != 1]


def test_a_folded_stream_of_region_numbers_as_an_order() -> None:
    constant = (Point(Affine(2)), Loop(Affine(500), (Point(Affine(0)), Loop(Affine(2), (Point(Affine(1)),)))))
    steps = from_nodes(constant)
    assert steps is not None
    assert said(steps, ("density", "drift", "init")) == "init; for 500 { density; drift×2 }"
    triangle = (Loop(Affine(4), (Loop(Affine(0, (1,)), (Point(Affine(0)),)), Point(Affine(1)))),)
    steps = from_nodes(triangle)
    assert steps is not None
    assert list(unrolled(steps)) == list(expand(triangle))
    assert from_nodes((Loop(Affine(1000), (Loop(Affine(0, (1,)), (Point(Affine(0)),)),)),)) is None
