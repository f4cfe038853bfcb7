"""From what the stages found to the report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from layout_advise.decide.verdict import amdahl
from layout_advise.layoutalgebra.bridges.printed_maps import printed_map
from layout_advise.layoutalgebra.derive.structure import Candidate, Field, Structure
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.propose.field_clusters import Nearness
from layout_advise.propose.titles import several_lengths
from layout_advise.reports.model.candidate import (
    Bytes,
    CandidateReport,
    Conversion,
    Evidence,
    Interval,
    PartReport,
    RuleStep,
    Traffic,
    Verification,
)
from layout_advise.reports.model.structure import FieldPair, FieldUse, StructureReport


@dataclass(frozen=True, slots=True)
class Drawn:
    """The declaration and drawing that the report shows of a layout, and of a candidate the change of the source."""

    declaration: str
    drawing: str
    change: str = ""


@dataclass(frozen=True, slots=True)
class Converted:
    """The cost of converting to a layout and back, in ns, and which fields a view around a call copies. ``around`` and
    ``break_even`` as in the report."""

    into_ns: float
    out_ns: float
    copied_in: tuple[str, ...] = ()
    copied_out: tuple[str, ...] = ()
    around: Ratio | None = None
    break_even: Ratio | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything about one candidate after the trials."""

    candidate: Candidate
    variant: Literal["plain", "restrict", "lanes", "simd"]
    evidence: Evidence
    reason: str | None
    verification: Verification | None
    conversion: Converted | None
    traffic: tuple[int, int] | None
    source: str
    mockup: str | None
    drawn: Drawn
    replay: Ratio | None = None


def interval(ratio: Ratio | None) -> Interval | None:
    """A measured ratio in the report's form."""
    return None if ratio is None else Interval(ratio.median, ratio.lo, ratio.hi, ratio.restores)


def field_use(field: Field) -> FieldUse:
    """A field in the report's form."""
    return FieldUse(field.name, field.type, field.offset, field.bytes, field.reads, field.writes)


def field_pairs(near: Nearness | None) -> tuple[FieldPair, ...]:
    """Pairs of fields in the report's form, in alphabetical order."""
    if near is None:
        return ()
    return tuple(
        FieldPair(*pair, near.affinities.get(pair, 0.0), round(distance))
        for pair, distance in sorted(near.distances.items())
    )


def _place(structure: Structure) -> int:
    """The address by which a structure is known in other regions: of its pointers, or of its first element."""
    if structure.via is not None:
        return structure.via.table
    return structure.blocks[0].address if structure.blocks else structure.base


def structure_report(
    structure: Structure,
    term: str,
    unit: int,
    drawn: Drawn,
    note: str | None,
    used_part: float | None = None,
    near: Nearness | None = None,
) -> StructureReport:
    """A structure in the report's form."""
    return StructureReport(
        id=structure.id,
        name=structure.name,
        kind=structure.kind,
        type=structure.type,
        alloc_site=structure.alloc_site,
        base=f"{_place(structure):#x}",
        bytes=structure.via.count * structure.via.bytes if structure.via else structure.bytes,
        element_bytes=structure.via.bytes if structure.via else structure.element_bytes,
        count=structure.count,
        unit_bytes=unit,
        layout=term,
        fields=tuple(field_use(f) for f in structure.fields),
        cold_fields=tuple(field_use(f) for f in structure.cold),
        declaration=drawn.declaration,
        dimensions=() if structure.via else tuple(dim.count for dim in structure.dims),
        drawing=drawn.drawing,
        note=note,
        used_part=used_part,
        pairs=field_pairs(near),
        single=structure.single,
    )


def conversion(
    costs: Converted | None, original_ns: float | None, speedup: float | None
) -> tuple[Conversion | None, float | None]:
    """The conversion's cost with its break-even, and the net speedup when converting around every call: as it was timed,
    else the sum of what the call and the conversion took apart from each other."""
    if costs is None:
        return None, None
    into, out = costs.into_ns, costs.out_ns
    calls, net = None, None
    if original_ns and speedup:
        saved = original_ns - original_ns / speedup
        calls = max(1, math.ceil((into + out) / saved)) if saved > 0 else None
        net = original_ns / (original_ns / speedup + into + out)
    if costs.break_even is not None:
        calls = max(1, math.ceil(costs.break_even.median))
    report = Conversion(
        into / 1e6, out / 1e6, calls, costs.copied_in, costs.copied_out, interval(costs.around), interval(costs.break_even)
    )
    return report, costs.around.median if costs.around is not None else net


def candidate_report(
    outcome: Outcome,
    steady: Ratio | None,
    over: Ratio | None,
    cold: Ratio | None,
    original_ns: float | None,
    share: float,
    again: bool,
) -> CandidateReport:
    """One candidate in the report's form; ``speedup`` is null unless it ran and was verified."""
    candidate = outcome.candidate
    counted = outcome.evidence in ("verified", "close")
    speedup = steady if counted else None
    costs, net = conversion(outcome.conversion, original_ns, speedup.median if speedup else None)
    return CandidateReport(
        id=candidate.id,
        structures=tuple(r.structure.id for r in candidate.relayouts),
        families=candidate.families,
        block=candidate.block,
        temporary=candidate.temporary,
        layout={r.structure.id: r.term for r in candidate.relayouts},
        derivation=candidate.derivation,
        steps={r.structure.id: tuple(RuleStep(*step) for step in r.steps) for r in candidate.relayouts if r.steps},
        variant=outcome.variant,
        parts=tuple(
            PartReport(r.structure.id, p.fields, p.unit_bytes, p.term, printed_map(r, p))
            for r in candidate.relayouts
            for p in r.parts
        ),
        evidence=outcome.evidence,
        reason=outcome.reason,
        verification=outcome.verification,
        speedup=interval(speedup),
        over_identity=interval(over if counted else None),
        cold=interval(cold if counted else None),
        conversion=costs,
        net_speedup=net,
        replay=interval(outcome.replay),
        program_speedup=amdahl(share, speedup.median) if speedup else None,
        traffic=Traffic(*outcome.traffic) if outcome.traffic else None,
        bytes=Bytes(sum(r.structure.bytes for r in candidate.relayouts), candidate.bytes),
        mockup=outcome.mockup,
        declaration=outcome.drawn.declaration,
        drawing=outcome.drawn.drawing,
        change=outcome.drawn.change,
        source=outcome.source,
        measured_again=again,
        classes=max((r.chosen.block for r in candidate.relayouts if r.chosen is not None), default=None),
        arrays=tuple(names for r in candidate.stored for names in r.arrays),
        proposers=candidate.proposers,
        blocks=several_lengths(candidate),
    )
