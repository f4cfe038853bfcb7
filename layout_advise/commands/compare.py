"""Compare the reports of two runs: what was advised, and how the measured gains moved.

  layout-advise compare before.layout after.layout

A ratio is marked ~ where the two intervals overlap. Hotspots are matched by symbol, candidates by what was done.
With --fail-on SPEEDUP the exit code is 3 when B advises a change of at least that speedup that A does not.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from layout_advise.commands import common
from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import read_report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import tables
from layout_advise.reports.words import hotspot_words, layout_words, quantities


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``compare``."""
    parser.add_argument("before", metavar="A", help="a run directory, or a report.json")
    parser.add_argument("after", metavar="B", help="another one")
    common.add_fail_on(parser)


def mark(before: Interval | None, after: Interval | None) -> str:
    """``+``, ``-``, ``~`` (the intervals overlap) or an empty string (not measured in both)."""
    if before is None or after is None:
        return ""
    if after.lo > before.hi:
        return "+"
    if after.hi < before.lo:
        return "-"
    return "~"


def _key(candidate: CandidateReport) -> tuple[tuple[str, ...], int | None, tuple[tuple[str, str], ...]]:
    return candidate.families, candidate.block, tuple(sorted(candidate.layout.items()))


def _best(hotspot: HotspotReport) -> dict[object, CandidateReport]:
    """One candidate a layout: of its variants the one ranked highest."""
    found: dict[object, CandidateReport] = {}
    for candidate in tables.ranked(hotspot):
        found.setdefault(_key(candidate), candidate)
    return found


def table(before: HotspotReport, after: HotspotReport) -> Table:
    """One row a layout that either run measured."""
    hot = escape(hotspot_words.name(before))  # C++ names have brackets
    title = f"{hot}: {before.verdict.action} → {after.verdict.action}"
    rows = Table(title=title, box=None, title_justify="left")
    for name in ("", "layout", "A", "B"):
        rows.add_column(name)
    first, second = _best(before), _best(after)
    for key in [*first, *(k for k in second if k not in first)]:
        a, b = first.get(key), second.get(key)
        one = a or b
        assert one is not None
        old, new = (a.speedup if a else None), (b.speedup if b else None)
        name = f"{layout_words.families(one)} of {', '.join(one.structures)}"
        rows.add_row(mark(old, new), escape(name), quantities.interval(old), quantities.interval(new))
    return rows


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``compare``."""
    a = read_report(common.existing(arguments.before))
    b = read_report(common.existing(arguments.after))
    console = Console(width=common.width(), highlight=False, no_color=not common.wants_colour("auto"))
    known = {hotspot.symbol: hotspot for hotspot in b.hotspots}
    matched = 0
    for hotspot in a.hotspots:
        other = known.get(hotspot.symbol)
        if other is not None:
            matched += 1
            console.print(table(hotspot, other))
    if not matched:
        console.print("The two runs have no hotspot in common.")
    before = {hotspot.symbol for hotspot in common.advised(a, arguments.fail_on)}
    new = [hotspot for hotspot in common.advised(b, arguments.fail_on) if hotspot.symbol not in before]
    return common.FAIL_ON_REACHED if new else 0
