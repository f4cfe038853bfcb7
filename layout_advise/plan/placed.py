"""The cheapest device and layout for each region, where structures must be where a region runs: with valid copies.

A *place* is a device with a layout, or the host. A structure has valid copies at some places. A region that reads it needs
one where it runs; one that changes it leaves no other. A state says where all structures have copies, so that a plan is a
way through states (:mod:`layout_advise.plan.cheapest`) whose edges are the copies made between regions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from layout_advise.plan.cheapest import LayoutCosts, Matrix, cheapest
from layout_advise.plan.region_order import RegionEntry, RegionLoop, RegionStep, leaves

Use = Literal["read", "changed", "overwritten"]
Copies = frozenset[int]
"""The places at which a structure has a valid copy."""

MOST_STATES = 800
"""With more states than that, structures have fewer copies at once: three, two, one."""


@dataclass(frozen=True, slots=True)
class PlacedRegion:
    """``times[place]`` of one entry, infinite where it cannot run; ``uses`` by structure's number."""

    times: tuple[float, ...]
    uses: Mapping[int, Use]


@dataclass(frozen=True, slots=True)
class MovedStructure:
    """``moves[old][new]`` is what a copy from one place to another costs; ``home`` the place where it is at first, None
    where it holds nothing yet."""

    moves: tuple[tuple[float, ...], ...]
    home: int | None


@dataclass(frozen=True, slots=True)
class PlacedWay:
    """A place for each leaf of the order, and what all of it costs. ``copies``: no structure has more at once."""

    places: tuple[int, ...]
    cost: float
    copies: int


class PlacedCosts:
    """The states of some regions and structures, and their costs."""

    def __init__(
        self, regions: Sequence[PlacedRegion], structures: Sequence[MovedStructure], most_states: int = MOST_STATES
    ) -> None:
        """Raises ValueError where structures with one copy each have more states than ``most_states``."""
        self.regions = regions
        places = range(len(structures[0].moves)) if structures else range(1)
        least = (
            0 if any("overwritten" in region.uses.values() for region in regions) else 1
        )  # no copy: it will be overwritten
        for self.copies in range(len(places), 0, -1):
            sets = [frozenset(one) for size in range(least, self.copies + 1) for one in combinations(places, size)]
            if len(sets) ** len(structures) <= most_states:
                break
        else:
            raise ValueError(f"{len(structures)} structures at {len(places)} places have too many states")
        self.sets = sets
        self.states = list(product(range(len(sets)), repeat=len(structures)))
        self.copying = [_copying(one, sets) for one in structures]
        placed = [self._placed(region) for region in regions]
        self.places = np.array([[place for place, _ in row] for row in placed], dtype=int)
        conversions = [self._conversions(region, own) for region, own in zip(regions, self.places, strict=True)]
        count = len(self.states)
        times = [[time for _, time in row] for row in placed]
        begin = [0.0 if self._is_begin(state, structures) else np.inf for state in self.states]
        self.costs = LayoutCosts(np.array([*times, begin]), np.array([*conversions, np.zeros((count, count))]))

    def cheapest(self, steps: Sequence[RegionStep]) -> PlacedWay | None:
        """The plan that costs least; None where some region can run nowhere."""
        found = cheapest(self._begun(steps), self.costs)
        if found is None:
            return None
        own = found.layouts[1:]
        places = tuple(int(self.places[region, state]) for region, state in zip(leaves(steps), own, strict=True))
        return PlacedWay(places, found.cost, self.copies)

    def _begun(self, steps: Sequence[RegionStep]) -> tuple[RegionStep, ...]:
        return (RegionEntry(len(self.regions)), *steps)

    def _is_begin(self, state: tuple[int, ...], structures: Sequence[MovedStructure]) -> bool:
        pairs = zip(state, structures, strict=True)
        return all(one.home is None or self.sets[number] == frozenset((one.home,)) for number, one in pairs)

    def _placed(self, region: PlacedRegion) -> list[tuple[int, float]]:
        """By state behind an entry: where it ran, and how long: the fastest place at which all that it uses has copies."""
        found = []
        for state in self.states:
            common = frozenset(range(len(region.times))).intersection(*(self.sets[state[k]] for k in region.uses))
            time, place = min(((region.times[place], place) for place in common), default=(np.inf, 0))
            found.append((place, time))
        return found

    def _conversions(self, region: PlacedRegion, places: NDArray[np.int_]) -> Matrix:
        """Copies that are made before an entry, and those of what it changed that are made right behind it."""
        whole = np.full((len(self.states), len(self.states)), np.inf)
        for place in sorted(set(map(int, places))):
            parts = [self._copied(number, region.uses.get(number), place) for number in range(len(self.copying))]
            cost = np.zeros((1, 1))
            for part in parts:
                cost = (cost[:, None, :, None] + part[None, :, None, :]).reshape(cost.shape[0] * len(part), -1)
            whole[:, places == place] = cost[:, places == place]
        return whole

    def _copied(self, structure: int, use: Use | None, place: int) -> Matrix:
        """The cost of one structure's copies by its places before and behind an entry at a place."""
        copying = self.copying[structure]
        if use is None or use == "read":
            return copying
        alone = self.sets.index(frozenset((place,)))
        before: Matrix = copying[:, alone][:, None] if use == "changed" else np.zeros((len(self.sets), 1))
        whole: Matrix = before + copying[alone][None, :]
        return whole


def held(
    steps: Sequence[RegionStep], regions: Sequence[PlacedRegion], places: Sequence[int]
) -> tuple[tuple[RegionStep, ...], list[PlacedRegion]]:
    """The order and the regions with each leaf at its place only: what the same plan costs where times are others."""
    found: list[PlacedRegion] = []

    def renamed(steps: Sequence[RegionStep]) -> tuple[RegionStep, ...]:
        made: list[RegionStep] = []
        for step in steps:
            if isinstance(step, RegionLoop):
                made.append(RegionLoop(step.turns, renamed(step.body)))
                continue
            own, place = regions[step.region], places[len(found)]
            found.append(replace(own, times=tuple(t if k == place else np.inf for k, t in enumerate(own.times))))
            made.append(RegionEntry(len(found) - 1))
        return tuple(made)

    return renamed(steps), found


def _copying(structure: MovedStructure, sets: Sequence[Copies]) -> Matrix:
    """The cost of coming from copies at some places to copies at others; to drop one costs nothing."""
    moves = np.array(structure.moves, dtype=float)
    for between in range(len(moves)):  # a copy may be made by way of other places
        moves = np.minimum(moves, moves[:, between][:, None] + moves[between][None, :])
    return np.array([[_added(moves, old, new) for new in sets] for old in sets])


def _added(moves: Matrix, old: Copies, new: Copies) -> float:
    """The cost of the copies that are missing, each from the place from which it is cheapest, the cheapest first."""
    there, missing, total = set(old), set(new - old), 0.0
    if missing and not there:
        return float(np.inf)
    while missing:
        cost, place = min((min(moves[source, to] for source in there), to) for to in missing)
        total += float(cost)
        there.add(place)
        missing.remove(place)
    return total
