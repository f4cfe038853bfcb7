"""The HTML report: one file, no URL, readable without scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from layout_advise.reports import figures, glossary, hotspotwords, layoutwords, spelled, structurewords, tables
from layout_advise.reports.candidatemodel import CandidateReport, Interval
from layout_advise.reports.hotspotmodel import HotspotReport
from layout_advise.reports.model import Report

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
    env.filters["size"] = spelled.size
    env.filters["ns"] = spelled.nanoseconds
    env.filters["number"] = spelled.number
    env.filters["interval"] = spelled.interval
    env.filters["families"] = layoutwords.families
    env.filters["traffic"] = layoutwords.traffic
    env.filters["inverse"] = spelled.inverse
    env.filters["term"] = layoutwords.term
    env.filters["conversion"] = layoutwords.conversion
    env.filters["view"] = layoutwords.view
    env.filters["declaration"] = layoutwords.declaration
    env.filters["shape"] = structurewords.shape
    env.filters["structure_line"] = structurewords.structure_line
    env.filters["base_id"] = tables.base_id
    env.filters["kind"] = hotspotwords.kind
    env.filters["name"] = hotspotwords.name
    env.filters["kind_speedups"] = hotspotwords.kind_speedups
    env.filters["unused"] = structurewords.unused
    env.filters["users"] = structurewords.users
    env.filters["user_place"] = structurewords.user_place
    env.filters["conversion_place"] = structurewords.conversion_place
    env.filters["shared_lines"] = structurewords.shared_lines
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
    order = tables.ranked(hotspot)
    return next((c for c in order if c.id == hotspot.verdict.candidate), order[0] if order else None)


def sources(found: Sequence[tables.Layout]) -> list[CandidateReport]:
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
    found = tables.layouts(hotspot)
    advised = best is not None and best.id == hotspot.verdict.candidate
    moved = {name for c in hotspot.candidates for name in c.structures}
    plain = [s for s in hotspot.structures if s.id not in moved]
    shown = [s for s in hotspot.structures if s.id in moved] or plain
    headline, rest = hotspotwords.headline(hotspot.verdict.text)
    return {
        "data": hotspot,
        "headline": headline,
        "rest": rest,
        "place": hotspotwords.place(hotspot),
        "layouts": found[:MOST_LAYOUTS],
        "more": max(0, len(found) - MOST_LAYOUTS),
        "chosen": best,
        "advised": advised,
        "permanence": hotspotwords.permanence(best, hotspot) if best is not None and advised else "",
        "figure": Markup(figures.speedups(hotspot)),
        "sources": sources(found),
        "shown": shown[:MOST_STRUCTURES],
        "plain": [s for s in plain if s not in shown] + shown[MOST_STRUCTURES:],
        "ablation": tables.ablation(hotspot),
        "threads": tables.by_threads(hotspot),
        "threads_heads": tables.by_threads_heads(hotspot),
        "threads_notes": tables.by_threads_notes(hotspot),
        "threads_figure": Markup(figures.by_threads(hotspot)),
        "noise": hotspotwords.noise(hotspot),
        "claimed": hotspotwords.claimed(hotspot),
        "placed": hotspotwords.placed(hotspot),
        "learnt": hotspotwords.learnt(hotspot),
        "compiled": hotspotwords.compiled(hotspot),
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
            evidence=glossary.EVIDENCE_NOTES,
            words=glossary.FAMILY_NOTES,
            variants=glossary.VARIANT_NOTES,
            checks=glossary.CHECK_NOTES,
            ablation_note=glossary.ABLATION_NOTE,
        )
    )
