"""The summary of many runs: for the terminal, as CSV and as one HTML page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

import msgspec
from rich.markup import escape
from rich.table import Table

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.farm import FarmReport, FarmRow, FarmTotals
from layout_advise.reports.pages.console import PlainConsole
from layout_advise.reports.pages.html import environment
from layout_advise.reports.words import quantities

STYLE = {"change": "green", "keep": "cyan", "undecided": "yellow"}
MOST_EXAMPLES = 3


def verdict(row: FarmRow) -> str:
    """One word: the action, or how the run ended without a report."""
    if row.status == "native":
        return "ran" if row.exit_status == 0 else f"exit {row.exit_status}"
    return row.action or row.status


def reason(row: FarmRow) -> str:
    """Why: the stable word of a verdict, or a line where there is no report."""
    if row.status == "native":
        printed = "" if row.same_output is None else "same output" if row.same_output else "output differs"
        return "; ".join(part for part in (printed, row.why) if part)
    return row.reason if row.status == "done" else row.why


def gain(row: FarmRow) -> str:
    """The gain with its interval."""
    if row.gain is None or row.lo is None or row.hi is None:
        return "–"
    return quantities.interval(Interval(row.gain, row.lo, row.hi))


def share(row: FarmRow) -> str:
    """The part of the samples in the region studied."""
    return "–" if row.share is None else f"{row.share:.0%}"


def total_line(totals: FarmTotals) -> str:
    """The summary in a sentence."""
    runs = f", {totals.runs} runs" if totals.runs != totals.programs else ""
    took = (
        "" if totals.median_seconds is None else f"; median {totals.median_seconds:.0f} s, most {totals.most_seconds:.0f} s"
    )
    return (
        f"Measured answers on {totals.decided} of {totals.programs} programs{runs}, covering {totals.covered:.0%} of their "
        f"samples (change {totals.change}, keep {totals.keep}, undecided {totals.undecided}){took}."
    )


def terminal(report: FarmReport, *, width: int = 110, colour: bool = False) -> str:
    """The summary as text."""
    out = io.StringIO()
    console = PlainConsole(
        file=out, width=width, force_terminal=colour, no_color=not colour, highlight=False, _environ={},
        color_system="standard" if colour else None,
    )  # fmt: skip
    several = len({row.machine for row in report.rows}) > 1
    table = Table(box=None, pad_edge=False)
    for name in ("run", *(("machine",) if several else ()), "samples", "verdict", "reason", "gain", "seconds"):
        table.add_column(name, justify="right" if name in ("samples", "seconds") else "left")
    for row in report.rows:
        word = f"[{STYLE.get(row.action or '', 'default')}]{verdict(row)}[/]"
        machine = (escape(row.machine),) if several else ()
        table.add_row(escape(row.run), *machine, share(row), word, escape(reason(row)), gain(row), f"{row.seconds:.1f}")
    console.print(table)
    if any(row.status != "native" for row in report.rows):
        console.print()
        console.print(escape(total_line(report.totals)), soft_wrap=True)
        _ranked(console, report)
    for one in report.comparisons:
        places = ", ".join(
            f"{machine} {action}" + ("" if value is None else f" {value:.2f}×")
            for machine, action, value in zip(one.machines, one.actions, one.gains, strict=True)
        )
        console.print(escape(f"{one.run}: machines {'agree' if one.agree else 'differ'}: {places}"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _ranked(console: PlainConsole, report: FarmReport) -> None:
    if not report.blockers:
        return
    console.print()
    table = Table("programs", "without a measured answer", "", box=None, pad_edge=False)
    for one in report.blockers:
        table.add_row(str(len(one.programs)), one.reason, escape(quantities.listing(one.programs, 12)))
    console.print(table)


def as_csv(report: FarmReport) -> str:
    """One line a row, with the names of the fields as they are in the JSON."""
    out = io.StringIO()
    names = [field.name for field in msgspec.structs.fields(FarmRow)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in report.rows:
        writer.writerow(msgspec.structs.asdict(row))
    return out.getvalue()


def page(report: FarmReport, links: Mapping[tuple[str, str], str]) -> str:
    """The summary as one HTML file; ``links`` lead from run and machine to its own report."""
    rows = [
        {
            "data": row,
            "verdict": verdict(row),
            "reason": reason(row),
            "gain": gain(row),
            "share": share(row),
            "link": links.get((row.run, row.machine)),
        }
        for row in report.rows
    ]
    return (
        environment()
        .get_template("farm.html")
        .render(
            report=report,
            rows=rows,
            total=total_line(report.totals),
            several=len({row.machine for row in report.rows}) > 1,
            examples=MOST_EXAMPLES,
        )
    )
