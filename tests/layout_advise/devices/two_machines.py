"""Reports of one program on two machines, as far as plans look at them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from layout_advise.plan.region_order import RegionStep
from layout_advise.regions.logged_order import LoggedOrder
from layout_advise.regions.over_regions import over_regions
from layout_advise.regions.planned import MeasuredRegions, program_plan
from layout_advise.reports.model.candidate import Conversion, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport, Original
from layout_advise.reports.model.structure import FieldUse
from tests.support.sample_report import candidate, report


def region(
    name: str, ns: float, calls: int, gains: Mapping[int, float], *, ms: float = 0.0, writes: int = 1, **changes: object
) -> HotspotReport:
    """A region of so many calls of ``ns`` with layouts of these gains; ``ms`` is what converting takes, there and back."""
    (one,) = report().hotspots
    conversion = Conversion(ms, ms, None, ("x",), ("x",))
    rows = tuple(candidate(n, Interval(g, g, g, 9), conversion=conversion, bytes=None) for n, g in gains.items())
    rows = tuple(replace(row, bytes=candidate(1, None).bytes) for row in rows)
    fields = (FieldUse("x", "double", 0, 8, 1000, writes), FieldUse("v", "double", 8, 8, 1000, 0))
    structures = tuple(replace(s, fields=fields) for s in one.structures)
    found = replace(one, symbol=name, name=name, calls=calls, original=Original(None, None, ns), candidates=rows)
    return replace(found, structures=structures, share=0.4, **changes)


def of_regions(hotspots: tuple[HotspotReport, ...], steps: tuple[RegionStep, ...], shares: tuple[float, ...]) -> Report:
    """The report of a run that studied these; ``shares`` of the program's time that each has for itself."""
    hotspots = tuple(replace(h, share=share) for h, share in zip(hotspots, shares, strict=True))
    names = tuple(dict.fromkeys(c.id for h in hotspots for c in h.candidates))
    table = over_regions(hotspots, shares, names)
    order = LoggedOrder(steps, tuple(h.calls for h in hotspots))
    plan = program_plan(MeasuredRegions(hotspots, shares, order), table, ())
    return replace(report(), hotspots=hotspots, over_regions=table, plan=plan)
