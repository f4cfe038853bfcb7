"""From the report of a run to a guard: the records that its structures are of, as the debug information has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import BinaryError, SourceError
from layout_advise.guard.guard_file import FORMAT, Guard, GuardedMember, GuardedRegion, GuardedType, GuardedVariable
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.words.headline import headline
from layout_advise.reports.words.quantities import listing
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.records.find import NamedVariable, find_records, find_variables, has_types, references
from layout_advise.tracer.program.records.members import RecordLayout
from layout_advise.tracer.program.records.type_text import shape

MOST_MEMBERS = 12
"""Names of used members in a line."""


@dataclass(frozen=True, slots=True)
class Written:
    """A guard, and what of the run it does not hold (``left_out``: structure and why)."""

    guard: Guard
    left_out: tuple[str, ...]


def written(report: Report, binary: ElfBinary) -> Written:
    """The guard of a run's structures. Raises SourceError where none of them has a type that ``binary`` describes."""
    structures = [one for hotspot in report.hotspots for one in hotspot.structures]
    if not structures:
        raise SourceError("nothing to guard", "the run found no structure", "guard a run that advises `change` or `keep`")
    require_types(binary)
    named = find_records(binary.debug, {one.type for one in structures if one.type})
    variables = find_variables(binary.debug, {_root(one.name) for one in structures})
    types: dict[str, GuardedType] = {}
    arrays: dict[str, GuardedVariable] = {}
    left_out = []
    for one in structures:
        record = _fitting(named.get(one.type or "", ()), one) or _holder(one, variables, binary)
        if record is None and one.type is None:
            for standing in references(binary.debug):
                types[standing.name] = _guarded(standing)
                left_out.append(
                    f"{one.name}: where its members lie is in functions; `apply --guard` asserts it in the source"
                )
                record = standing
        variable = None if record else _array(one, variables)
        if record is not None:
            types.setdefault(record.name, _guarded(record))
        elif variable is not None:
            arrays[variable.name] = GuardedVariable(variable.name, variable.type, variable.function)
        else:
            left_out.append(f"{one.name}: neither its type nor a variable of that name is described")
    if not types and not arrays:
        raise SourceError("nothing to guard", left_out[0], "build with -g and trace again")
    regions = tuple(_region(hotspot) for hotspot in report.hotspots)
    program, day = Path(report.binary.path).name, report.created[:10]
    guard = Guard(FORMAT, program, day, report.machine.cpu, regions, tuple(types.values()), tuple(arrays.values()))
    return Written(guard, tuple(left_out))


def require_types(binary: ElfBinary) -> None:
    """Raises BinaryError for a program whose types are not described."""
    if not has_types(binary.debug):
        why = "its types are not described" if binary.debug.present else "it has no debug information"
        split = next((text for text in binary.warnings if ".dwo" in text), None)
        raise BinaryError(f"cannot read the types of {binary.path}", why, split or "build it with -g, and do not strip it")


def _root(name: str) -> str:
    """The variable in the name of a structure: ``p`` of ``p.vx`` and of ``p->vx``."""
    return re.split(r"\W", name, maxsplit=1)[0]


def _fitting(layouts: Sequence[RecordLayout], structure: StructureReport) -> RecordLayout | None:
    """The layout that is the structure's: as large, its used fields where the run saw them."""
    places = {(field.name, field.offset) for field in structure.fields}
    fitting = [one for one in layouts if one.bytes == structure.element_bytes]
    return max(fitting, key=lambda one: len(places & {(m.name, m.at) for m in one.members}), default=None)


def _holder(structure: StructureReport, variables: Sequence[NamedVariable], binary: ElfBinary) -> RecordLayout | None:
    """The record that holds the pointer to a plain array: ``struct particles`` of ``p.vx``."""
    root, *path = [part for part in re.split(r"\W+", structure.name) if part]
    records = {one.record for one in variables if one.name == root and one.record}
    if not path or not records:
        return None
    for layouts in find_records(binary.debug, records).values():
        for one in layouts:
            member = next((m for m in one.members if m.name == ".".join(path)), None)
            if member is not None and re.fullmatch(r"\d+(\*|\[.*)", shape(member.type)):
                return one
    return None


def _array(structure: StructureReport, variables: Sequence[NamedVariable]) -> NamedVariable | None:
    mine = [one for one in variables if one.name == structure.name and re.search(r"[*\]]$", one.type)]
    return min(mine, key=lambda one: (one.function != "", one.function), default=None)


def _guarded(record: RecordLayout) -> GuardedType:
    members = {m.name: GuardedMember(m.at, m.bytes, m.type, m.first_bit, m.bits) for m in record.members}
    return GuardedType(record.name, record.bytes, members, record.file)


def _region(hotspot: HotspotReport) -> GuardedRegion:
    name = hotspot.name or hotspot.symbol
    return GuardedRegion(name, hotspot.symbol, tuple(_uses(hotspot)), headline(hotspot))


def _uses(hotspot: HotspotReport) -> Iterator[str]:
    for one in hotspot.structures:
        members = list(dict.fromkeys(re.split(r"[.\[]", field.name)[0] for field in one.fields))
        plain = not one.cold_fields and members == ["value"]
        yield f"{one.name} ({one.type or '?'})" + ("" if plain else f": {listing(members, MOST_MEMBERS)}")
