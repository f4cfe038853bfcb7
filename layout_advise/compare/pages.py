"""A comparison as text, Markdown and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from layout_advise.compare.match import MatchedStructure
from layout_advise.compare.runs import ComparedRegion, ComparedRuns
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.words import quantities

SCHEMA = "layout-advise.compare/1"
NOTHING = "The two runs have no region in common."


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its title, and rows of a mark, a name, the older and the newer value."""

    title: str
    rows: tuple[tuple[str, str, str, str], ...]
    notes: tuple[str, ...]


def shown_region(region: ComparedRegion) -> Rows:
    """Its time, its structures, and the gains of layouts."""
    time = region.time
    factor = "" if time.speedup is None else f", {quantities.interval(time.speedup)}"
    call = (time.mark, f"a call{factor}", quantities.nanoseconds(time.old_ns), quantities.nanoseconds(time.new_ns))
    structures = [("", *_structure(one)) for one in region.structures]
    layouts = [(one.mark, one.label, quantities.interval(one.old), quantities.interval(one.new)) for one in region.layouts]
    title = f"{region.name}: {region.old.verdict.action} → {region.new.verdict.action}"
    notes = (f"no ratio of times: {time.why}",) if time.speedup is None else ()
    return Rows(title, (call, *structures, *layouts), notes)


def _structure(matched: MatchedStructure) -> tuple[str, str, str]:
    one = matched.new or matched.old
    assert one is not None
    return one.name, _shown(matched.old), _shown(matched.new)


def _shown(one: StructureReport | None) -> str:
    if one is None:
        return "–"
    plural = "s" if one.element_bytes != 1 else ""
    return f"{one.type or '?'}, {one.element_bytes} byte{plural}"


def as_tables(found: ComparedRuns) -> Iterator[Table | str]:
    """The parts that the terminal shows."""
    for rows in map(shown_region, found.regions):
        table = Table(title=escape(rows.title), box=None, title_justify="left")
        for name in ("", "", "A", "B"):
            table.add_column(name)
        for row in rows.rows:
            table.add_row(*map(escape, row))
        yield table
        yield from rows.notes
    yield from _rest(found)


def as_markdown(found: ComparedRuns) -> str:
    """The same for a pull request."""
    lines: list[str] = []
    for rows in map(shown_region, found.regions):
        lines += [f"### {_cell(rows.title)}", "", "| | | A | B |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows.rows]
        lines += ["", *(f"{note}\n" for note in rows.notes)]
    return "\n".join([*lines, *_rest(found)]).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("~", "\\~")


def _rest(found: ComparedRuns) -> Iterator[str]:
    if not found.regions:
        yield NOTHING
    for names, run in ((found.only_old, "A"), (found.only_new, "B")):
        if names:
            yield f"only in {run}: {', '.join(names)}"


def as_data(found: ComparedRuns) -> dict[str, Any]:
    """The same for scripts. ``mark``: ``+`` faster, ``-`` slower, ``~`` not different, empty not known."""
    return {
        "schema": SCHEMA,
        "worse": found.worse,
        "regions": [
            {
                "name": region.name,
                "verdicts": [region.old.verdict.action, region.new.verdict.action],
                "mark": region.time.mark,
                "ns": [region.time.old_ns, region.time.new_ns],
                "speedup": _interval(region.time.speedup),
                "why": region.time.why or None,
                "structures": [_data(one) for one in region.structures],
                "layouts": [
                    {"label": one.label, "mark": one.mark, "gains": [_interval(one.old), _interval(one.new)]}
                    for one in region.layouts
                ],
            }
            for region in found.regions
        ],
        "only": [list(found.only_old), list(found.only_new)],
    }


def _data(matched: MatchedStructure) -> dict[str, Any]:
    both: Sequence[StructureReport | None] = (matched.old, matched.new)
    return {
        "names": [one and one.name for one in both],
        "types": [one and one.type for one in both],
        "element_bytes": [one and one.element_bytes for one in both],
        "alloc_sites": [one and one.alloc_site for one in both],
        "layouts": [one and one.layout for one in both],
    }


def _interval(value: Interval | None) -> list[float] | None:
    return None if value is None else [value.median, value.lo, value.hi]
