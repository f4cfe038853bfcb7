"""The plan over machines: chosen by medians, told with its interval, and held against the best of this machine alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from layout_advise.decide.policy import DECIDE
from layout_advise.devices.profile import MachineProfile
from layout_advise.devices.table import MachineTable, RegionThere, elsewhere
from layout_advise.plan.placed import MovedStructure, PlacedCosts, PlacedRegion, PlacedWay, held
from layout_advise.plan.region_order import RegionEntry, RegionLoop, RegionStep, entries, leaves, turns
from layout_advise.regions.logged_order import LoggedOrder
from layout_advise.regions.over_regions import UNTOUCHED, best_variant, gain_around, layout_of
from layout_advise.regions.planned import MeasuredRegions
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import Action, HotspotReport
from layout_advise.reports.model.plan import (
    MachinePlace,
    MachinesPlan,
    OrderStep,
    PlanMachine,
    ProgramPlan,
    RegionOrderReport,
)

MOST_LAYOUTS = 4
"""Layouts that are tried besides the present one: those by which regions gain most, on any machine."""
MOST_STATES = 200
"""The way is a matter of seconds with so many places of all structures together; beyond, fewer layouts are tried."""


def with_machines(report: Report, profiles: Sequence[MachineProfile]) -> Report:
    """The report with a plan over this machine and those of ``profiles``."""
    if not profiles:
        return report
    order = report.plan.order if report.plan is not None else _order_of_one(report)
    steps = _steps(order.steps, [_name(h) for h in report.hotspots])
    machines = tuple(one.machine for one in profiles)
    found: tuple[MachineTable, list[str]] | str
    found = _table(report, profiles, steps) if steps else order.reason or "the order of the regions is not known"
    plan = _no_plan(machines, found) if isinstance(found, str) else _plan(*found, steps, machines)
    whole = report.plan or ProgramPlan(order, ())
    return msgspec.structs.replace(report, plan=msgspec.structs.replace(whole, machines=plan))


def _name(hotspot: HotspotReport) -> str:
    return hotspot.name or hotspot.symbol


def _order_of_one(report: Report) -> RegionOrderReport:
    """The order of a single region, which is all of its calls; unknown where there are several without a plan."""
    if len(report.hotspots) != 1 or not report.hotspots[0].calls:
        return RegionOrderReport("", reason="the order of the regions is not known: they have no layouts in common")
    (one,) = report.hotspots
    step = OrderStep(None, one.calls, (OrderStep(_name(one)),))
    return RegionOrderReport(f"{_name(one)}×{one.calls}", (step,), {_name(one): one.calls})


def _steps(steps: Sequence[OrderStep], names: Sequence[str]) -> tuple[RegionStep, ...]:
    """The order with regions by number."""
    return tuple(
        RegionLoop(step.turns, _steps(step.body, names)) if step.body else RegionEntry(names.index(step.hotspot or ""))
        for step in steps
    )


def _table(
    report: Report, profiles: Sequence[MachineProfile], steps: tuple[RegionStep, ...]
) -> tuple[MachineTable, list[str]] | str:
    """Times and costs of the regions, and what is missing; or why there are none."""
    shares = _shares(report)
    often = entries(steps)
    counts = tuple(often[n] for n in range(len(report.hotspots)))
    calls = tuple(count or h.calls for count, h in zip(counts, report.hotspots, strict=True))
    whole = MeasuredRegions(report.hotspots, shares, LoggedOrder(steps, calls)).program_ns
    if not whole:
        return "how long the calls of a region take in the program is not known"
    each = [elsewhere(report.hotspots, profile) for profile in profiles]
    missing = [text for _, texts in each for text in texts]
    there: tuple[tuple[RegionThere | None, ...], ...] = tuple(one for one, _ in each)
    return MachineTable(report.hotspots, shares, counts, whole, _layouts(report), tuple(profiles), there), missing


def _shares(report: Report) -> tuple[float, ...]:
    """The part of the program's time that each region has for itself."""
    rows = report.plan.structures[0].regions if report.plan is not None and report.plan.structures else ()
    known = {one.hotspot: one.share for one in rows}
    return tuple(known.get(_name(h), h.share) for h in report.hotspots)


def _layouts(report: Report) -> tuple[str, ...]:
    """The layouts that are tried: those whose gain is known in all regions, of one region those that were measured."""
    if len(report.hotspots) > 1:
        return tuple(row.candidate for row in report.over_regions if row.program is not None)[:MOST_LAYOUTS]
    own = report.hotspots[0]
    names = dict.fromkeys(layout_of(c) for c in own.candidates)
    measured = {name: best for name in names if (best := best_variant(own, name)) is not None}
    return tuple(sorted(measured, key=lambda name: -gain_around(measured[name]).median))[:MOST_LAYOUTS]


class _Ways:
    """Ways over machines and their costs. Where the program's other code uses a structure between entries, it is here."""

    def __init__(self, table: MachineTable, steps: tuple[RegionStep, ...]) -> None:
        self.table = table
        units = table.units()
        self.uses = [table.uses(region, units) for region in range(len(table.hotspots))]
        self.between = table.used_between(units)
        self.moved: list[MovedStructure] = table.moved(units)
        self.steps = (*self._with_others(steps), RegionEntry(len(self.uses) + 1))
        self.numbers = range(len(self.uses))

    def _with_others(self, steps: Sequence[RegionStep]) -> tuple[RegionStep, ...]:
        """Behind each entry what the rest of the program does with structures, where it uses some."""
        made: list[RegionStep] = []
        for step in steps:
            if isinstance(step, RegionLoop):
                made.append(RegionLoop(step.turns, self._with_others(step.body)))
            else:
                made += [step, *([RegionEntry(len(self.uses))] if self.between else [])]
        return tuple(made)

    def regions(self, end: str, allowed: Callable[[int], bool] = lambda _machine: True) -> list[PlacedRegion]:
        """The regions, then what runs on this machine alone: the rest of the program between entries, and its end, where it
        has all structures."""
        places = self.table.places
        found = []
        for region in self.numbers:
            times = self.table.times(region, end)
            kept = tuple(t if allowed(machine) else np.inf for t, (machine, _) in zip(times, places, strict=True))
            found.append(PlacedRegion(kept, self.uses[region]))
        own = tuple(0.0 if machine == 0 else np.inf for machine, _ in places)
        found.append(PlacedRegion(own, self.between))
        return [*found, PlacedRegion(own, dict.fromkeys(range(len(self.moved)), "read"))]

    def best(self, allowed: Callable[[int], bool]) -> PlacedWay | None:
        """The cheapest way by medians over the machines that are allowed."""
        return PlacedCosts(self.regions("median", allowed), self.moved, MOST_STATES).cheapest(self.steps)

    def cost(self, way: PlacedWay, end: str) -> float:
        """The cost of the same places with another end of all intervals."""
        steps, regions = held(self.steps, self.regions(end), way.places)
        again = PlacedCosts(regions, self.moved, MOST_STATES).cheapest(steps)
        return again.cost if again is not None else float(np.inf)


def _plan(
    table: MachineTable, missing: Sequence[str], steps: tuple[RegionStep, ...], machines: tuple[PlanMachine, ...]
) -> MachinesPlan:
    ways = _ways(table, steps)
    best = ways.best(lambda _machine: True) if ways is not None else None
    here = ways.best(lambda machine: machine == 0) if ways is not None else None
    if ways is None or best is None or here is None:
        return _no_plan(machines, "there are too many structures to be placed")
    table = ways.table
    placed = sum(share for share, often in zip(table.shares, table.entries, strict=True) if often)
    rest = table.whole * max(0.0, 1.0 - placed)  # regions that are not in the order stay as they are
    ends = ("median", "lo", "hi")
    ours, theirs = ([rest + ways.cost(way, end) for end in ends] for way in (best, here))
    places = _places(ways, best)
    elsewhere_too = any(one.machine is not None for one in places)
    over = Interval(theirs[0] / ours[0], theirs[2] / ours[1], theirs[1] / ours[2]) if elsewhere_too else UNTOUCHED
    working = sum(
        ways.table.times(region)[place] * often
        for region, place, often in zip(leaves(ways.steps), best.places, turns(ways.steps), strict=True)
        if region in ways.numbers
    )
    return MachinesPlan(
        action=_action(table, over, elsewhere_too),
        machines=machines,
        places=places,
        program=_speedup(table.whole, ours),
        here=_speedup(table.whole, theirs),
        over_here=over,
        moving=max(0.0, ours[0] - rest - working) / table.whole,
        missing=tuple(missing),
    )


def _speedup(whole: float, costs: Sequence[float]) -> Interval:
    median, lo, hi = (whole / cost for cost in costs)
    return Interval(median, lo, hi)


def _ways(table: MachineTable, steps: tuple[RegionStep, ...]) -> _Ways | None:
    """With as many layouts as there is room for; None where there is none."""
    for many in range(len(table.layouts), -1, -1):
        ways = _Ways(replace(table, layouts=table.layouts[:many]), steps)
        try:
            PlacedCosts(ways.regions("median"), ways.moved, MOST_STATES)
        except ValueError:
            continue
        return ways
    return None


def _action(table: MachineTable, over: Interval, elsewhere_too: bool) -> Action:
    least = max(DECIDE.smallest_gain(h.snapshot) for h in table.hotspots)
    if elsewhere_too and over.lo >= least:
        return "change"
    return "keep" if over.hi < least else "undecided"


def _places(ways: _Ways, way: PlacedWay) -> tuple[MachinePlace, ...]:
    table, found = ways.table, dict[tuple[str, str | None, str | None], int]()
    for region, place, often in zip(leaves(ways.steps), way.places, turns(ways.steps), strict=True):
        if region not in ways.numbers:
            continue
        machine, layout = table.places[place]
        name = table.profiles[machine - 1].machine.name if machine else None
        key = _name(table.hotspots[region]), name, table.layouts[layout - 1] if layout else None
        found[key] = found.get(key, 0) + often
    return tuple(MachinePlace(*key, often) for key, often in found.items())


def _no_plan(machines: tuple[PlanMachine, ...], reason: str) -> MachinesPlan:
    return MachinesPlan("undecided", machines, (), None, None, None, reason=reason)
