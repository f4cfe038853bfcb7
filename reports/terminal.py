"""The report for the terminal: the first line is the verdict."""

from __future__ import annotations

import io

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from layout_advise.reports import wording
from layout_advise.reports.model import HotspotReport, Report

STYLE = {"change": "bold green", "keep": "bold cyan", "undecided": "bold yellow"}


def render(report: Report, *, width: int = 110, colour: bool = False, verbose: bool = False) -> str:
    """The whole report as text; ``verbose`` adds the fields, the conversion cost and what could not be lifted."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        _environ={},
        highlight=False,
        color_system="standard" if colour else None,
    )
    for hotspot in report.hotspots:
        _hotspot(console, hotspot, verbose)
    _quality(console, report, verbose)
    return out.getvalue()


def _hotspot(console: Console, hotspot: HotspotReport, verbose: bool) -> None:
    verdict = hotspot.verdict
    console.print(f"[{STYLE[verdict.action]}]{escape(verdict.text)}[/]", soft_wrap=True)
    console.print()
    where = wording.place(hotspot)
    console.print(
        f"hotspot {escape(hotspot.symbol)} {escape(where)} · {hotspot.share:.0%} of the samples · {hotspot.calls} calls, "
        f"parked at call {hotspot.call} · {wording.nanoseconds(hotspot.original.ns_in_situ)} a call",
        soft_wrap=True,
    )
    for structure in hotspot.structures:
        console.print(
            f"  {escape(structure.id)} {escape(structure.name)}: {escape(wording.structure_line(structure))}", soft_wrap=True
        )
        console.print(f"     layout {escape(structure.layout)}  (unit: {structure.unit_bytes} bytes)", soft_wrap=True)
        if structure.note:
            console.print(f"     {escape(structure.note)}", soft_wrap=True)
        if verbose:
            for use in structure.fields:
                console.print(
                    f"     {escape(use.name)} at {use.offset}, {use.bytes} bytes: {use.reads} reads, {use.writes} writes",
                    soft_wrap=True,
                )
    if hotspot.candidates:
        console.print()
        console.print(_table(hotspot, verbose))
    for entry in hotspot.not_lifted:
        line = f"{entry.file}:{entry.line}" if entry.file else entry.address
        console.print(f"not lifted: {escape(entry.instruction)} at {escape(line)}: {escape(entry.reason)}", soft_wrap=True)


def _table(hotspot: HotspotReport, verbose: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("layout")
    table.add_column("evidence")
    table.add_column("speedup", justify="right", no_wrap=True)
    table.add_column("over identity", justify="right", no_wrap=True)
    table.add_column("cache lines", justify="right", no_wrap=True)
    if verbose:
        table.add_column("conversion in/out", justify="right")
    if hotspot.identity is not None:
        ratio = hotspot.identity.ratio
        shown = f"{1 / ratio.median:.2f}×" if ratio and ratio.median else "–"
        row = ["", "as it is (identity mock-up)", hotspot.identity.evidence, shown, "", ""]
        table.add_row(*row, *([""] if verbose else []))
    for candidate in wording.ranked(hotspot):
        chosen = candidate.id == hotspot.verdict.candidate
        reason = f" ({candidate.reason})" if candidate.reason and candidate.speedup is None else ""
        row = [
            ("→ " if chosen else "  ") + candidate.id,
            escape(f"{wording.families(candidate)} of {', '.join(candidate.structures)}"),
            escape(candidate.evidence + reason),
            wording.interval(candidate.speedup),
            wording.interval(candidate.over_identity),
            wording.traffic(candidate),
        ]
        if verbose:
            conversion = candidate.conversion
            row.append(f"{conversion.in_ms:.1f} / {conversion.out_ms:.1f} ms" if conversion else "–")
        table.add_row(*row)
    return table


def _quality(console: Console, report: Report, verbose: bool) -> None:
    failed = [check for check in report.quality.checks if not check.ok]
    console.print()
    console.print(
        f"quality of the experiment: {report.quality.score:.0%} of {len(report.quality.checks)} checks passed · "
        f"{report.seconds.total:.1f} s in all"
    )
    for check in report.quality.checks if verbose else failed:
        console.print(f"  {'ok' if check.ok else 'not ok:'} {escape(check.text)}", soft_wrap=True)
