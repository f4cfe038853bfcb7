"""From a report to the layout to write: which candidate, of which record, and which members lie together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from layout_advise.errors import SourceError, UsageError
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.model.wanted_arrays import WantedArray, WantedStart, array_of, start_of

FAMILIES = {"soa", "split", "compact", "reorder", "pad"}
"""The families of layouts that can be written."""
IN_BLOCKS = {"aosoa"}
"""Those of layouts in blocks: the last block is not padded, but as long as there are elements."""
BLOCK = re.compile(r"\bi // (\d+)\b")
PART = re.compile(r"\w+\[\d+\]")
STEP = re.compile(r"\b(\d+)\*i\b")


@dataclass(frozen=True, slots=True)
class WantedRecord:
    """A record by its name in the debug information, and its new groups of members; members in none come together.
    ``blocks``: so many elements of each group lie in a block, in which each member is an array; 0: in none. ``ordered``: the
    members of a group lie in the order in which it names them, and not in that of the declaration. ``padded``: an element
    has so many bytes; 0: as many as its members need. ``pooled``: elements are allocated one by one.
    ``apart``: members that are arrays, each part of which is in an array of its own."""

    type: str
    groups: tuple[tuple[str, ...], ...]
    blocks: tuple[int, ...] = ()
    ordered: bool = False
    padded: int = 0
    pooled: bool = False
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedLayout:
    """A candidate of a report, as what is to be done to records and arrays. ``note`` says why it is not the advised one, or
    is empty; ``instead`` says so in half a sentence."""

    hotspot: HotspotReport
    candidate: CandidateReport
    records: tuple[WantedRecord, ...]
    note: str = ""
    arrays: tuple[WantedArray | WantedStart, ...] = ()
    instead: str = ""


def wanted(report: Report, candidate: str | None, refused: Mapping[str, str] = MappingProxyType({})) -> WantedLayout:
    """The candidate with that id; else the advised one, or the best measured one of those that can be written and are not
    ``refused`` (why, by id). Raises UsageError for an unknown id, SourceError where there is none that can be."""
    for hotspot in report.hotspots:
        found = chosen(hotspot, candidate, refused)
        if found is not None:
            return found
    if candidate is not None:
        raise UsageError(f"no candidate {candidate} in the report", "", "`layout-advise report` lists them")
    raise SourceError(
        "no layout to apply",
        "the report has no measured candidate that gains and can be written",
        "name one with --candidate",
    )


def chosen(
    hotspot: HotspotReport, candidate: str | None = None, refused: Mapping[str, str] = MappingProxyType({})
) -> WantedLayout | None:
    """Of one region what ``wanted`` picks; None where the region has no such candidate."""
    by_id = {one.id: one for one in hotspot.candidates}
    if candidate is not None:
        one = by_id.get(candidate)
        return None if one is None else _wanted(hotspot, one)
    advised = by_id.get(hotspot.verdict.candidate or "")
    why = ""
    if advised is not None:
        why = refused.get(advised.id, "")
        try:
            if not why:
                return _wanted(hotspot, advised)
        except SourceError as error:
            why = error.why
    # what it takes to find a block is not in what a mock-up with loops over blocks was measured to gain
    whole = [one for one in hotspot.candidates if one.block is None]
    measured = [one for one in whole if one.evidence in ("live", "verified") and one.speedup is not None]
    gaining = [one for one in measured if one.speedup is not None and one.speedup.lo > 1.0 and one.id not in refused]

    def of_advised(one: CandidateReport) -> bool:
        return advised is not None and one.layout_id == advised.layout_id

    # the advised layout with its loop as it is before others: the reader was told of it
    for one in sorted(gaining, key=lambda one: (not of_advised(one), -one.speedup.lo if one.speedup else 0.0)):
        note, instead = "no candidate is advised; this one surely gains most", ""
        if advised is not None and of_advised(one):
            note = f"the layout of {advised.id}, with the loop as it is ({why})"
        elif advised is not None:
            note = f"the advised {advised.id} cannot be written ({why}); of those that can be, this one surely gains most"
            instead = f"not {advised.id}, as {why}"
        try:
            return replace(_wanted(hotspot, one, note), instead=instead)
        except SourceError:
            continue
    return None


def _wanted(hotspot: HotspotReport, candidate: CandidateReport, note: str = "") -> WantedLayout:
    """What is to be done for a candidate. Raises SourceError where its layout cannot be written."""
    if candidate.families in (("permute",), ("align",)):
        if why := "it is a temporary layout" if candidate.temporary else _form(candidate):
            raise SourceError(f"cannot write {candidate.id}", why, "choose another one with --candidate")
        own = [s for s in hotspot.structures if s.id in candidate.structures]
        made = array_of if candidate.families == ("permute",) else start_of
        return WantedLayout(hotspot, candidate, (), note, tuple(made(s, candidate) for s in own))
    return WantedLayout(hotspot, candidate, _records(hotspot, candidate), note)


def _records(hotspot: HotspotReport, candidate: CandidateReport) -> tuple[WantedRecord, ...]:
    """The candidate's structures by type. Raises SourceError where this layout cannot be written."""
    structures = {structure.id: structure for structure in hotspot.structures}
    single = all(structures[name].single for name in candidate.structures if name in structures)
    why = _obstacle(candidate, single)
    if why:
        raise SourceError(f"cannot write {candidate.id}", why, "choose another one with --candidate")
    arrays = [list(names) for names in candidate.arrays]
    found: dict[str, WantedRecord] = {}
    if missing := sorted(set(candidate.structures) - set(structures)):
        raise SourceError(f"cannot write {candidate.id}", f"the report does not have its structure {missing[0]}", "")
    for structure in (structures[name] for name in candidate.structures):
        if not structure.type or structure.type in ("int", "double", "float", "char", "long"):
            raise SourceError(f"cannot write {candidate.id}", f"{structure.name} has no record type", "")
        groups, apart = _groups(structure, candidate, arrays)
        blocks, ordered = _blocks(structure, candidate, groups), "reorder" in candidate.families
        padded = _padded(structure, candidate, groups)
        one = WantedRecord(structure.type, groups, blocks, ordered, padded, structure.single, apart)
        if found.setdefault(structure.type, one) != one:
            raise SourceError(f"cannot write {candidate.id}", f"two arrays of {structure.type} get two layouts", "")
    return tuple(found.values())


def _blocks(structure: StructureReport, candidate: CandidateReport, groups: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    """The elements in a block of each group, as the index maps of its parts say. Raises SourceError where that is not a
    number of elements of a one-dimensional array."""
    if candidate.block is None:
        return ()
    found = []
    for group in groups:
        maps = [
            part.index_map
            for part in candidate.parts
            if part.structure == structure.id and {member_of(name) for name in part.fields} & set(group)
        ]
        blocks = {int(size) for text in maps for size in BLOCK.findall(text.partition(" of ")[0])}
        if len(blocks) > 1 or not maps or any(not text or "; j < " in text for text in maps):
            raise SourceError(f"cannot write {candidate.id}", "blocks of this form cannot be written yet", "")
        found.append(blocks.pop() if blocks and len(group) > 1 else 0)
    if not any(found):
        raise SourceError(f"cannot write {candidate.id}", "its blocks are of one member each", "")
    return tuple(found)


def _padded(structure: StructureReport, candidate: CandidateReport, groups: tuple[tuple[str, ...], ...]) -> int:
    """The bytes of a padded element, as the index maps of its parts say; 0 where it is not padded, or its last block is.
    Raises SourceError where that is not one number, of one record."""
    if "pad" not in candidate.families or candidate.block is not None:
        return 0
    maps = [part.index_map.partition(" of ")[0] for part in candidate.parts if part.structure == structure.id]
    steps = {int(step) for text in maps for step in STEP.findall(text)}
    if len(groups) != 1 or len(steps) != 1 or any("j" in text for text in maps):
        raise SourceError(f"cannot write {candidate.id}", "padding of this form cannot be written yet", "")
    return steps.pop()


def _obstacle(candidate: CandidateReport, single: bool) -> str:
    """Why this layout cannot be written; ``single``: of objects that are allocated one by one, which a pool gathers."""
    if candidate.temporary:
        return "it is a temporary layout"
    if candidate.classes is not None:
        return "elements stored by class cannot be written yet"
    if why := _form(candidate):
        return why
    known = FAMILIES | (IN_BLOCKS if candidate.block is not None else set()) | ({"gather"} if single else set())
    other = sorted(set(candidate.families) - known)
    return f"layouts of family {other[0]} cannot be written yet" if other else ""


def _form(candidate: CandidateReport) -> str:
    """Why loops that were measured in this form cannot be written."""
    if candidate.same_code_as is not None:
        return ""
    if candidate.variant in ("simd", "lanes"):
        return f"its gain needs loops in another form ({candidate.variant}), which cannot be written yet"
    if candidate.variant == "restrict":
        return "its gain needs arrays that are declared not to overlap (restrict), which cannot be written yet"
    return ""


def _groups(
    structure: StructureReport, candidate: CandidateReport, arrays: list[list[str]]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The members that lie together, and those whose parts are all in arrays of their own. Takes from ``arrays`` those of
    this structure, which come first. Raises SourceError where some parts of one member are to be apart and others not."""
    left = {name for part in candidate.parts if part.structure == structure.id for name in part.fields}
    own = []
    while left and arrays:
        own.append(arrays.pop(0))
        left -= set(own[-1])
    groups = [tuple(dict.fromkeys(member_of(name) for name in names)) for names in own]
    placed = [member for group in groups for member in group]
    several = tuple(dict.fromkeys(member for member in placed if placed.count(member) > 1))
    for member in several:
        parts = [names for names in own if member in map(member_of, names)]
        if any(len(names) > 1 for names in parts) or not all(PART.fullmatch(names[0]) for names in parts):
            why = f"member {member} would be taken apart in part, which cannot be written yet"
            raise SourceError(f"cannot write {candidate.id}", why, "choose another one with --candidate")
    return tuple(dict.fromkeys(groups)), several


def member_of(name: str) -> str:
    """The record's own member in the name of a part of it: ``at`` of ``at[0].re``."""
    return name.split(".")[0].split("[")[0]


def shown_record(record: WantedRecord) -> str:
    """The members that lie together: ``vx | m, P in blocks of 8 | the rest``, or ``vx, m, P in 64 bytes``."""
    sizes = [*record.blocks, *[0] * len(record.groups)]
    shown = [
        ", ".join(group) + (f" in blocks of {size}" if size else "")
        for group, size in zip(record.groups, sizes, strict=False)
    ]
    if record.apart:
        shown = [f"each of {text}" if text in record.apart else text for text in shown]
    text = f"{', '.join(shown)} in {record.padded} bytes" if record.padded else " | ".join([*shown, "the rest"])
    return f"{text}; in a pool" if record.pooled else text
