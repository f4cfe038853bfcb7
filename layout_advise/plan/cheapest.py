"""The cheapest way through the order of regions: a layout for each place of the nest, conversions between them.

A plan gives each place of the folded order (:func:`layout_advise.plan.region_order.leaves`) one layout, the same in every
turn. In the (min, +) algebra a part of the order is a matrix: the least cost with a given layout at its first place and one
at its last. A loop of n turns is n times its body and n - 1 times the conversion from its end to its beginning, so that no
turn is walked: the shortest path over (region, layout) of ADHA's PDL, with its loops folded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from layout_advise.plan.region_order import RegionEntry, RegionStep, leaves

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LayoutCosts:
    """``times[region, layout]`` is the cost of one entry, infinite where that layout cannot be used there;
    ``conversions[region, old, new]`` that of converting before an entry of the region. One unit for all."""

    times: Matrix
    conversions: Matrix


@dataclass(frozen=True, slots=True)
class CheapestWay:
    """A layout for each place of the order, and what all of it costs."""

    layouts: tuple[int, ...]
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class _Passage:
    """A part of the order: ``cost[first, last]`` of the best choice in between, which ``pick`` tells."""

    region: int
    cost: Matrix
    pick: Callable[[int, int], tuple[int, ...]]


def cheapest(steps: Sequence[RegionStep], costs: LayoutCosts) -> CheapestWay | None:
    """The plan that costs least; None where no layout is known for some region. The first layout costs no conversion: the
    program can allocate its data so."""
    return _cheapest(steps, [costs.times[region] for region in leaves(steps)], costs)


def second_cheapest(steps: Sequence[RegionStep], costs: LayoutCosts, best: CheapestWay) -> CheapestWay | None:
    """The best plan that has another layout than ``best`` at a place where that makes a difference; None where there is
    none."""
    found = []
    at_places = [costs.times[region] for region in leaves(steps)]
    for place, layout in enumerate(best.layouts):
        if (at_places[place] == at_places[place][layout]).all():
            continue
        without = at_places[place].copy()
        without[layout] = np.inf
        found.append(_cheapest(steps, [*at_places[:place], without, *at_places[place + 1 :]], costs))
    return min((way for way in found if way is not None), key=lambda way: way.cost, default=None)


def cost_of_way(steps: Sequence[RegionStep], costs: LayoutCosts, layouts: Sequence[int]) -> float:
    """The cost of a plan, without walking the turns."""
    only = []
    for region, layout in zip(leaves(steps), layouts, strict=True):
        row = np.full_like(costs.times[region], np.inf)
        row[layout] = costs.times[region, layout]
        only.append(row)
    way = _cheapest(steps, only, costs)
    return way.cost if way is not None else np.inf


def _cheapest(steps: Sequence[RegionStep], at_places: Sequence[Matrix], costs: LayoutCosts) -> CheapestWay | None:
    whole = _folded(steps, iter(at_places).__next__, costs.conversions)
    first, last = np.unravel_index(int(np.argmin(whole.cost)), whole.cost.shape)
    least = float(whole.cost[first, last])
    return CheapestWay(whole.pick(int(first), int(last)), least) if np.isfinite(least) else None


def _folded(steps: Sequence[RegionStep], row: Callable[[], Matrix], conversions: Matrix) -> _Passage:
    parts = [_stretch(step, row, conversions) for step in steps]
    return reduce(lambda before, after: _joined(before, after, conversions), parts)


def _stretch(step: RegionStep, row: Callable[[], Matrix], conversions: Matrix) -> _Passage:
    if isinstance(step, RegionEntry):
        times = row()
        cost = np.full((len(times), len(times)), np.inf)
        np.fill_diagonal(cost, times)
        return _Passage(step.region, cost, lambda first, last: (first,))
    body = _folded(step.body, row, conversions)
    if step.turns == 1:
        return body
    again = conversions[body.region].T  # from the last layout of a turn to the first of the next one
    return _Passage(body.region, step.turns * body.cost + (step.turns - 1) * again, body.pick)


def _joined(before: _Passage, after: _Passage, conversions: Matrix) -> _Passage:
    """One after the other, with the conversion between them."""
    into, lasts = _least(before.cost, conversions[after.region])
    whole, firsts = _least(into, after.cost)

    def pick(first: int, last: int) -> tuple[int, ...]:
        entered = int(firsts[first, last])
        return before.pick(first, int(lasts[first, entered])) + after.pick(entered, last)

    return _Passage(before.region, whole, pick)


def _least(before: Matrix, after: Matrix) -> tuple[Matrix, NDArray[np.int_]]:
    """``min`` over ``k`` of ``before[i, k] + after[k, j]``, and the ``k``; row by row, as there can be hundreds of each."""
    between = np.array([(row[:, None] + after).argmin(axis=0) for row in before])
    cost = np.take_along_axis(before, between, axis=1) + np.take_along_axis(after.T, between.T, axis=1).T
    return cost, between
