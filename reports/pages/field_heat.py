"""Tables of the accesses to fields: by region, by phase of the program, and by thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.plan import OrderStep
from layout_advise.reports.model.structure import FieldUse, StructureReport
from layout_advise.reports.words import hotspot_words
from layout_advise.reports.words.plan_words import step_text
from layout_advise.reports.words.quantities import number

MOST_COLUMNS, MOST_FIELDS = 12, 100
"""Regions, phases and threads in a table, and fields."""
DARKEST = 45
"""Per cent of colour of the field with most accesses: its numbers stay readable."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """Reads and writes of a field, and its heat in per cent of colour."""

    reads: str
    writes: str
    heat: int


@dataclass(frozen=True, slots=True)
class HeatTable:
    """Accesses to fields (a row each) by what is in ``heads``; ``note`` says what is counted, ``more`` how many columns have
    no room."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    note: str
    more: int


Counts = Mapping[str, tuple[int, int]]
"""Reads and writes of each field, by its name."""


def field_heat(report: Report, hotspot: HotspotReport, structure: StructureReport) -> tuple[HeatTable, ...]:
    """The tables of a structure of a region: those over the regions where it is the first that has the structure."""
    users = [(h, s) for h in report.hotspots for s in h.structures if _same(s, structure)]
    over = [_by_region(report, users), _by_phase(report, users)] if users and users[0][0] is hotspot else []
    return tuple(table for table in (*over, _by_thread(structure)) if table is not None)


def _same(one: StructureReport, other: StructureReport) -> bool:
    """Tells whether two regions use the same memory, and see the same elements there."""
    return (one.base, one.bytes, one.element_bytes) == (other.base, other.bytes, other.element_bytes)


Users = Sequence[tuple[HotspotReport, StructureReport]]


def _by_region(report: Report, users: Users) -> HeatTable | None:
    columns = [(hotspot_words.name(h), _of_call(h, s, h.calls)) for h, s in users]
    phases = " These are the phases of the program, too." if _are_phases(report, users) else ""
    note = f"Of the whole run: the accesses of the traced call, as often as the region is entered.{phases}"
    return _table("By region", columns, _fields(users), note)


def _by_phase(report: Report, users: Users) -> HeatTable | None:
    steps, outer = phases(report.plan.order.steps if report.plan is not None else ())
    if _are_phases(report, users):
        return None
    columns = []
    for step in steps:
        often = entries(step)
        parts = [_of_call(h, s, outer * often[h.name or h.symbol]) for h, s in users if often[h.name or h.symbol]]
        columns.append((step_text(step), _summed(parts)))
    turns = f", which the program goes through {number(outer)} times" if outer > 1 else ""
    note = f"Of the parts of the folded order of the regions{turns}: the traced calls, as often as each is entered."
    return _table("By phase", columns, _fields(users), note)


def _by_thread(structure: StructureReport) -> HeatTable | None:
    threads = list(dict.fromkeys(use.thread for field in structure.fields for use in field.threads))
    columns = []
    for thread in threads:
        own = {f.name: (use.reads, use.writes) for f in structure.fields for use in f.threads if use.thread == thread}
        columns.append((f"thread {thread}", own))
    return _table("By thread", columns, structure.fields, "Of the traced call.")


def phases(steps: Sequence[OrderStep]) -> tuple[Sequence[OrderStep], int]:
    """The parts that the order of the regions has at its outermost place where it has several, and how often all of them
    are gone through; no parts where there is one only."""
    outer = 1
    while len(steps) == 1 and steps[0].body:
        outer, steps = outer * steps[0].turns, steps[0].body
    return (steps, outer) if len(steps) > 1 else ((), 1)


def entries(step: OrderStep) -> Counter[str]:
    """The entries of each region, by its name, in a part of the order."""
    if not step.body:
        return Counter({step.hotspot or "": 1})
    found: Counter[str] = Counter()
    for inner in step.body:
        found.update({name: step.turns * often for name, often in entries(inner).items()})
    return found


def _are_phases(report: Report, users: Users) -> bool:
    """Tells whether each phase that uses the structure is one region, and each of these regions one phase."""
    steps, _ = phases(report.plan.order.steps if report.plan is not None else ())
    names = {h.name or h.symbol for h, _ in users}
    parts = [names & set(entries(step)) for step in steps]
    used = [next(iter(part)) for part in parts if len(part) == 1]
    return bool(used) and len(used) == sum(map(bool, parts)) == len(set(used))


def _of_call(hotspot: HotspotReport, structure: StructureReport, calls: int) -> Counts:
    """The accesses of so many calls that are like the traced one."""
    traced = hotspot.batch.calls if hotspot.batch is not None else 1
    return {f.name: (f.reads * calls // traced, f.writes * calls // traced) for f in structure.fields}


def _summed(parts: Sequence[Counts]) -> Counts:
    names = dict.fromkeys(name for part in parts for name in part)
    both: Callable[[str, int], int] = lambda name, k: sum(part.get(name, (0, 0))[k] for part in parts)  # noqa: E731
    return {name: (both(name, 0), both(name, 1)) for name in names}


def _fields(users: Users) -> list[FieldUse]:
    """The fields that any of the regions uses, in their order in the element."""
    every = {field.name: field for _, structure in users for field in structure.fields}
    return sorted(every.values(), key=lambda field: field.offset)


def _table(title: str, columns: Sequence[tuple[str, Counts]], fields: Sequence[FieldUse], note: str) -> HeatTable | None:
    """None where there are fewer than two columns with accesses: they tell nothing apart."""
    columns = [(head, counts) for head, counts in columns if any(map(sum, counts.values()))]
    if len(columns) < 2:
        return None
    shown = columns[:MOST_COLUMNS]
    most = max(sum(counts.get(field.name, (0, 0))) for _, counts in shown for field in fields) or 1

    def cell(counts: Counts, field: FieldUse) -> HeatCell:
        reads, writes = counts.get(field.name, (0, 0))
        return HeatCell(number(reads), number(writes), round(DARKEST * (reads + writes) / most))

    rows = tuple((field.name, tuple(cell(counts, field) for _, counts in shown)) for field in fields[:MOST_FIELDS])
    return HeatTable(title, tuple(head for head, _ in shown), rows, note, len(columns) - len(shown))
