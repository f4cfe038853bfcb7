"""The cheapest way through an order of regions, against all ways tried one by one along the unrolled order."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.plan.cheapest import LayoutCosts, cheapest, cost_of_way, second_cheapest
from layout_advise.plan.region_order import RegionEntry, RegionLoop, RegionStep, entries, leaves, said, unrolled
from tests.layout_advise.plan.unrolled_places import unrolled_places

REGIONS, LAYOUTS = 3, 3
STEPS: st.SearchStrategy[RegionStep] = st.recursive(
    st.builds(RegionEntry, st.integers(0, REGIONS - 1)),
    lambda inner: st.builds(RegionLoop, st.integers(1, 4), st.lists(inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=5,
)
ORDERS = st.lists(STEPS, min_size=1, max_size=3).map(tuple).filter(lambda steps: len(leaves(steps)) <= 6)
NUMBERS = st.integers(0, 50)


@st.composite
def costs(draw: st.DrawFn) -> LayoutCosts:
    """Times, of which some are not known, and conversions that cost nothing from a layout to itself."""
    known = st.one_of(NUMBERS.map(float), st.just(math.inf))
    times = np.array(draw(st.lists(st.lists(known, min_size=3, max_size=3), min_size=3, max_size=3)))
    numbers = draw(st.lists(NUMBERS, min_size=27, max_size=27))
    conversions = np.array(numbers, dtype=float).reshape(REGIONS, LAYOUTS, LAYOUTS)
    conversions[:, range(LAYOUTS), range(LAYOUTS)] = 0.0
    return LayoutCosts(times, conversions)


def walked(steps: tuple[RegionStep, ...], given: LayoutCosts, layouts: tuple[int, ...]) -> float:
    """The cost of a plan by going through every turn."""
    regions, total, before = list(unrolled(steps)), 0.0, None
    for region, place in zip(regions, unrolled_places(steps), strict=True):
        layout = layouts[place]
        total += given.times[region, layout] + (given.conversions[region, before, layout] if before is not None else 0.0)
        before = layout
    return total


@given(ORDERS, costs())
@settings(deadline=None, max_examples=60)
def test_no_way_is_cheaper(steps: tuple[RegionStep, ...], given: LayoutCosts) -> None:
    ways = sorted((walked(steps, given, way), way) for way in itertools.product(range(LAYOUTS), repeat=len(leaves(steps))))
    best = cheapest(steps, given)
    if best is None:
        assert math.isinf(ways[0][0])
        return
    assert best.cost == ways[0][0] == walked(steps, given, best.layouts) == cost_of_way(steps, given, best.layouts)
    rows = [given.times[region] for region in leaves(steps)]
    matters = [k for k, row in enumerate(rows) if (row != row[0]).any()]
    others = [cost for cost, way in ways if any(way[k] != best.layouts[k] for k in matters)]
    second = second_cheapest(steps, given, best)
    if second is None:
        assert not others or math.isinf(others[0])
    else:
        assert second.cost == others[0] == walked(steps, given, second.layouts)


@given(ORDERS)
@settings(deadline=None)
def test_entries_are_counted_without_the_turns(steps: tuple[RegionStep, ...]) -> None:
    regions = list(unrolled(steps))
    assert entries(steps) == {region: regions.count(region) for region in set(regions)}


def test_a_conversion_pays_when_regions_run_often_before_the_next_one() -> None:
    """Two regions that want different layouts: convert between long runs, stay in one where they take turns."""
    given = LayoutCosts(np.array([[4.0, 1.0], [1.0, 4.0]]), np.array([[[0.0, 10.0], [10.0, 0.0]]] * 2))
    long = RegionLoop(3, (RegionLoop(100, (RegionEntry(0),)), RegionLoop(100, (RegionEntry(1),))))
    turns = RegionLoop(300, (RegionEntry(0), RegionEntry(1)))
    apart, together = cheapest((long,), given), cheapest((turns,), given)
    assert apart is not None
    assert (apart.layouts, apart.cost) == ((1, 0), 600 + 5 * 10)
    assert together is not None
    assert len(set(together.layouts)) == 1
    assert together.cost == 300 * 5


def test_the_order_is_shown_as_a_nest() -> None:
    steps = (RegionLoop(500, (RegionEntry(0), RegionLoop(2, (RegionEntry(1),)))),)
    assert said(steps, ("density", "drift")) == "for 500 { density; drift×2 }"


def test_as_many_regions_and_layouts_as_are_asked_for_take_no_walk() -> None:
    """A billion turns over eight regions with sixty layouts: by arithmetic, or it would not end."""
    random = np.random.default_rng(1)
    given = LayoutCosts(random.random((8, 60)), random.random((8, 60, 60)) * (1 - np.eye(60)))
    steps = (RegionLoop(1_000_000_000, tuple(RegionEntry(k) for k in range(8))),)
    best = cheapest(steps, given)
    assert best is not None
    assert second_cheapest(steps, given, best) is not None
