"""A report as remarks at source lines: for editors, and as annotations of GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.words.brief_names import readable
from layout_advise.reports.words.first_screen import first_screen, short
from layout_advise.reports.words.headline import candidate_of, headline

MOST_LINES = 8
"""Source lines of a region that get a remark."""


def notes(report: Report, root: str = "") -> list[str]:
    """``main.c:18: note: ...`` a line: the verdict at the region's line, what to know, and the advice at each line that
    accesses what would be re-laid. Files below ``root`` are relative to it."""
    lines = []
    report = readable(report)
    for hotspot in report.hotspots:
        place = f"{relative(hotspot.file, root)}:{hotspot.line or 1}" if hotspot.file else hotspot.name or hotspot.symbol
        lines.append(f"{place}: {'warning' if hotspot.verdict.action == 'change' else 'note'}: {headline(hotspot)}")
        lines += [f"{place}: note: {text}" for text in short(first_screen(report, hotspot))]
        lines += [f"{relative(file, root)}:{line}: note: {text}" for file, line, text in accesses(hotspot)]
    return [line.replace("\n", " ") for line in lines]


def accesses(hotspot: HotspotReport) -> Iterator[tuple[str, int, str]]:
    """File, line and a remark for the lines that access the structures which the advised layout concerns."""
    advised = candidate_of(hotspot, hotspot.verdict.candidate)
    if advised is None:
        return
    found = 0
    for line in hotspot.source:
        used = [use for use in line.uses if use.structure in advised.structures]
        if used and line.file and line.line and found < MOST_LINES:
            found += 1
            fields = ", ".join(dict.fromkeys(f"{use.name}.{field}" for use in used for field in use.fields))
            yield line.file, line.line, f"accesses {fields or used[0].name}, which would move"


def github_lines(report: Report, root: str = "") -> list[str]:
    """The verdicts as workflow commands of GitHub (``::notice file=...``), which shows them beside the changed lines."""
    lines = []
    report = readable(report)
    for hotspot in report.hotspots:
        kind = "warning" if hotspot.verdict.action == "change" else "notice"
        place = f"file={_property(relative(hotspot.file, root))},line={hotspot.line or 1}," if hotspot.file else ""
        title = _property(f"layout-advise: {hotspot.verdict.action}")
        body = "\n".join((headline(hotspot), *short(first_screen(report, hotspot))))
        lines.append(f"::{kind} {place}title={title}::{_message(body)}")
    return lines


def relative(file: str | None, root: str) -> str:
    """``file`` from ``root`` on, where it lies below."""
    path = PurePath(file or "")
    return str(path.relative_to(root)) if root and path.is_relative_to(root) else str(path)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
