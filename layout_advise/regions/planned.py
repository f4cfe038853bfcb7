"""The plan of the whole program, from what layouts gain in the regions and what converting to them takes.

Layouts of the same memory exclude each other: structures that some candidate lays out together are planned together, and no
gain of two plans is multiplied, as the two were not measured at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import networkx as nx

from layout_advise.decide.policy import DECIDE
from layout_advise.plan.region_order import RegionEntry, RegionStep, leaves, turns
from layout_advise.plan.structure_plan import LayoutTable, PlannedWay, best_ways
from layout_advise.plan.whole_program import UNCHANGED, Gain, RegionPart, amdahl
from layout_advise.regions.logged_order import LoggedOrder
from layout_advise.regions.over_regions import layout_of
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import OverRegions
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.plan import (
    InRegion,
    OrderStep,
    PlanPlace,
    ProgramPlan,
    RegionOrderReport,
    StructurePlan,
)
from layout_advise.reports.words import plan_words
from layout_advise.reports.words.headline import data_name
from layout_advise.reports.words.quantities import is_cpu_time

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A region that was not measured, the part of the samples that fell in it, and which layouts are of structures that it
    uses too."""

    name: str
    share: float
    layouts: frozenset[str]


@dataclass(frozen=True, slots=True)
class MeasuredRegions:
    """The reports of the regions, and the part of the program's time that each has for itself. ``order`` numbers them so."""

    hotspots: tuple[HotspotReport, ...]
    shares: tuple[float, ...]
    order: LoggedOrder

    @property
    def program_ns(self) -> float | None:
        """The program's time, from the times of calls and their numbers: the least that a region tells, as conversions then
        count most. None where one is not known."""
        counts = self.order.counts or tuple(h.calls for h in self.hotspots)
        each = [h.original.ns_in_situ or h.original.ns_steady for h in self.hotspots]
        if not all(each) or not sum(h.share for h in self.hotspots):
            return None
        by_region = [n * (ns or 0.0) / h.share for n, ns, h in zip(counts, each, self.hotspots, strict=True) if h.share]
        return min(by_region, default=None)


def program_plan(
    seen: MeasuredRegions, rows: Sequence[OverRegions], held: Sequence[str], unmeasured: Sequence[Unmeasured] = ()
) -> ProgramPlan | None:
    """The plan of all structures that have a layout whose gain is known in all regions; None where there is none."""
    known = {row.candidate: row for row in rows if row.program is not None}
    groups = [
        with_unmeasured(
            _planned(seen, [known[name] for name in group], places),
            [one for one in unmeasured if not one.layouts.isdisjoint(group)],
            _least(seen.hotspots),
        )
        for group, places in _groups(seen.hotspots, known)
    ]
    if not groups:
        return None
    groups.sort(key=lambda one: -one.program.median)
    return ProgramPlan(_order(seen), tuple(groups), tuple(held))


def _groups(hotspots: Sequence[HotspotReport], known: Mapping[str, OverRegions]) -> list[tuple[list[str], set[Place]]]:
    """The candidates that lay out the same memory, directly or by way of others, and that memory."""
    graph: nx.Graph[str | Place] = nx.Graph()
    for hotspot in hotspots:
        places = {s.id: (s.base, s.bytes) for s in hotspot.structures}
        for candidate in hotspot.candidates:
            if (name := layout_of(candidate)) in known:
                graph.add_edges_from((name, places[s]) for s in candidate.structures if s in places)
    found = []
    for part in nx.connected_components(graph):
        names = [name for name in known if name in part]
        found.append((names, {one for one in part if isinstance(one, tuple)}))
    return found


def _planned(seen: MeasuredRegions, rows: Sequence[OverRegions], places: set[Place]) -> StructurePlan:
    gains = [(UNCHANGED, *(_gain(row.regions[number].speedup) for row in rows)) for number in range(len(seen.hotspots))]
    conversions = [_conversions(seen, row.candidate) for row in rows]
    into, back = ((0.0, *(one[side] for one in conversions)) for side in (0, 1))
    table = LayoutTable(seen.shares, tuple(gains), into, back)
    ways = best_ways(seen.order.steps, table)
    names = [data_name(s) for h in seen.hotspots for s in h.structures if (s.base, s.bytes) in places]
    return _report(seen, rows, ways.best, ways.second, tuple(dict.fromkeys(names)))


def with_unmeasured(plan: StructurePlan, users: Sequence[Unmeasured], least: float) -> StructurePlan:
    """``plan`` with the regions that use its structures and were not measured: nothing is known of them, so the lower end of
    what the program gains holds that they take ``DECIDE.may_take`` times as long. Where less than ``least`` is left of it
    then, no change is advised."""
    share = min(sum(one.share for one in users), 1.0)
    if share <= 0.0:
        return plan
    gain = plan.program.lo if plan.action == "change" else plan.program.median
    program = _with_lost(plan.program, plan.label, share)
    return msgspec.structs.replace(
        plan,
        action="undecided" if plan.action == "change" and program.lo < least else plan.action,
        program=program,
        second_program=_with_lost(plan.second_program, plan.second, share) if plan.second_program is not None else None,
        plain_program=_with_lost(plan.plain_program, plan.label, share) if plan.plain_program is not None else None,
        unmeasured=tuple(one.name for one in users),
        unmeasured_share=share,
        unmeasured_take=DECIDE.may_take,
        if_they_stay=plan.program,
        may_take=1.0 + (1.0 - 1.0 / gain) / share if gain > 1.0 else None,
    )


def _with_lost(program: Interval, label: str, share: float) -> Interval:
    """The gain of the program, with a lower end that holds what such a part of it may lose by the layout."""
    if label == plan_words.AS_IT_IS:
        return program
    return msgspec.structs.replace(program, lo=1.0 / (1.0 / program.lo + share * (DECIDE.may_take - 1.0)))


def written_plainly(regions: Sequence[InRegion]) -> Interval | None:
    """The program's speedup by a permanent layout whose loops are written plainly; None where its gains are of these, or
    where one of them was not measured so."""
    if all(one.build in ("", "plain") for one in regions):
        return None
    gains = [one.plain if one.build else one.speedup for one in regions]
    if not all(gains):
        return None
    return _interval(amdahl([RegionPart(one.share, _gain(gain)) for one, gain in zip(regions, gains, strict=True)]))


def _gain(speedup: Interval | None) -> Gain:
    assert speedup is not None  # of rows whose gain of the program is known
    return Gain(speedup.median, speedup.lo, speedup.hi)


def _conversions(seen: MeasuredRegions, name: str) -> tuple[float | None, float | None]:
    """The cost of a conversion to a layout and back, in parts of the program's time; None where it was not timed."""
    whole = seen.program_ns
    if not whole or (found := conversion_ns(seen.hotspots, name)) is None:
        return None, None
    return found[0] / whole, found[1] / whole


def conversion_ns(hotspots: Sequence[HotspotReport], name: str) -> tuple[float, float] | None:
    """The cost of a conversion to a layout and back: as it was timed around a call of one region, times the number of fields
    that any of them needs over that of this one; the greatest over the regions. None where it was not timed."""
    rows = [c.conversion for h in hotspots for c in h.candidates if layout_of(c) == name and c.conversion is not None]
    if not rows:
        return None
    every_in = frozenset[str]().union(*(c.copied_in for c in rows))
    every_out = frozenset[str]().union(*(c.copied_out for c in rows))
    into = max(c.in_ms * (len(every_in) / len(c.copied_in) if c.copied_in else 1.0) for c in rows)
    back = max(c.out_ms * (len(every_out) / len(c.copied_out) if c.copied_out else 1.0) for c in rows)
    return into * 1e6, back * 1e6


def _report(
    seen: MeasuredRegions,
    rows: Sequence[OverRegions],
    best: PlannedWay,
    second: PlannedWay | None,
    names: tuple[str, ...],
) -> StructurePlan:
    permanent = best.permanent
    if permanent:
        regions = rows[permanent - 1].regions
    else:
        parts = zip(seen.hotspots, seen.shares, best.regions, strict=True)
        regions = tuple(InRegion(h.name or h.symbol, share, _interval(gain)) for h, share, gain in parts)
    return StructurePlan(
        structures=names,
        action=_action(seen, best, second),
        candidate=rows[permanent - 1].candidate if permanent else None,
        label=_label(rows, best),
        places=_places(seen, rows, best) if seen.order.steps is not None else (),
        program=_interval(best.program),
        regions=regions,
        measured=sum(seen.shares),
        converting=best.converting,
        losing=tuple(one.hotspot for one in regions if one.speedup is not None and one.speedup.hi < 1.0),
        second=_label(rows, second) if second is not None else "",
        second_program=_interval(second.program) if second is not None else None,
        plain_program=written_plainly(regions) if permanent else None,
        cpu_time=any(is_cpu_time(h.waits, h.processors) for h in seen.hotspots),
    )


def _action(seen: MeasuredRegions, best: PlannedWay, second: PlannedWay | None) -> Literal["change", "keep", "undecided"]:
    least = _least(seen.hotspots)
    if best.permanent != 0 and best.program.lo >= least:
        return "change"
    others = [way.program.hi for way in (best, second) if way is not None and way.permanent != 0]
    return "keep" if all(hi < least for hi in others) else "undecided"


def _least(hotspots: Sequence[HotspotReport]) -> float:
    """The least gain that is advised."""
    return max(DECIDE.smallest_gain(h.snapshot) for h in hotspots)


def _label(rows: Sequence[OverRegions], way: PlannedWay) -> str:
    """The layouts of a way in words: one for good, or those of the regions that change."""
    used = list(dict.fromkeys(way.layouts))
    words = [
        plan_words.AS_IT_IS if layout == 0 else f"{rows[layout - 1].candidate} ({rows[layout - 1].label})" for layout in used
    ]
    return words[0] if len(words) == 1 else f"{' / '.join(words)}, converted between regions"


def _interval(gain: Gain) -> Interval:
    return Interval(gain.median, gain.lo, gain.hi)


def _places(seen: MeasuredRegions, rows: Sequence[OverRegions], way: PlannedWay) -> tuple[PlanPlace, ...]:
    """A place is converted before where the one before it, in the order or in the turn before, has another layout."""
    steps = seen.order.steps or ()
    before = _before(steps)
    return tuple(
        PlanPlace(
            seen.hotspots[region].name or seen.hotspots[region].symbol,
            rows[layout - 1].candidate if layout else None,
            often,
            any(way.layouts[k] != layout for k in before[number]),
        )
        for number, (region, layout, often) in enumerate(zip(leaves(steps), way.layouts, turns(steps), strict=True))
    )


def _before(steps: Sequence[RegionStep]) -> list[set[int]]:
    """For each place the places that may come right before it."""
    found: list[set[int]] = []

    def go(parts: Sequence[RegionStep], last: set[int]) -> set[int]:
        for part in parts:
            if isinstance(part, RegionEntry):
                found.append(set(last))
                last = {len(found) - 1}
            else:
                first = len(found)
                last = go(part.body, last)
                if part.turns > 1:
                    found[first] |= last
        return last

    go(steps, set())
    return found


def _order(seen: MeasuredRegions) -> RegionOrderReport:
    names = [h.name or h.symbol for h in seen.hotspots]
    order = seen.order
    entries = dict(zip(names, order.counts, strict=True)) if order.counts else {}
    if order.steps is None:
        return RegionOrderReport("", (), entries, order.reason)
    return RegionOrderReport(order.text(names), _steps(order.steps, names), entries, order.reason)


def _steps(steps: Sequence[RegionStep], names: Sequence[str]) -> tuple[OrderStep, ...]:
    return tuple(
        OrderStep(names[step.region])
        if isinstance(step, RegionEntry)
        else OrderStep(None, step.turns, _steps(step.body, names))
        for step in steps
    )
