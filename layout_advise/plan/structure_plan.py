"""The plan of some structures: one layout for good, or conversions on the way through the regions, whichever is cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.plan.cheapest import CheapestWay, LayoutCosts, cheapest, cost_of_way
from layout_advise.plan.region_order import RegionEntry, RegionStep, entries, leaves, turns
from layout_advise.plan.whole_program import UNCHANGED, Gain, RegionPart, amdahl, of_regions


@dataclass(frozen=True, slots=True)
class LayoutTable:
    """Gains of regions by layouts, of which number 0 is the present one.

    ``shares`` are parts of the program's present time, no two overlapping; ``gains[region][layout]``; ``into`` and ``back``
    what one conversion of each layout takes, in parts of that time, from the present layout and to it (None: not known).
    """

    shares: tuple[float, ...]
    gains: tuple[tuple[Gain, ...], ...]
    into: tuple[float | None, ...]
    back: tuple[float | None, ...]

    @property
    def layouts(self) -> range:
        """The numbers of the layouts."""
        return range(len(self.into))

    def conversion(self, old: int, new: int) -> float:
        """The cost of converting: by way of the present layout, as it was timed; infinite where that is not known."""
        if old == new:
            return 0.0
        parts = [self.back[old] if old else 0.0, self.into[new] if new else 0.0]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else np.inf


@dataclass(frozen=True, slots=True)
class PlannedWay:
    """A layout for each place of the order, what the program gains so, and each region. ``converting``: the part of the
    program's present time that conversions take."""

    layouts: tuple[int, ...]
    program: Gain
    regions: tuple[Gain, ...]
    converting: float = 0.0

    @property
    def permanent(self) -> int | None:
        """The one layout of all places; None where there are several."""
        return self.layouts[0] if len(set(self.layouts)) == 1 else None


@dataclass(frozen=True, slots=True)
class BestWays:
    """The best way, and the best of those that differ from it, if there are any."""

    best: PlannedWay
    second: PlannedWay | None


def best_ways(order: Sequence[RegionStep] | None, table: LayoutTable) -> BestWays:
    """The layout that the program gains most by if it is permanent, or the cheapest way with conversions where that surely
    gains more than any permanent one. Where the order is not known (None) nothing is converted."""
    steps = order if order is not None else tuple(RegionEntry(region) for region in range(len(table.shares)))
    places = leaves(steps)
    ways = [_way(steps, table, (layout,) * len(places)) for layout in table.layouts]
    ways.sort(key=lambda way: -way.program.median)
    if order is not None and (found := cheapest(steps, _costs(steps, table))) is not None:
        converted = _converted(steps, table, found)
        if converted.permanent is None and converted.program.lo > ways[0].program.median:
            return BestWays(converted, ways[0])
    return BestWays(ways[0], ways[1] if len(ways) > 1 else None)


def _costs(steps: Sequence[RegionStep], table: LayoutTable) -> LayoutCosts:
    """By entry, in parts of the program's present time."""
    often = entries(steps)
    times = [
        [share / max(often[region], 1) / gain.median for gain in gains]
        for region, (share, gains) in enumerate(zip(table.shares, table.gains, strict=True))
    ]
    between = [[table.conversion(old, new) for new in table.layouts] for old in table.layouts]
    return LayoutCosts(np.array(times), np.broadcast_to(np.array(between), (len(times), len(between), len(between))))


def _converted(steps: Sequence[RegionStep], table: LayoutTable, found: CheapestWay) -> PlannedWay:
    costs = _costs(steps, table)
    often = zip(leaves(steps), found.layouts, turns(steps), strict=True)
    working = sum(costs.times[region, layout] * number for region, layout, number in often)
    whole = cost_of_way(steps, costs, found.layouts)
    return _way(steps, table, found.layouts, max(0.0, float(whole - working)))


def _way(steps: Sequence[RegionStep], table: LayoutTable, layouts: tuple[int, ...], converting: float = 0.0) -> PlannedWay:
    """The gain with these layouts at the places of the order. A region that is not in it counts as unchanged."""
    often = entries(steps)
    parts: dict[int, list[RegionPart]] = {region: [] for region in range(len(table.shares))}
    for region, layout, number in zip(leaves(steps), layouts, turns(steps), strict=True):
        parts[region].append(RegionPart(table.shares[region] * number / often[region], table.gains[region][layout]))
    every = [part for own in parts.values() for part in own]
    regions = tuple(of_regions(own) if own else UNCHANGED for own in parts.values())
    return PlannedWay(layouts, amdahl(every, converting), regions, converting)
