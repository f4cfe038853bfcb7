"""The report for the terminal: in its first 20 lines the answer, its evidence, the change to paste and what to know."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.pages import tables
from layout_advise.reports.pages.console import PlainConsole
from layout_advise.reports.words import (
    glossary,
    hotspot_words,
    layout_words,
    live_words,
    plan_words,
    quantities,
    source_words,
    structure_words,
)
from layout_advise.reports.words.brief_names import long_names, with_brief_names
from layout_advise.reports.words.first_screen import FirstScreen, apply_command, check_effect, first_screen, short

STYLE = {"change": "bold green", "keep": "bold cyan", "undecided": "bold yellow"}
MOST_ROWS = 12
DIFF_STYLE = {"-": "red", "+": "green"}
MOST_OVER = 3
"""So many layouts are told over the regions."""
FIRST_LINES = 20
"""Lines of the first screen."""
WIDE = 104
"""Columns from which on the table has all its columns."""


def render(
    report: Report, *, width: int = 110, colour: bool = False, verbose: bool = False, whole: bool = False, run: str = "RUN"
) -> str:
    """The report of the run directory ``run`` as text: of several regions the first with its tables, the others with their
    first screens, unless ``whole``, which has long names whole too. ``verbose`` adds the fields, the conversion cost, all
    layouts and all quality checks, and is whole."""
    out = io.StringIO()
    console = PlainConsole(
        file=out,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        _environ={},
        highlight=False,
        color_system="standard" if colour else None,
    )
    names = {} if verbose or whole else long_names(report)
    report = with_brief_names(report, names)
    _plan(console, report)
    for number, hotspot in enumerate(report.hotspots):
        if number:
            console.print()
        left = _first(console, first_screen(report, hotspot), hotspot, verbose, run)
        if number == 0 or verbose or whole:
            _hotspot(console, hotspot, verbose, left)
        else:
            _say(console, _hotspot_line(hotspot))
    if len(report.hotspots) > 1 and not (verbose or whole):
        console.print()
        others = "region" if len(report.hotspots) == 2 else f"{len(report.hotspots) - 1} regions"
        _say(console, f"the tables of the other {others}: `layout-advise report {run} --all`, report.html")
    shown = report.over_regions if verbose or whole else report.over_regions[:MOST_OVER]
    for row in shown:
        _say(console, plan_words.sentence(row))
    if (more := len(report.over_regions) - len(shown)) > 0:
        _say(console, f"{more} other layout{'s' if more > 1 else ''} over the regions: --all, report.html")
    for one in report.passed_over:
        _say(console, hotspot_words.passed_over(one))
    _quality(console, report, verbose)
    if names:
        _say(console, f"{len(names)} long name{'s' if len(names) > 1 else ''} shortened: whole with --all")
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _plan(console: PlainConsole, report: Report) -> None:
    """The plan of the whole program, before what is told of its regions."""
    if (plan := report.plan) is None:
        return
    for number, one in enumerate(plan.structures):
        console.print(Text(plan_words.headline(one), STYLE[one.action]), soft_wrap=True)
        for text in plan_words.facts(one, plan.held if number == 0 else ()):
            _say(console, f"• {text}")
    if plan.machines is not None:
        style = STYLE[plan.machines.action]
        console.print(Text(plan_words.machines_headline(plan.machines), style), soft_wrap=True)
        for text in plan_words.machines_facts(plan.machines):
            _say(console, f"• {text}")
    _say(console, f"• {plan_words.order(plan)}")
    console.print()


def _say(console: PlainConsole, text: str) -> None:
    console.print(escape(text), soft_wrap=True)


def _first(console: PlainConsole, screen: FirstScreen, hotspot: HotspotReport, verbose: bool, run: str) -> tuple[str, ...]:
    """The first screen: at most 20 lines, unless ``verbose``; returns the notes that the change of the source left no room
    for."""
    evidence = " · ".join(f"{mark.icon} {mark.text}" for mark in screen.evidence)
    offered = apply_command(hotspot, run)
    fixed = [screen.headline, evidence, *([f"to write {offered.layout}: {offered.command}"] if offered else [])]
    notes = [f"• {note}" for note in (screen.notes if verbose else short(screen))]
    least = len(_without_members(screen.change))

    def room_beside(shown: Sequence[str]) -> int:
        return FIRST_LINES - sum(-(-len(line) // console.width) for line in (*fixed, *shown))

    many = next((n for n in range(len(notes), 1, -1) if least <= room_beside(notes[:n])), min(len(notes), 1))
    if verbose or least > room_beside(notes[:many]):
        many = len(notes)  # the change does not fit anyway
    notes, left = notes[:many], notes[many:]
    room = len(screen.change) if verbose else room_beside(notes)
    out = Text().append(f"{screen.headline}\n", STYLE[hotspot.verdict.action]).append(f"{evidence}\n")
    for line in shortened(screen.change, room):
        shown = line if verbose or len(line) <= console.width else f"{line[: console.width - 1]}…"
        out.append(f"{shown}\n", DIFF_STYLE.get(line[:1], ""))
    out.append("".join(f"{line}\n" for line in (*fixed[2:], *notes)))
    console.print(out, soft_wrap=True, end="")
    return tuple(left)


def shortened(lines: Sequence[str], room: int) -> list[str]:
    """A diff in at most ``room`` lines: what stays is left out first, then the end; it says so."""
    if len(lines) <= room:
        return list(lines)
    kept = _without_members(lines)
    if len(kept) <= room:
        return kept
    least = max(room - 1, 1)
    return [*kept[:least], f"  ... {len(kept) - least} more lines: -v, report.html"]


def _without_members(lines: Sequence[str]) -> list[str]:
    """A diff with the members that stay as one line."""
    kept = [line for line in lines if not line.startswith("     ")]
    if len(kept) < len(lines):
        first = next(k for k, line in enumerate(lines) if line.startswith("     "))
        kept.insert(first, f"     /* ... {len(lines) - len(kept)} lines that stay ... */")
    return kept


def _hotspot(console: PlainConsole, hotspot: HotspotReport, verbose: bool, left: Sequence[str]) -> None:
    console.print()
    if left:
        _say(console, "\n".join((*left, "")))
    if verbose:
        _say(console, f"in full: {hotspot.verdict.text}")
    _say(console, _hotspot_line(hotspot))
    for kind in hotspot.kinds:
        _say(console, f"  {hotspot_words.kind(kind)}")
    for limit in hotspot.trace.limits if hotspot.trace else ():
        _say(console, f"  the trace is not whole: {limit}")
    for hot in source_words.hot_lines(hotspot) if verbose else ():
        share = f"{hot.samples:.1%} of the samples: " if hot.samples else ""
        _say(console, f"  {source_words.line_place(hot)}: {share}{hot.text.strip()}")
        for used in hot.uses:
            _say(console, f"     {source_words.line_use(used)}")
    for structure in hotspot.structures:
        _structure(console, structure, verbose)
    for shared in hotspot.shared_lines:
        _say(console, f"  {structure_words.shared_lines(shared)}")
    if hotspot.candidates:
        console.print()
        _candidates(console, hotspot, verbose)
    _by_threads(console, hotspot)
    for text in (*live_words.lines(hotspot), hotspot_words.kept_calls(hotspot), hotspot_words.ended_ways(hotspot)):
        if text:
            _say(console, f"  {text}")
    for entry in hotspot.not_lifted:
        line = f"{entry.file}:{entry.line}" if entry.file else entry.address
        _say(console, f"not lifted: {entry.instruction} at {line}: {entry.reason}")


def _hotspot_line(hotspot: HotspotReport) -> str:
    where = hotspot_words.place(hotspot)
    name = f"{hotspot_words.name(hotspot)} ({where})" if where else hotspot_words.name(hotspot)
    return (
        f"hotspot {name}: {hotspot.share:.0%} of the samples, {hotspot_words.calls(hotspot)}; "
        f"{hotspot_words.stopped_at(hotspot)}"
    )


def _structure(console: PlainConsole, structure: StructureReport, verbose: bool) -> None:
    _say(console, f"  {structure.id} {structure.name}: {structure_words.structure_line(structure)}")
    if structure.note and not verbose:
        _say(console, f"     {structure.note}")
        return
    _say(console, f"     {structure_words.shape(structure)}")
    if verbose:
        _say(console, f"     {layout_words.term(structure.layout)}  (in units of {structure.unit_bytes} bytes)")
    if structure.note:
        _say(console, f"     {structure.note}")
    if users := structure_words.users(structure):
        _say(console, f"     {users}")
    for use in structure.fields if verbose else ():
        counts = f"{quantities.number(use.reads)} reads, {quantities.number(use.writes)} writes"
        _say(console, f"     {use.name} at {use.offset}, {use.bytes} bytes: {counts}")


def _candidates(console: PlainConsole, hotspot: HotspotReport, verbose: bool) -> None:
    found = tables.layouts(hotspot)
    shown = found if verbose else found[:MOST_ROWS]
    console.print(_table(hotspot, shown, console.width, verbose))
    if len(found) > len(shown):
        _say(console, f"  {len(found) - len(shown)} more in report.json")
    for line in _legend(hotspot, shown, console.width):
        _say(console, line)
    _ablation(console, hotspot)


def _ablation(console: PlainConsole, hotspot: HotspotReport) -> None:
    """Prints the effects of the layout and of SIMD apart."""
    rows = tables.ablation(hotspot)
    if not rows:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, head in enumerate(("  layout and SIMD apart", "without SIMD", "with SIMD")):
        table.add_column(head, no_wrap=True, justify="right" if number else "left")
    for name, without, with_ in rows:
        table.add_row(escape(f"  {name}"), escape(without), escape(with_))
    console.print(table)
    if line := tables.factors_line(hotspot):
        _say(console, f"  {line}")


def _by_threads(console: PlainConsole, hotspot: HotspotReport) -> None:
    """A parallel region by its number of threads."""
    rows = tables.by_threads(hotspot)
    if not rows:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    used = [k for k in range(len(rows[0])) if k == 0 or any(row[k] != "–" for row in rows)]
    heads = tables.by_threads_heads(hotspot)
    for k in used:
        # on a narrow screen a cell takes two lines: half a number would be none
        table.add_column(f"  {heads[k]}" if k == 0 else heads[k], overflow="fold", justify="right")
    for row in rows:
        table.add_row(*(escape(row[k]) for k in used))
    console.print(table)
    for line in tables.by_threads_notes(hotspot):
        _say(console, f"  {line}")


def _legend(hotspot: HotspotReport, shown: Sequence[tables.Layout], width: int) -> list[str]:
    """Prints the notes below the table: how sure it is, and why layouts were rejected."""
    lines = []
    if any(layout.best.speedup for layout in shown):
        noise = hotspot_words.noise(hotspot)
        band = f"; {noise}" if noise else ""
        lines.append(f"  speedup of the hotspot over the original, 95 % interval over processes{band}")
        if width >= WIDE:
            lines.append("  vs rebuild: over the same loop recompiled with the old layout, fastest build")
    notes = (hotspot_words.learnt(hotspot), hotspot_words.placed(hotspot), hotspot_words.claimed(hotspot))
    lines += [f"  {text}" for text in notes if text]
    if hotspot.compiled is not None and not hotspot.compiled.recorded:
        lines.append(f"  {hotspot_words.compiled(hotspot)}")
    again = [layout.id for layout in shown if layout.best.measured_again]
    if again and len(shown) > len(again):
        lines.append(f"  {', '.join(again)} re-measured in fresh processes; the others measured once")
    if any(layout.best.variant == "restrict" for layout in shown):
        lines.append(f"  restrict: {glossary.VARIANT_NOTES['restrict']}")
    if any(layout.best.evidence == "modelled" for layout in shown):
        lines.append(f"  modelled: {glossary.EVIDENCE_NOTES['modelled']}")
    replayed = [layout for layout in shown if layout.best.replay is not None]
    if replayed:
        lines.append(f"  replayed: {glossary.EVIDENCE_NOTES['replayed']}")
        lines += [
            f"  {x.id}: replay in the present layout over replay in {x.id}: {quantities.interval(x.best.replay)}"
            for x in replayed
        ]
    if proposed := hotspot_words.proposers(hotspot):
        lines.append(f"  {proposed}")
    lines += [f"  {x.id}: {text}" for x in shown if (text := hotspot_words.kind_speedups(x.best, hotspot))]
    reasons: dict[str, list[str]] = {}
    for layout in shown:
        if layout.best.reason and layout.best.speedup is None:
            reasons.setdefault(layout.best.reason, []).append(layout.id)
    return [*lines, *(f"  {', '.join(ids)}: {reason}" for reason, ids in reasons.items())]


def _table(hotspot: HotspotReport, shown: Sequence[tables.Layout], width: int, verbose: bool) -> Table:
    """Nothing is cut; where there is no room, the columns that matter least are left out and the layout goes over lines."""
    heads = ["", "layout", "variant", "evidence", "speedup"]
    if width >= WIDE:
        heads += ["vs rebuild", "cache lines"]
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
        most = room if number == 1 else None
        table.add_column(
            head,
            no_wrap=number != 1,
            overflow="fold",
            min_width=least,
            max_width=most,
            justify="right" if number > 3 else "left",
        )
    for number, row in enumerate(cells):
        table.add_row(*map(escape, row), style="bold" if number and chosen[number - 1] else "")
    return table


def _identity(hotspot: HotspotReport) -> tuple[str, ...]:
    lines = {c.traffic.lines_before for c in hotspot.candidates if c.traffic}
    before = quantities.number(lines.pop()) if len(lines) == 1 else ""
    identity = hotspot.identity
    if identity is None:
        return "", "as it is", "", "", "", "", before, ""
    return (
        "",
        "as it is (recompiled)",
        "",
        identity.evidence,
        quantities.interval(quantities.inverse(identity.ratio)),
        "",
        before,
        "",
    )


def _row(layout: tables.Layout, chosen: bool, several: bool) -> tuple[str, ...]:
    best: CandidateReport = layout.best
    of = f" of {', '.join(best.structures)}" if several else ""
    return (
        ("→ " if chosen else "  ") + layout.id,
        layout_words.families(best) + of,
        best.variant,
        best.evidence,
        quantities.interval(best.speedup),
        quantities.interval(best.over_identity),
        layout_words.traffic(best),
        layout_words.conversion(best),
    )


def _quality(console: PlainConsole, report: Report, verbose: bool) -> None:
    checks = report.quality.checks
    passed = sum(check.ok for check in checks)
    console.print()
    _say(
        console, f"quality of the experiment: {passed} of {len(checks)} checks passed · {report.seconds.total:.1f} s in all"
    )
    for check in checks if verbose else [check for check in checks if not check.ok]:
        _say(console, f"  {'ok: ' + check.text if check.ok else 'not ok: ' + check_effect(check, report)}")
