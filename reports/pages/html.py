"""The HTML report: one file, no URL, readable without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CLexer

from layout_advise.reports.model.candidate import CandidateReport, Interval, PartReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.pages import tables
from layout_advise.reports.pages.drawings import drawing
from layout_advise.reports.pages.field_drawings import affinity_matrix, drawn_fields, field_graph
from layout_advise.reports.pages.field_heat import field_heat
from layout_advise.reports.pages.inline_charts import break_even_chart, speedup_chart, threads_chart
from layout_advise.reports.pages.live_chart import live_part
from layout_advise.reports.words import (
    glossary,
    hotspot_words,
    layout_words,
    live_words,
    offsets,
    plan_words,
    quantities,
    source_words,
    structure_words,
)
from layout_advise.reports.words.brief_names import brief, long_names, with_brief_names
from layout_advise.reports.words.first_screen import RUN, apply_command, check_effect, first_screen, short
from layout_advise.reports.words.visible import visible

MOST_SOURCES = 8
SOURCE_BUDGET = 300_000
"""Characters of highlighted C in the page altogether: it stays a file that opens at once. Regions have equal shares of it,
as of the rows of tables."""
DRAWING_BUDGET = 160_000
"""Characters of drawings of layouts in the page altogether, with the same shares."""
GROWTH = 4
"""So many times longer is highlighted C, about."""
MOST_CHANGE_LINES = 16
"""Lines of the change of the source that the first screen has room for."""
MOST_ROWS = 2_000
"""Layouts in the table; ``MOST_LAYOUTS`` of them with all that is known."""
MOST_STRUCTURES = 12
MOST_LAYOUTS, LEAST_LAYOUTS = 40, 3
MOST_MAPS = 20
MOST_BUDGETS = 12


def environment(whole: Mapping[str, str] | None = None) -> Environment:
    """The template environment: everything is escaped unless it is marked safe here. ``whole`` has the names that were made
    short, which show whole when pointed at."""
    env = Environment(
        loader=PackageLoader("layout_advise.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= FILTERS
    named = _naming(whole or {})
    env.filters |= {"named": named, "ticks": lambda text: ticks(text, named)}
    return env


def _naming(whole: Mapping[str, str]) -> Callable[[str], Markup]:
    """The filter that escapes a text and gives each brief name in it its whole one."""
    if not whole:
        return escape
    known = {str(escape(short)): str(escape(name)) for short, name in whole.items()}
    pattern = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
    told = lambda found: f'<abbr title="{known[found[0]]}">{found[0]}</abbr>'  # noqa: E731
    return lambda text: Markup(pattern.sub(told, str(escape(text))))


def stacked(value: Interval | None) -> Markup:
    """A ratio with its interval below it: narrow enough for a table."""
    if value is None:
        return Markup("–")
    return Markup(f'<b>{value.median:.2f}×</b><br><span class="soft">{value.lo:.2f} to {value.hi:.2f}</span>')


def ticks(text: str, named: Callable[[str], Markup] = escape) -> Markup:
    """``text`` escaped, with the parts in backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(named(text))))


def fitting(svg: str, regions: int) -> Markup:
    """A drawing for a page of so many regions; where it is too long for its share, a sentence about that."""
    if len(svg) > DRAWING_BUDGET // regions:
        return Markup('<p class="soft">The drawing is left out, as the page has many regions; report.json has it.</p>')
    return drawing(svg)


def code_of(text: str, file: str | None) -> Markup:
    """A line of the source, with its parts marked where the language is C or C++."""
    known = (file or "").lower().endswith((".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"))
    return Markup(c_code(text).rstrip("\n")) if known and text.strip() else escape(text)


def c_code(text: str) -> Markup:
    """C with its parts marked for colours."""
    return Markup(highlight(text, CLexer(), HtmlFormatter(nowrap=True)))


def index_maps(candidate: CandidateReport, structure: StructureReport) -> list[str]:
    """The index maps of a structure's parts in a candidate's layout, the first ones."""
    texts = [f"{', '.join(part.fields[:4])}: {part.index_map}" for part in candidate.parts if _maps(part, structure)]
    return texts[:MOST_MAPS]


def _maps(part: PartReport, structure: StructureReport) -> bool:
    return part.structure == structure.id and bool(part.index_map)


def chosen(hotspot: HotspotReport) -> CandidateReport | None:
    """The candidate to show the layout of: the advised one, else the best that was measured."""
    order = tables.ranked(hotspot)
    return next((c for c in order if c.id == hotspot.verdict.candidate), order[0] if order else None)


def sources(found: Sequence[tables.Layout], budget: int) -> list[tuple[CandidateReport, Markup]]:
    """The mock-ups to print, highlighted: the best variants of the first layouts, as many as the budget takes."""
    shown, left = [], budget
    for best in [layout.best for layout in found if layout.best.source][:MOST_SOURCES]:
        text = c_code(best.source) if GROWTH * len(best.source) < left else Markup("")
        if text and len(text) <= left:
            left -= len(text)
            shown.append((best, text))
    return shown


def original(hotspot: HotspotReport, budget: int) -> tuple[str, Markup] | None:
    """The hotspot's source with its place, highlighted, to stand beside the mock-ups: of the hottest line's file, or the
    instructions where there is no source. None where neither is in the report, or the budget is too small."""
    hot = next(iter(source_words.hot_lines(hotspot)), None)
    if hot is None:
        return None
    lines = [one for one in hotspot.source if one.file == hot.file and (one.address is None) == (hot.address is None)]
    apart = [one.address is None and (one.line or 0) > (before.line or 0) + 1 for before, one in pairwise(lines)]
    text = "\n".join(f"⋮\n{one.text}" if gap else one.text for gap, one in zip((False, *apart), lines, strict=True))
    shown = code_of(text, hot.file) if hot.address is None else escape(text)
    first, last = lines[0], lines[-1]
    place = f"{first.address} to {last.address}"
    if hot.address is None:
        place = f"{PurePath(hot.file or '').name}:{first.line} to {last.line}"
    return (place, shown) if len(shown) <= budget else None


FILTERS: dict[str, Callable[..., object]] = {
    "size": quantities.size,
    "ns": quantities.nanoseconds,
    "number": quantities.number,
    "interval": quantities.interval,
    "inverse": quantities.inverse,
    "families": layout_words.families,
    "traffic": layout_words.traffic,
    "term": layout_words.term,
    "conversion": layout_words.conversion,
    "view": layout_words.view,
    "declaration": layout_words.declaration,
    "shape": structure_words.shape,
    "structure_line": structure_words.structure_line,
    "unused": structure_words.unused,
    "users": structure_words.users,
    "user_place": structure_words.user_place,
    "conversion_place": structure_words.conversion_place,
    "shared_lines": structure_words.shared_lines,
    "kind": hotspot_words.kind,
    "live": live_words.lines,
    "kept_calls": hotspot_words.kept_calls,
    "ended_ways": hotspot_words.ended_ways,
    "name": hotspot_words.name,
    "brief": brief,
    "kind_speedups": hotspot_words.kind_speedups,
    "offsets": offsets.offsets,
    "line_use": offsets.line_use,
    "most_uses": offsets.most_uses,
    "line_place": source_words.line_place,
    "line_id": source_words.line_id,
    "line_bytes": source_words.line_bytes,
    "use_words": source_words.line_use,
    "check_effect": check_effect,
    "index_maps": index_maps,
    "drawing": fitting,
    "affinity_matrix": affinity_matrix,
    "field_graph": field_graph,
    "drawn_fields": drawn_fields,
    "stacked": stacked,
    "ticks": ticks,
    "c_code": c_code,
    "code_of": code_of,
}
"""The functions that templates call."""


def _item(report: Report, hotspot: HotspotReport, number: int, run: str) -> dict[str, object]:
    """The values that the template needs of one hotspot besides its data."""
    best = chosen(hotspot)
    found = tables.layouts(hotspot)
    advised = best is not None and best.id == hotspot.verdict.candidate
    moved = {name for c in hotspot.candidates for name in c.structures}
    plain = [s for s in hotspot.structures if s.id not in moved]
    shown = [s for s in hotspot.structures if s.id in moved] or plain
    screen = first_screen(report, hotspot)
    regions = len(report.hotspots)
    source = original(hotspot, SOURCE_BUDGET // regions)
    left = SOURCE_BUDGET // regions - (len(source[1]) if source is not None else 0)
    full, rows = max(MOST_LAYOUTS // regions, LEAST_LAYOUTS), MOST_ROWS // regions
    return {
        "data": hotspot,
        "number": number,
        "words": number == next((k for k, one in enumerate(report.hotspots) if one.candidates), 0),
        "hot": source_words.hot_lines(hotspot),
        "screen": screen,
        "notes": short(screen),
        "apply": apply_command(hotspot, run),
        "change_lines": MOST_CHANGE_LINES,
        "count": len(found),
        "place": hotspot_words.place(hotspot),
        "layouts": found[:full],
        "further": found[full:rows],
        "more": max(0, len(found) - max(full, rows)),
        "chosen": best,
        "advised": advised,
        "permanence": hotspot_words.permanence(best, hotspot) if best is not None and advised else "",
        "figure": speedup_chart(hotspot),
        "break_even": break_even_chart(hotspot),
        "original": source,
        "sources": sources(found, left),
        "shown": shown[:MOST_STRUCTURES],
        "heat": {s.id: field_heat(report, hotspot, s) for s in shown[:MOST_STRUCTURES]},
        "graphs": max(MOST_STRUCTURES // regions, 1),
        "plain": [s for s in plain if s not in shown] + shown[MOST_STRUCTURES:],
        "budget": [(x.id, t) for x in found[: max(MOST_BUDGETS // regions, 1)] for t in x.best.error_budget],
        "ablation": tables.ablation(hotspot),
        "factors": tables.factors_line(hotspot),
        "hull": hotspot_words.hull(hotspot),
        "threads": tables.by_threads(hotspot),
        "threads_heads": tables.by_threads_heads(hotspot),
        "threads_notes": tables.by_threads_notes(hotspot),
        "course": live_part(hotspot, DRAWING_BUDGET // regions),
        "threads_figure": threads_chart(hotspot),
        "noise": hotspot_words.noise(hotspot),
        "claimed": hotspot_words.claimed(hotspot),
        "placed": hotspot_words.placed(hotspot),
        "learnt": hotspot_words.learnt(hotspot),
        "proposed": hotspot_words.proposers(hotspot),
        "compiled": hotspot_words.compiled(hotspot),
        "cold": any(layout.best.cold not in (None, layout.best.speedup) for layout in found),
        "conversion": any(layout.best.conversion for layout in found),
    }


def _plan(report: Report) -> dict[str, object] | None:
    """The plan of the whole program, as the page shows it."""
    plan = report.plan
    if plan is None:
        return None
    lanes = [
        {
            "action": one.action,
            "headline": plan_words.headline(one),
            "lane": plan_words.lane(plan, one),
            "facts": plan_words.facts(one, plan.held if number == 0 else ()),
            "regions": plan_words.changed(one),
        }
        for number, one in enumerate(plan.structures)
    ]
    machines = plan.machines
    over = {
        "action": machines.action,
        "headline": plan_words.machines_headline(machines),
        "facts": plan_words.machines_facts(machines),
        "places": machines.places,
    } if machines is not None else None  # fmt: skip
    return {"lanes": lanes, "machines": over, "order": plan_words.order(plan)}


def render(report: Report, run: str | None = None) -> str:
    """The whole page, with brief names. Its commands name the directory ``run``; without one they have a word in its place,
    and the page says what for."""
    names = long_names(report)
    report = with_brief_names(report, names)
    return visible(
        environment({short: name for name, short in names.items()})
        .get_template("report.html")
        .render(
            report=report,
            long_names=names,
            hotspots=[_item(report, h, number, run or RUN) for number, h in enumerate(report.hotspots)],
            named=run is not None,
            plan=_plan(report),
            over_regions=[plan_words.sentence(row) for row in report.over_regions],
            passed_over=[hotspot_words.passed_over(one) for one in report.passed_over],
            evidence=glossary.EVIDENCE_NOTES,
            words=glossary.FAMILY_NOTES,
            rules=glossary.RULE_NOTES,
            variants=glossary.VARIANT_NOTES,
            checks=glossary.CHECK_NOTES,
            ablation_note=glossary.ABLATION_NOTE,
        )
    )
