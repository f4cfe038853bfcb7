"""From what the stages found to the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from layout_advise.choose.calls import Stretch
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import amdahl
from layout_advise.describe.policy import CHECKS
from layout_advise.layoutalgebra.bridges.printed_maps import printed_map
from layout_advise.layoutalgebra.derive.structure import Candidate, Field, Structure
from layout_advise.measure.mode import Mode
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.ratios import identity_ratio, noise_floor
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, PLACED
from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import (
    Bytes,
    CandidateReport,
    Conversion,
    Evidence,
    Interval,
    PartReport,
    Traffic,
    Verification,
)
from layout_advise.reports.model.structure import FieldUse, StructureReport
from layout_advise.reports.words import quantities


@dataclass(frozen=True, slots=True)
class Drawn:
    """The declaration and drawing that the report shows of a layout."""

    declaration: str
    drawing: str


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


def structure_report(
    structure: Structure, term: str, unit: int, drawn: Drawn, note: str | None, used_part: float | None = None
) -> StructureReport:
    """A structure in the report's form."""
    return StructureReport(
        id=structure.id,
        name=structure.name,
        kind=structure.kind,
        type=structure.type,
        alloc_site=structure.alloc_site,
        base=f"{structure.via.table if structure.via else structure.base:#x}",
        bytes=structure.via.count * structure.via.bytes if structure.via else structure.bytes,
        element_bytes=structure.via.bytes if structure.via else structure.element_bytes,
        count=structure.count,
        unit_bytes=unit,
        layout=term,
        fields=tuple(field_use(f) for f in structure.fields),
        cold_fields=tuple(field_use(f) for f in structure.cold),
        declaration=drawn.declaration,
        drawing=drawn.drawing,
        note=note,
        used_part=used_part,
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
        bytes=Bytes(sum(r.structure.bytes for r in candidate.relayouts), sum(r.bytes for r in candidate.relayouts)),
        mockup=outcome.mockup,
        declaration=outcome.drawn.declaration,
        drawing=outcome.drawn.drawing,
        source=outcome.source,
        measured_again=again,
        classes=max((r.chosen.block for r in candidate.relayouts if r.chosen is not None), default=None),
        arrays=tuple(names for r in candidate.relayouts for names in r.arrays),
    )


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the experiment went, for its quality checks."""

    timings: Timings | None
    in_situ_ns: float | None
    spread: float
    mode: Mode | None
    truncated: bool
    wrong_map_caught: bool | None
    calls_verified: int
    deterministic: bool | None
    batch: int = 1
    """How many calls are timed together."""
    unlike: int | None = None
    """In how many bytes a replayed batch leaves the memory that it touches otherwise than the program itself."""
    stretches: tuple[Stretch, ...] = ()
    """What single calls take in the course of the run."""
    same_blocks: bool = True
    """Whether the further calls use the blocks of memory that were to be re-laid."""


def quality(conditions: Conditions) -> contract.Quality:
    """The quality checks; a check that could not be made is not listed."""
    checks: list[contract.Check] = []
    timings = conditions.timings
    if timings is not None and timings.steady:
        checks += _timing_checks(timings, conditions)
    checks.append(
        contract.Check("trace-complete", not conditions.truncated, None, "the trace holds every access of the call")
    )
    if conditions.wrong_map_caught is not None:
        text = "a deliberately wrong layout was caught by the comparison"
        checks.append(contract.Check("wrong-map", conditions.wrong_map_caught, None, text))
    if conditions.calls_verified:
        count = conditions.calls_verified
        once = "at 1 call" if count == 1 else f"at {count} calls"
        at = once if conditions.batch == 1 else f"after {count} batches of {conditions.batch} calls"
        checks.append(contract.Check("calls-verified", count >= 3, float(count), f"compared {at} (3 wanted)"))
    if conditions.unlike is not None:
        n = conditions.unlike
        text = "a replayed batch leaves the memory that it touches as the program itself does" + (
            f", but for {n} bytes, which the program writes between the calls" if n else ""
        )
        checks.append(contract.Check("replayed-batch", n == 0, float(n), text))
    if conditions.deterministic is not None:
        text = "the program ran the same way each time it was started"
        checks.append(contract.Check("deterministic", conditions.deterministic, None, text))
    if not conditions.same_blocks:
        text = "further calls use other blocks of memory than the one measured: the layouts were not compared there"
        checks.append(contract.Check("same-blocks", False, None, text))
    passed = sum(check.ok for check in checks)
    return contract.Quality(passed / len(checks) if checks else 0.0, tuple(checks))


def _placement(timings: Timings, mode: Mode) -> Sequence[contract.Check]:
    """The check on the cost of where the hot loop lies, with the layout unchanged."""
    cost = timings.ratio(PLACED, IDENTITY, mode)
    if cost is None:
        return ()
    text = f"the unchanged mock-up takes {cost.median:.2f} times as long with its loop placed as in the original as aligned"
    return (contract.Check("placement", cost.lo <= CHECKS.placement, cost.median, text),)


def drift(stretches: Sequence[Stretch], in_situ_ns: float) -> Sequence[contract.Check]:
    """Tells whether calls elsewhere in the run take as long as the one measured."""
    if not stretches:
        return ()
    other = max(stretches, key=lambda s: abs(math.log(s.ns / in_situ_ns)))
    factor = other.ns / in_situ_ns
    calls = f"calls {quantities.number(other.first)} to {quantities.number(other.last)} of the run"
    text = f"{calls} take {factor:.2f} times as long as the one measured"
    return (contract.Check("later-calls", 1 / CHECKS.drift <= factor <= CHECKS.drift, factor, text),)


def _timing_checks(timings: Timings, conditions: Conditions) -> Sequence[contract.Check]:
    checks = []
    lo, hi = noise_floor(timings, conditions.mode or "steady")
    noise = max(hi, 1 / lo) if lo > 0 else math.inf
    checks.append(
        contract.Check(
            "noise-floor", noise <= CHECKS.noise, noise - 1, f"the original against itself differs by up to {noise - 1:.1%}"
        )
    )
    ratio = identity_ratio(timings, conditions.mode or "steady")
    if ratio is not None:
        ok = DECIDE.identity_lo <= ratio.median <= DECIDE.identity_hi
        text = f"the unchanged mock-up takes {ratio.median:.3f} times the original's time"
        checks.append(contract.Check("identity", ok, ratio.median, text))
        checks += _placement(timings, conditions.mode or "steady")
    if conditions.in_situ_ns:
        near = timings.nanoseconds(ORIGINAL, conditions.mode or "steady")
        if near:
            error = near / conditions.in_situ_ns - 1
            mode: str = conditions.mode or "neither warm nor cold"
            if timings.unknown:
                mode += f", as much of its branches unknown as makes it so: {timings.unknown:.0%} of what is learnt"
            text = f"the original in the snapshot is {error:+.1%} off its time in the running program ({mode})"
            checks.append(contract.Check("in-situ", abs(error) <= MEASURE.in_situ_tolerance, error, text))
        which = (
            "calls around the one stopped at" if conditions.batch == 1 else f"quarters of the {conditions.batch} calls timed"
        )
        text = f"the {which} differ by ±{conditions.spread:.1%}"
        checks.append(contract.Check("steady-calls", conditions.spread <= CHECKS.spread, conditions.spread, text))
        checks += drift(conditions.stretches, conditions.in_situ_ns)
    withheld = timings.withheld() if conditions.mode == "steady" else None
    if withheld is not None:
        why = "calls use other data in turn"
        if timings.between:
            why = "calls in the program take longer than with warm caches and less than with flushed ones"
        text = f"{why}: speedups are told only as far as they hold with flushed caches too" + (
            f", up to {withheld:.0%} below those with the same data again" if withheld >= CHECKS.told_less else ""
        )
        checks.append(contract.Check("other-data", withheld <= CHECKS.withheld, withheld, text))
    calm = timings.calm_part()
    if calm is not None:
        text = f"{calm:.0%} of the original's calls were timed while nothing slowed the processor" + (
            "" if timings.is_calm else ", too few to leave out the others"
        )
        checks.append(contract.Check("calm", timings.is_calm, calm, text))
    share = timings.rejected / timings.samples if timings.samples else 0.0
    text = f"{share:.0%} of the timed calls were left out for page faults"
    checks.append(contract.Check("page-faults", share <= CHECKS.rejected, share, text))
    return checks
