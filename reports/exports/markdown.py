"""A report as Markdown: for issues, pull requests and job summaries."""

from __future__ import annotations

import re

from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import tables
from layout_advise.reports.words import hotspot_words, layout_words, plan_words, quantities
from layout_advise.reports.words.brief_names import readable
from layout_advise.reports.words.first_screen import check_effect, first_screen, short

MOST_LAYOUTS = 10


def markdown(report: Report) -> str:
    """The first screen of each region and its layouts as a table."""
    lines: list[str] = []
    report = readable(report)
    if report.plan is not None:
        lines += [f"# {escaped(plan_words.leading(report.plan))}", ""]
        facts = plan_words.facts(report.plan.structures[0]) if report.plan.structures else ()
        lines += [f"- {escaped(text)}" for text in (*facts, plan_words.order(report.plan))]
        if (machines := report.plan.machines) is not None:
            heading = [plan_words.machines_headline(machines)] if report.plan.structures else []
            lines += [f"- {escaped(text)}" for text in (*heading, *plan_words.machines_facts(machines))]
        lines.append("")
    for hotspot in report.hotspots:
        lines += [*_region(report, hotspot), ""]
    for one in report.passed_over:
        lines += [f"- {escaped(hotspot_words.passed_over(one))}"]
    failed = [f"- {escaped(check_effect(check, report))}" for check in report.quality.checks if not check.ok]
    lines += ["### Checks that failed", "", *failed, ""] if failed else []
    lines.append(escaped(f"layout-advise {report.tool.version}, {report.machine.cpu}, {report.created}"))
    return "\n".join(lines) + "\n"


def _region(report: Report, hotspot: HotspotReport) -> list[str]:
    screen = first_screen(report, hotspot)
    lines = [f"## {escaped(screen.headline)}", ""]
    lines += [" · ".join(f"{mark.icon} {escaped(mark.text)}" for mark in screen.evidence), ""]
    if screen.change:
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(screen.change))), default=0))
        lines += [f"{fence}diff", *screen.change, fence, ""]
    lines += [*(f"- {escaped(note)}" for note in short(screen)), ""]
    found = tables.layouts(hotspot)[:MOST_LAYOUTS]
    if found:
        lines += ["| | layout | evidence | speedup | vs rebuild |", "|---|---|---|--:|--:|"]
        lines += [_row(layout) for layout in found]
    return lines


def _row(layout: tables.Layout) -> str:
    best = layout.best
    gains = (quantities.interval(value) for value in (best.speedup, best.over_identity))
    cells = (layout.id, layout_words.families(best), best.evidence, *gains)
    return f"| {' | '.join(escaped(cell) for cell in cells)} |"


def escaped(text: str) -> str:
    """``text`` so that nothing but code in backticks is Markdown or HTML."""
    parts = re.split("(`[^`]*`)", text.replace("\n", " "))
    plain = [re.sub(r"([\\*_\[\]|])", r"\\\1", part).replace("<", "&lt;") for part in parts]
    return "".join(part.replace("|", "\\|") if number % 2 else plain[number] for number, part in enumerate(parts))
