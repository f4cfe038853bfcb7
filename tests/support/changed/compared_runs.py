"""Reports of a program before and after its layout was changed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport, Original, Verdict
from layout_advise.reports.model.structure import FieldUse, StructureReport
from tests.support.sample_report import candidate, report

NOTHING = Verdict("undecided", None, None, "nothing-measured", "Undecided: nothing could be measured.")


def with_region(base: Report, **changes: Any) -> Report:
    """The report with its one region changed."""
    return replace(base, hotspots=(replace(base.hotspots[0], **changes),))


def timed(*ns: float) -> Original:
    """Times of a call in so many processes of the program."""
    return Original(None, None, sorted(ns)[0], ns_processes=ns)


def field(name: str, offset: int) -> FieldUse:
    """A member of eight bytes."""
    return FieldUse(name, "double", offset, 8, 10, 10)


def structure(name: str, used: str, unused: str = "", **changes: Any) -> StructureReport:
    """One with these members, a blank between two."""
    names = [*used.split(), *unused.split()]
    places = {one: 8 * number for number, one in enumerate(names)}
    values: dict[str, Any] = {
        "id": f"s_{name}",
        "name": name,
        "type": "particle",
        "fields": tuple(field(one, places[one]) for one in used.split()),
        "cold_fields": tuple(field(one, places[one]) for one in unused.split()),
        "element_bytes": 8 * len(names),
        **changes,
    }
    return replace(report().hotspots[0].structures[0], **values)


def tried(name: str, gain: float, arrays: str, block: int | None = None, **changes: Any) -> CandidateReport:
    """A measured layout: arrays separated by ``|``, their members by blanks."""
    groups = tuple(tuple(group.split()) for group in arrays.split("|"))
    families = ("aosoa", "compact") if block else ("soa", "compact") if len(groups) > 1 else ("split", "compact")
    interval = Interval(gain, gain - 0.2, gain + 0.2, 9)
    return replace(candidate(1, interval), id=name, arrays=groups, block=block, families=families, **changes)


def before() -> Report:
    """Records of five members, of which three are used; advised is a split, blocks of four tie with it."""
    layouts = (tried("c1", 3.0, "x v m"), tried("c2", 2.9, "x v m", 4), tried("c3", 2.0, "x | v | m"))
    verdict = Verdict("change", "c1", 3.0, "measured-gain", "Change it.", peers=("c2-restrict",))
    return with_region(
        report(),
        structures=(structure("p", "x v m", "y z"),),
        candidates=layouts,
        verdict=verdict,
        original=timed(300.0, 310.0, 305.0, 302.0, 301.0),
    )


def after(structures: tuple[StructureReport, ...], ns: float, **changes: Any) -> Report:
    """The changed program, of which its own run tells nothing."""
    times = timed(*(ns * part for part in (1.0, 1.02, 1.01, 1.005, 1.03)))
    return with_region(report(), structures=structures, original=times, candidates=(), verdict=NOTHING, **changes)


def region(content: Report) -> HotspotReport:
    """Its one region."""
    (one,) = content.hotspots
    return one
