"""The HTML report: one file, no URL, readable without scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from layout_advise.reports import figures, wording
from layout_advise.reports.model import CandidateReport, HotspotReport, Interval, Report

MOST_SOURCES = 8
SOURCE_BUDGET = 500_000
"""Characters of C in the page altogether: it stays a file that opens at once."""
MOST_STRUCTURES = 12
MOST_LAYOUTS = 40


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
    env.filters["inverse"] = wording.inverse
    env.filters["term"] = wording.term
    env.filters["conversion"] = wording.conversion
    env.filters["view"] = wording.view
    env.filters["declaration"] = wording.declaration
    env.filters["shape"] = wording.shape
    env.filters["structure_line"] = wording.structure_line
    env.filters["base_id"] = wording.base_id
    env.filters["kind"] = wording.kind
    env.filters["kind_speedups"] = wording.kind_speedups
    env.filters["shared_lines"] = wording.shared_lines
    env.filters["drawing"] = drawing
    env.filters["stacked"] = stacked
    env.filters["ticks"] = ticks
    return env


def stacked(value: Interval | None) -> Markup:
    """A ratio with its interval below it: narrow enough for a table."""
    if value is None:
        return Markup("–")
    return Markup(f'<b>{value.median:.2f}×</b><br><span class="soft">{value.lo:.2f} to {value.hi:.2f}</span>')


def ticks(text: str) -> Markup:
    """What stands in backticks as code; all of it escaped."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def drawing(svg: str) -> Markup:
    """A drawing as part of the page, its text in the page's ink (a dark page has light text)."""
    if not svg.lstrip().startswith("<svg"):
        return Markup("")
    for ink in ("#222", "#333", "#555", "#666"):
        svg = svg.replace(f'"{ink}"', '"currentColor"')
    return Markup(svg)


def chosen(hotspot: HotspotReport) -> CandidateReport | None:
    """The candidate to show the layout of: the advised one, else the best that was measured."""
    order = wording.ranked(hotspot)
    return next((c for c in order if c.id == hotspot.verdict.candidate), order[0] if order else None)


def sources(found: Sequence[wording.Layout]) -> list[CandidateReport]:
    """The mock-ups to print: the best variants of the first layouts, as many as the budget takes."""
    shown, left = [], SOURCE_BUDGET
    for best in [layout.best for layout in found if layout.best.source][:MOST_SOURCES]:
        left -= len(best.source)
        if left >= 0:
            shown.append(best)
    return shown


def _item(hotspot: HotspotReport) -> dict[str, object]:
    """What the template needs of one hotspot besides its data."""
    best = chosen(hotspot)
    found = wording.layouts(hotspot)
    advised = best is not None and best.id == hotspot.verdict.candidate
    moved = {name for c in hotspot.candidates for name in c.structures}
    plain = [s for s in hotspot.structures if s.id not in moved]
    shown = [s for s in hotspot.structures if s.id in moved] or plain
    return {
        "data": hotspot,
        "place": wording.place(hotspot),
        "layouts": found[:MOST_LAYOUTS],
        "more": max(0, len(found) - MOST_LAYOUTS),
        "chosen": best,
        "advised": advised,
        "permanence": wording.permanence(best, hotspot) if best is not None and advised else "",
        "figure": Markup(figures.speedups(hotspot)),
        "sources": sources(found),
        "shown": shown[:MOST_STRUCTURES],
        "plain": [s for s in plain if s not in shown] + shown[MOST_STRUCTURES:],
        "ablation": wording.ablation(hotspot),
        "noise": wording.noise(hotspot),
        "cold": any(layout.best.cold not in (None, layout.best.speedup) for layout in found),
        "conversion": any(layout.best.conversion for layout in found),
    }


def render(report: Report) -> str:
    """The whole page."""
    return (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            hotspots=[_item(h) for h in report.hotspots],
            evidence=wording.EVIDENCE_NOTES,
            words=wording.FAMILY_NOTES,
            variants=wording.VARIANT_NOTES,
            checks=wording.CHECK_NOTES,
            ablation_note=wording.ABLATION_NOTE,
        )
    )
