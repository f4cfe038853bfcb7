"""Everything of two runs, held against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layout_advise.compare.match import MatchedStructure, matched_regions, matched_structures
from layout_advise.compare.times import Faster, Mark, faster, other_work
from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import tables
from layout_advise.reports.words import hotspot_words, layout_words


@dataclass(frozen=True, slots=True)
class ComparedLayout:
    """A layout that either run measured, and its gain over what the program was in that run."""

    label: str
    mark: Mark
    old: Interval | None
    new: Interval | None


@dataclass(frozen=True, slots=True)
class ComparedRegion:
    """A region that both runs have."""

    name: str
    old: HotspotReport
    new: HotspotReport
    time: Faster
    structures: tuple[MatchedStructure, ...]
    layouts: tuple[ComparedLayout, ...]


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Regions in common, and the names of those that only one run has. ``note``: why times are not held against each
    other, or empty."""

    regions: tuple[ComparedRegion, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    note: str

    @property
    def worse(self) -> bool:
        """Returns whether a region became slower."""
        return any(region.time.mark == "-" for region in self.regions)


def compared(old: Report, new: Report) -> ComparedRuns:
    """The comparison of two reports."""
    note = other_work(old, new)
    pairs = matched_regions(old.hotspots, new.hotspots)
    regions = tuple(_region(a, b, note) for a, b in pairs)
    only_old = [h for h in old.hotspots if all(h is not a for a, _ in pairs)]
    only_new = [h for h in new.hotspots if all(h is not b for _, b in pairs)]
    return ComparedRuns(
        regions,
        tuple(map(hotspot_words.short_name, only_old)),
        tuple(map(hotspot_words.short_name, only_new)),
        note if pairs else "",
    )


def _region(old: HotspotReport, new: HotspotReport, note: str) -> ComparedRegion:
    structures = matched_structures(old, new)
    layouts = tuple(_layouts(old, new, structures))
    return ComparedRegion(hotspot_words.short_name(new), old, new, faster(old, new, note), structures, layouts)


def _layouts(old: HotspotReport, new: HotspotReport, matched: tuple[MatchedStructure, ...]) -> list[ComparedLayout]:
    """One row a layout that was measured, of its variants the one ranked highest. Layouts are the same where they do the
    same to the same structures, whatever their numbers of elements."""
    shared = {one.new.id: one.old.id for one in matched if one.old is not None and one.new is not None}
    first = _best(old, {one.id: one.id for one in old.structures})
    second = _best(new, {one.id: shared.get(one.id, f"new {one.id}") for one in new.structures})
    rows = []
    for key in dict.fromkeys([*first, *second]):
        a, b = first.get(key), second.get(key)
        one = a or b
        assert one is not None
        before, after = (a.speedup if a else None), (b.speedup if b else None)
        if before is None and after is None:
            continue
        rows.append(ComparedLayout(_label(one, old if a else new), moved(before, after), before, after))
    return rows


def _best(hotspot: HotspotReport, names: Mapping[str, str]) -> dict[object, CandidateReport]:
    found: dict[object, CandidateReport] = {}
    for candidate in tables.ranked(hotspot):
        structures = tuple(sorted(names.get(one, one) for one in candidate.structures))
        key = candidate.families, candidate.block, candidate.classes, structures, tuple(sorted(candidate.arrays))
        found.setdefault(key, candidate)
    return found


def _label(candidate: CandidateReport, hotspot: HotspotReport) -> str:
    names = {one.id: one.name for one in hotspot.structures}
    return f"{layout_words.families(candidate)} of {', '.join(names.get(one, one) for one in candidate.structures)}"


def moved(before: Interval | None, after: Interval | None) -> Mark:
    """``+``, ``-``, ``~`` (the intervals of two gains overlap) or an empty string (not measured in both)."""
    if before is None or after is None:
        return ""
    return "+" if after.lo > before.hi else "-" if after.hi < before.lo else "~"
