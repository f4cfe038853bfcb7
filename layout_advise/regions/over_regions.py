"""Layouts that were measured in several regions of a run: what each gains there, and in the whole program.

A layout belongs to a structure, and a structure to all the code that uses it: a gain of one region that another one loses is
no gain of the program (decision 66).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import undecided
from layout_advise.plan.whole_program import Gain, RegionPart, amdahl
from layout_advise.reasons import Reason
from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import OverRegions
from layout_advise.reports.model.hotspot import HotspotReport, Verdict
from layout_advise.reports.model.plan import InRegion
from layout_advise.reports.words.layout_words import families
from layout_advise.reports.words.plan_words import sentence

UNTOUCHED = Interval(1.0, 1.0, 1.0)


def over_regions(
    hotspots: Sequence[HotspotReport], alone: Sequence[float], shared: Sequence[str]
) -> tuple[OverRegions, ...]:
    """A row for each of the layouts ``shared`` by the regions (ids) that one of them measured, the best for the program
    first; ``alone`` is the part of the samples of each region that no region before it has. A layout that a region with its
    structures could not measure has no gain of the program."""
    rows = []
    for name in (n for n in shared if any(best_variant(h, n) is not None for h in hotspots)):
        cells = [_in(h, part, name, hotspots) for h, part in zip(hotspots, alone, strict=True)]
        label = next((families(c) for h in hotspots for c in h.candidates if c.id == name), "")
        known = [RegionPart(c.share, Gain(c.speedup.median, c.speedup.lo, c.speedup.hi)) for c in cells if c.speedup]
        whole = amdahl(known) if len(known) == len(cells) else None
        program = Interval(whole.median, whole.lo, whole.hi) if whole is not None else None
        rows.append(OverRegions(name, label, tuple(cells), program))
    return tuple(sorted(rows, key=lambda row: -(row.program.median if row.program is not None else 0.0)))


def _in(hotspot: HotspotReport, share: float, name: str, hotspots: Sequence[HotspotReport]) -> InRegion:
    """The gain of a layout in a region: of its best variant, between that over the original and that over the unchanged
    mock-up, and of its plain one; 1 where the region does not touch its structures; None where it was not measured there."""
    best, known = best_variant(hotspot, name), hotspot.name or hotspot.symbol
    if best is None:
        return InRegion(known, share, None if _touches(hotspot, name, hotspots) else UNTOUCHED)
    variants = (c for c in hotspot.candidates if layout_of(c) == name and c.variant == "plain" and c.speedup is not None)
    plain = next((gain_around(c) for c in variants), None)
    return InRegion(known, share, gain_around(best), best.variant, plain)


def best_variant(hotspot: HotspotReport, name: str) -> CandidateReport | None:
    """The fastest verified variant of a layout in a region."""
    own = [c for c in hotspot.candidates if layout_of(c) == name and c.evidence in ("live", "verified", "close")]
    measured = [(c.speedup.median, k) for k, c in enumerate(own) if c.speedup is not None]
    return own[max(measured)[1]] if measured else None


def gain_around(candidate: CandidateReport) -> Interval:
    """The gain over the original, with the interval between that and the gain over the unchanged mock-up, and what a source
    that promises its compiler less would lose of it."""
    assert candidate.speedup is not None
    both = [i for i in (candidate.speedup, candidate.over_identity) if i is not None]
    promised = [term.lo for term in candidate.error_budget if term.term == "promises"]
    return Interval(candidate.speedup.median, min([*(i.lo for i in both), *promised]), max(i.hi for i in both))


def layout_of(candidate: CandidateReport) -> str:
    """The id of the layout that a row is a variant of."""
    return candidate.id.partition("-")[0]


def _touches(hotspot: HotspotReport, name: str, hotspots: Sequence[HotspotReport]) -> bool:
    """Tells whether the region uses memory that the layout, as another region has it, lays out anew."""
    own = {(s.base, s.bytes) for s in hotspot.structures}
    for other in hotspots:
        laid = {s for c in other.candidates if layout_of(c) == name for s in c.structures}
        if own & {(s.base, s.bytes) for s in other.structures if s.id in laid}:
            return True
    return False


def with_regions(hotspot: HotspotReport, rows: Sequence[OverRegions]) -> HotspotReport:
    """The report of a region with what its layouts gain in the whole program. In the place of a change by which the program
    does not gain, or of which that is not known, the layout that is best for the program is advised, or none."""
    programs: Mapping[str, OverRegions] = {row.candidate: row for row in rows}
    candidates = tuple(_with_program(c, programs.get(layout_of(c))) for c in hotspot.candidates)
    verdict = hotspot.verdict
    row = programs.get(verdict.candidate.partition("-")[0]) if verdict.candidate is not None else None
    if row is not None:
        verdict = _judged(hotspot, row, rows[0])
    return msgspec.structs.replace(hotspot, candidates=candidates, verdict=verdict)


def _with_program(candidate: CandidateReport, row: OverRegions | None) -> CandidateReport:
    if row is None or candidate.speedup is None:
        return candidate
    return msgspec.structs.replace(candidate, program_speedup=row.program.median if row.program is not None else None)


def _judged(hotspot: HotspotReport, row: OverRegions, best: OverRegions) -> Verdict:
    """The verdict of a region in which the layout of ``row`` gains most: for the program, that may be another one."""
    verdict = hotspot.verdict
    least = DECIDE.smallest_gain(hotspot.snapshot)
    better = best.program is not None and row.program is not None and best.program.lo > row.program.hi
    if row.program is not None and row.program.lo >= least and not better:
        text = f"{verdict.text} {sentence(row)}"
        if best.program is not None and row.program.median < DECIDE.as_good * best.program.median:
            text = f"{text} {sentence(best)}"
        return msgspec.structs.replace(verdict, text=text, program=row.program)
    found = best_variant(hotspot, best.candidate)
    if best is row or found is None or best.program is None or best.program.lo < least:
        return undecided(Reason.OTHER_REGIONS, sentence(row) if best is row else f"{sentence(row)} {sentence(best)}")
    interval = gain_around(found)
    text = f"Change it: {sentence(best)} First figures: their lower ends are claimed. Best here alone: {sentence(row)}"
    gain = interval.lo
    return Verdict(
        "change", found.id, gain, Reason.MEASURED_GAIN, text, use="permanent", interval=interval, program=best.program
    )
