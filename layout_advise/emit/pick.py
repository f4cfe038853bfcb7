"""A candidate of a run with its index maps, from the report and the run's list of candidates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layout_advise.errors import RunDirError, SourceError, UsageError
from layout_advise.layoutalgebra.derive.structure import Relayout
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.contract import read_report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.rundir import REGIONS

LARGEST = 1 << 31
"""Bytes that no field has: numpy knows no item as large as this."""


class _Listed(msgspec.Struct):
    """The part of an entry of ``candidates.json`` that is used here."""

    id: str
    relayouts: tuple[dict[str, object], ...]


@dataclass(frozen=True, slots=True)
class Picked:
    """A candidate and the layouts of its structures, each once. ``note``: why it is this one, where none was named."""

    candidate: CandidateReport
    layouts: tuple[Relayout, ...]
    note: str = ""


def pick(run: Path, wanted: str | None) -> Picked:
    """The candidate with that id; else the advised one, else the one that is measured fastest. Raises UsageError for an
    unknown id, SourceError where the run has no layout, RunDirError where its list of candidates is missing."""
    report = read_report(run)
    for hotspot in report.hotspots:
        found = _chosen(hotspot, wanted)
        if found is not None:
            note = "" if wanted or found.id == hotspot.verdict.candidate else "none is advised; this is the best one"
            return Picked(found, _layouts(run, found), note)
    if wanted is not None:
        raise UsageError(f"no candidate {wanted} in the report", "", "`layout-advise report` lists them")
    raise SourceError("no layout to write", "the run measured none that gains", "name a candidate with --candidate")


def _chosen(hotspot: HotspotReport, wanted: str | None) -> CandidateReport | None:
    name = wanted or hotspot.verdict.candidate
    if name is not None:
        return next((one for one in hotspot.candidates if one.id == name), None)
    gaining = [one for one in hotspot.candidates if one.evidence == "verified" and one.speedup and one.speedup.lo > 1]
    return max(gaining, key=lambda one: one.speedup.lo if one.speedup else 0.0, default=None)


def _layouts(run: Path, candidate: CandidateReport) -> tuple[Relayout, ...]:
    """Those in the list of the region that has this candidate."""
    for file in sorted((run / REGIONS).glob("*/candidates.json")) if run.is_dir() else ():
        for one in _listed(file):
            if one.id == candidate.layout_id and tuple(map(_structure_of, one.relayouts)) == candidate.structures:
                return _stored(_built(layout, candidate.id) for layout in one.relayouts)
    raise RunDirError(
        f"no index maps of {candidate.id} in {run}", "its candidates.json is missing", "give a folder that `trace` wrote"
    )


def _listed(file: Path) -> list[_Listed]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[_Listed])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirError(f"cannot read {file}", str(error), "run the trace again with -f") from error


def _structure_of(layout: dict[str, object]) -> str:
    structure = layout.get("structure")
    return str(structure.get("id")) if isinstance(structure, dict) else "?"


def _built(layout: dict[str, object], name: str) -> Relayout:
    if layout.get("chosen") is not None:
        raise SourceError(f"cannot write {name}", "it stores elements by class, which is told by a table", "choose another")
    try:
        found = msgspec.convert(layout, Relayout)
    except msgspec.ValidationError as error:
        raise RunDirError(f"cannot read {name}", str(error), "run the trace again with -f") from error
    if not all(_fits(one) for one in (found, found.merged) if one is not None) or not _filled(found.merged or found):
        why = "its candidates.json is damaged: there are no such fields, dimensions or buffers"
        raise RunDirError(f"cannot read {name}", why, "run the trace again with -f")
    return found


def _fits(layout: Relayout) -> bool:
    """Tells whether the numbers of fields and buffers are those of some, and every dimension is used; what is read may be
    damaged."""
    fields, buffers = range(len(layout.structure.fields)), range(len(layout.buffers))
    dims = range(len(layout.structure.dims))
    known = all(one.field in fields and one.buffer in buffers and one.offset >= 0 for one in layout.fields)
    known = known and all({axis.dim for axis in one.axes} == set(dims) for one in layout.fields)
    sizes = [*(one.bytes for one in layout.structure.fields), *(one.bytes for one in layout.buffers)]
    sizes += [one.count for one in layout.structure.dims]
    sizes += [size for one in layout.fields for axis in one.axes for size in (axis.block, axis.div)]
    known = known and all(one.bytes < LARGEST for one in layout.structure.fields)
    return known and len(dims) > 0 and all(size > 0 for size in sizes)


def _filled(layout: Relayout) -> bool:
    """Tells whether each buffer holds a field; one of several merged structures need not have fields in all of them."""
    return {one.buffer for one in layout.fields} == set(range(len(layout.buffers)))


def _stored(layouts: Iterable[Relayout]) -> tuple[Relayout, ...]:
    return tuple(dict.fromkeys(layout.merged or layout for layout in layouts))
