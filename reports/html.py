"""The HTML report: one file, no URL, readable without scripts."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from layout_advise.reports import figures, wording
from layout_advise.reports.model import CandidateReport, HotspotReport, Report

MOST_SOURCES = 8


def environment() -> Environment:
    """The template environment: everything is escaped unless it is marked safe here."""
    env = Environment(
        loader=PackageLoader("layout_advise.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["size"] = wording.size
    env.filters["ns"] = wording.nanoseconds
    env.filters["number"] = wording.number
    env.filters["interval"] = wording.interval
    env.filters["families"] = wording.families
    env.filters["traffic"] = wording.traffic
    env.filters["drawing"] = lambda svg: Markup(svg) if svg.lstrip().startswith("<svg") else ""
    return env


def chosen(hotspot: HotspotReport) -> CandidateReport | None:
    """The candidate to show the layout of: the advised one, else the best that was measured."""
    order = wording.ranked(hotspot)
    return next((c for c in order if c.id == hotspot.verdict.candidate), order[0] if order else None)


def render(report: Report) -> str:
    """The whole page."""
    hotspots = [
        {
            "data": h,
            "place": wording.place(h),
            "ranked": wording.ranked(h),
            "chosen": chosen(h),
            "figure": Markup(figures.speedups(h)),
            "sources": [c for c in wording.ranked(h) if c.source][:MOST_SOURCES],
            "structure_lines": {s.id: wording.structure_line(s) for s in h.structures},
        }
        for h in report.hotspots
    ]
    template = environment().get_template("report.html")
    return template.render(report=report, hotspots=hotspots, evidence=wording.EVIDENCE_NOTES, most_sources=MOST_SOURCES)
