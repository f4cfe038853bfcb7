"""The report for the terminal: the first line is the verdict."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from layout_advise.reports import wording
from layout_advise.reports.model import CandidateReport, HotspotReport, Report, StructureReport

STYLE = {"change": "bold green", "keep": "bold cyan", "undecided": "bold yellow"}
MOST_ROWS = 12
WIDE = 104
"""Columns from which on the table has all its columns."""


def render(report: Report, *, width: int = 110, colour: bool = False, verbose: bool = False) -> str:
    """The whole report as text; ``verbose`` adds the fields, the conversion cost, all layouts and all quality checks."""
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
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _say(console: Console, text: str) -> None:
    console.print(escape(text), soft_wrap=True)


def _hotspot(console: Console, hotspot: HotspotReport, verbose: bool) -> None:
    verdict = hotspot.verdict
    console.print(f"[{STYLE[verdict.action]}]{escape(verdict.text)}[/]", soft_wrap=True)
    advised = next((c for c in hotspot.candidates if c.id == verdict.candidate), None)
    if advised is not None:
        _say(console, wording.permanence(advised, hotspot))
    console.print()
    _say(console, _hotspot_line(hotspot))
    for kind in hotspot.kinds:
        _say(console, f"  {wording.kind(kind)}")
    for limit in hotspot.trace.limits if hotspot.trace else ():
        _say(console, f"  the trace is not whole: {limit}")
    for structure in hotspot.structures:
        _structure(console, structure, verbose)
    for shared in hotspot.shared_lines:
        _say(console, f"  {wording.shared_lines(shared)}")
    if hotspot.candidates:
        console.print()
        _candidates(console, hotspot, verbose)
    for entry in hotspot.not_lifted:
        line = f"{entry.file}:{entry.line}" if entry.file else entry.address
        _say(console, f"not lifted: {entry.instruction} at {line}: {entry.reason}")


def _hotspot_line(hotspot: HotspotReport) -> str:
    where = wording.place(hotspot)
    name = f"{hotspot.symbol} ({where})" if where else hotspot.symbol
    return (
        f"hotspot {name}: {hotspot.share:.0%} of the samples, {wording.number(hotspot.calls)} calls of "
        f"{wording.nanoseconds(hotspot.original.ns_in_situ)}; "
        f"{wording.stopped_at(hotspot)}"
    )


def _structure(console: Console, structure: StructureReport, verbose: bool) -> None:
    _say(console, f"  {structure.id} {structure.name}: {wording.structure_line(structure)}")
    if structure.note and not verbose:
        _say(console, f"     {structure.note}")
        return
    _say(console, f"     {wording.shape(structure)}")
    _say(console, f"     {wording.term(structure.layout)}  (in units of {structure.unit_bytes} bytes)")
    if structure.note:
        _say(console, f"     {structure.note}")
    for use in structure.fields if verbose else ():
        counts = f"{wording.number(use.reads)} reads, {wording.number(use.writes)} writes"
        _say(console, f"     {use.name} at {use.offset}, {use.bytes} bytes: {counts}")


def _candidates(console: Console, hotspot: HotspotReport, verbose: bool) -> None:
    found = wording.layouts(hotspot)
    shown = found if verbose else found[:MOST_ROWS]
    console.print(_table(hotspot, shown, console.width, verbose))
    if len(found) > len(shown):
        _say(console, f"  {len(found) - len(shown)} more in report.json")
    for line in _legend(hotspot, shown):
        _say(console, line)
    _ablation(console, hotspot)


def _ablation(console: Console, hotspot: HotspotReport) -> None:
    """What the layout and SIMD do each by themselves."""
    rows = wording.ablation(hotspot)
    if not rows:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, head in enumerate(("  layout and SIMD apart", "without SIMD", "with SIMD")):
        table.add_column(head, no_wrap=True, justify="right" if number else "left")
    for name, without, with_ in rows:
        table.add_row(escape(f"  {name}"), escape(without), escape(with_))
    console.print(table)


def _legend(hotspot: HotspotReport, shown: Sequence[wording.Layout]) -> list[str]:
    """What a reader needs below the table: how sure it is, and why layouts were rejected."""
    lines = []
    if any(layout.best.speedup for layout in shown):
        noise = wording.noise(hotspot)
        band = f"; {noise}" if noise else ""
        lines.append(f"  speedup of the hotspot over the original, 95 % interval over processes{band}")
    if any(layout.best.variant == "restrict" for layout in shown):
        lines.append(f"  restrict: {wording.VARIANT_NOTES['restrict']}")
    if any(layout.best.evidence == "modelled" for layout in shown):
        lines.append(f"  modelled: {wording.EVIDENCE_NOTES['modelled']}")
    replayed = [layout for layout in shown if layout.best.replay is not None]
    if replayed:
        lines.append(f"  replayed: {wording.EVIDENCE_NOTES['replayed']}")
        lines += [
            f"  {x.id}: replay in the present layout over replay in {x.id}: {wording.interval(x.best.replay)}"
            for x in replayed
        ]
    lines += [f"  {x.id}: {text}" for x in shown if (text := wording.kind_speedups(x.best, hotspot))]
    reasons: dict[str, list[str]] = {}
    for layout in shown:
        if layout.best.reason and layout.best.speedup is None:
            reasons.setdefault(layout.best.reason, []).append(layout.id)
    return [*lines, *(f"  {', '.join(ids)}: {reason}" for reason, ids in reasons.items())]


def _table(hotspot: HotspotReport, shown: Sequence[wording.Layout], width: int, verbose: bool) -> Table:
    """Numbers are never cut; where there is no room, the columns that matter least are left out and the layout is cut."""
    heads = ["", "layout", "variant", "evidence", "speedup"]
    if width >= WIDE:
        heads += ["over identity", "cache lines"]
        if verbose and any(layout.best.conversion for layout in shown):
            heads.append("conversion in/out")
    several = len({c.structures for c in hotspot.candidates}) > 1
    chosen = [layout.best.id == hotspot.verdict.candidate for layout in shown]
    rows = [_identity(hotspot), *(_row(layout, here, several) for layout, here in zip(shown, chosen, strict=True))]
    cells = [row[: len(heads)] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    room = max(16, width - sum(widths) + widths[1] - 2 * len(heads))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, head in enumerate(heads):
        least = min(widths[number], room) if number == 1 else widths[number]
        table.add_column(head, no_wrap=True, min_width=least, justify="right" if number > 3 else "left")
    for number, row in enumerate(cells):
        text = [escape(cell if k != 1 or len(cell) <= room else f"{cell[: room - 1]}…") for k, cell in enumerate(row)]
        table.add_row(*text, style="bold" if number and chosen[number - 1] else "")
    return table


def _identity(hotspot: HotspotReport) -> tuple[str, ...]:
    lines = {c.traffic.lines_before for c in hotspot.candidates if c.traffic}
    before = wording.number(lines.pop()) if len(lines) == 1 else ""
    identity = hotspot.identity
    if identity is None:
        return "", "as it is", "", "", "", "", before, ""
    return (
        "",
        "as it is (identity)",
        "",
        identity.evidence,
        wording.interval(wording.inverse(identity.ratio)),
        "",
        before,
        "",
    )


def _row(layout: wording.Layout, chosen: bool, several: bool) -> tuple[str, ...]:
    best: CandidateReport = layout.best
    of = f" of {', '.join(best.structures)}" if several else ""
    return (
        ("→ " if chosen else "  ") + layout.id,
        wording.families(best) + of,
        best.variant,
        best.evidence,
        wording.interval(best.speedup),
        wording.interval(best.over_identity),
        wording.traffic(best),
        wording.conversion(best),
    )


def _quality(console: Console, report: Report, verbose: bool) -> None:
    checks = report.quality.checks
    passed = sum(check.ok for check in checks)
    console.print()
    _say(
        console, f"quality of the experiment: {passed} of {len(checks)} checks passed · {report.seconds.total:.1f} s in all"
    )
    for check in checks if verbose else [check for check in checks if not check.ok]:
        _say(console, f"  {'ok:' if check.ok else 'not ok:'} {check.text}")
        if not check.ok and check.id in wording.CHECK_NOTES:
            _say(console, f"          ({wording.CHECK_NOTES[check.id]})")
