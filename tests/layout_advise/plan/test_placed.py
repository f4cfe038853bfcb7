"""The cheapest places of regions, against all ways of placing and copying tried along the unrolled order."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.plan.placed import Copies, MovedStructure, PlacedCosts, PlacedRegion, Use, held
from layout_advise.plan.region_order import RegionEntry, RegionLoop, RegionStep, leaves
from tests.layout_advise.plan.unrolled_places import unrolled_places

HOST, CPU, GPU = range(3)
COUNT = 3
STEPS: st.SearchStrategy[RegionStep] = st.recursive(
    st.builds(RegionEntry, st.integers(0, 2)),
    lambda inner: st.builds(RegionLoop, st.integers(1, 3), st.lists(inner, min_size=1, max_size=2).map(tuple)),
    max_leaves=3,
)
ORDERS = st.lists(STEPS, min_size=1, max_size=3).map(tuple).filter(lambda steps: len(leaves(steps)) <= 4)
USES: st.SearchStrategy[Use] = st.sampled_from(("read", "changed", "overwritten"))
REGIONS = st.builds(
    PlacedRegion,
    st.tuples(*[st.one_of(st.integers(0, 30).map(float), st.just(math.inf))] * COUNT),
    st.dictionaries(st.integers(0, 1), USES, min_size=1, max_size=2),
)


@st.composite
def structures(draw: st.DrawFn) -> MovedStructure:
    """Copies by way of the host, as between devices."""
    sent = [0.0, *draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))]
    fetched = [0.0, *draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))]
    moves = tuple(tuple(0.0 if a == b else fetched[a] + sent[b] for b in range(COUNT)) for a in range(COUNT))
    return MovedStructure(moves, draw(st.one_of(st.none(), st.just(HOST))))


def walked(
    steps: tuple[RegionStep, ...], regions: list[PlacedRegion], whole: list[MovedStructure], chosen: tuple[int, ...]
) -> float:
    """The least cost with these places, whatever copies are made when: all ways, turn by turn."""
    numbers, total = leaves(steps), 0.0
    order = [(numbers[place], chosen[place]) for place in unrolled_places(steps)]
    for number, structure in enumerate(whole):
        home = frozenset(range(COUNT)) if structure.home is None else frozenset((structure.home,))
        costs: dict[Copies, float] = {home: 0.0}
        for region, place in order:
            costs = _after(costs, structure, regions[region].uses.get(number), place)
        total += min(costs.values())
    return total + sum(regions[region].times[place] for region, place in order)


def _after(costs: dict[Copies, float], structure: MovedStructure, use: Use | None, place: int) -> dict[Copies, float]:
    if use is None:
        return costs
    found: dict[Copies, float] = {}
    for copies, cost in costs.items():
        if place in copies or use == "overwritten":
            there = [(copies | {place}, cost)]
        else:  # a copy for the host may be left on the way
            price = min(structure.moves[source][place] for source in copies)
            by_host = min(structure.moves[source][HOST] for source in copies) + structure.moves[HOST][place]
            there = [(copies | {place}, cost + price), (copies | {place, HOST}, cost + by_host)]
        for left, paid in there:
            own = left if use == "read" else frozenset((place,))
            found[own] = min(paid, found.get(own, math.inf))
    return found


@settings(deadline=None, max_examples=80)
@given(ORDERS, st.lists(REGIONS, min_size=3, max_size=3), st.lists(structures(), min_size=2, max_size=2))
def test_it_is_the_best_of_all_placements(
    steps: tuple[RegionStep, ...], regions: list[PlacedRegion], whole: list[MovedStructure]
) -> None:
    ways = itertools.product(range(COUNT), repeat=len(leaves(steps)))
    best = min(walked(steps, regions, whole, chosen) for chosen in ways)
    costs = PlacedCosts(regions, whole)
    found = costs.cheapest(steps)
    if math.isinf(best):
        assert found is None
        return
    assert found is not None
    assert found.copies == COUNT
    assert found.cost == pytest.approx(best)
    assert walked(steps, regions, whole, found.places) == pytest.approx(best)
    order, only = held(steps, regions, found.places)
    again = PlacedCosts(only, whole).cheapest(order)
    assert again is not None
    assert again.places == found.places
    assert again.cost == pytest.approx(best)


def test_a_faster_device_is_used_where_its_transfers_are_paid() -> None:
    slow_then_fast = PlacedRegion((math.inf, 10.0, 2.0), {0: "changed"})
    host = PlacedRegion((0.0, math.inf, math.inf), {0: "read"})
    data = MovedStructure(((0.0, 1.0, 50.0), (1.0, 0.0, 51.0), (50.0, 51.0, 0.0)), HOST)
    for turns, place in ((5, CPU), (20, GPU)):
        steps = (RegionLoop(turns, (RegionEntry(0),)), RegionEntry(1))
        found = PlacedCosts([slow_then_fast, host], [data]).cheapest(steps)
        assert found is not None
        assert found.places == (place, HOST)
        assert found.cost == (2 + 10 * turns if place == CPU else 100 + 2 * turns)


def test_what_is_only_read_is_copied_once_to_each_device() -> None:
    regions = [
        PlacedRegion((math.inf, 1.0, 90.0), {0: "read", 1: "changed"}),
        PlacedRegion((math.inf, 90.0, 1.0), {0: "read", 2: "changed"}),
    ]
    moves = ((0.0, 7.0, 7.0), (7.0, 0.0, 14.0), (7.0, 14.0, 0.0))
    structures = [MovedStructure(moves, HOST)] * 3
    found = PlacedCosts(regions, structures, 400).cheapest((RegionLoop(100, (RegionEntry(0), RegionEntry(1))),))
    assert found is not None
    assert found.places == (CPU, GPU)
    assert found.cost == 4 * 7 + 2 * 100  # each device has its copy of the first one, and one of its own


def test_fewer_copies_where_there_are_many_states() -> None:
    region = PlacedRegion((math.inf, 1.0, 2.0), {0: "read", 1: "read", 2: "read"})
    moves = ((0.0, 1.0, 1.0), (1.0, 0.0, 2.0), (1.0, 2.0, 0.0))
    found = PlacedCosts([region], [MovedStructure(moves, HOST)] * 3, 100).cheapest((RegionEntry(0),))
    assert found is not None
    assert (found.copies, found.places, found.cost) == (1, (CPU,), 4.0)
    with pytest.raises(ValueError, match="too many states"):
        PlacedCosts([region], [MovedStructure(moves, HOST)] * 3, 20)
