"""From candidates, findings and timings to the hotspot's part of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layout_advise.choose.profile import Profiled
from layout_advise.decide.decision import Decision
from layout_advise.describe.assemble import Drawn, candidate_report, interval, structure_report
from layout_advise.describe.candidate_rows import measured_rows, unmeasured
from layout_advise.describe.own_uses import with_own_uses
from layout_advise.describe.source_view import source_view
from layout_advise.describe.studied import Decided
from layout_advise.describe.users_report import with_elsewhere, with_usage
from layout_advise.errors import NotLiftedError
from layout_advise.layoutalgebra.bridges.declarations import declare_structure
from layout_advise.layoutalgebra.derive.derive import plain_reason
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.draw.memory import draw
from layout_advise.layoutalgebra.explore.families import can_pad
from layout_advise.layoutalgebra.terms.notation import shorten
from layout_advise.measure.replays import Replays
from layout_advise.mockup.evidence.kept_calls import ended_ways, kept_calls
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.timing.ratios import identity_ratio, noise_floor
from layout_advise.mockup.timing.statistics import median_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_RESTRICT, IDENTITY_SIMD, ORIGINAL, SCALAR
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.propose.field_clusters import nearness
from layout_advise.reports.model.candidate import Ablation, Identity
from layout_advise.reports.model.hotspot import (
    Batch,
    CompiledBy,
    EndedWay,
    HotspotReport,
    KeptCall,
    KindReport,
    NotLifted,
    Original,
    Span,
    TraceSummary,
    Verdict,
)
from layout_advise.reports.model.structure import SharedLines, StructureReport
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.source_names import in_source

LONGEST_TERM = 160


def not_lifted(error: NotLiftedError, module: ElfBinary, load_base: int) -> NotLifted:
    """The instruction that stopped the lifter, with its source line."""
    reason = in_source(error.reason, module, load_base)
    file, number = _line(module, error.address - load_base)
    return NotLifted(f"{error.address:#x}", error.instruction, file, number, reason)


def structures(seen: Observation) -> tuple[StructureReport, ...]:
    """The structures, most accessed first."""
    found = []
    for derived in seen.derived:
        structure = derived.structure
        term = shorten(str(derived.term), LONGEST_TERM) if derived.term is not None else "irregular: no term is claimed"
        note = structure.inexact or derived.note or plain_reason(structure)
        padded = (structure.block_base or structure.base) in seen.met and can_pad(structure)
        note = None if structure.id in seen.chosen or padded else note
        picture = Drawn(declare_structure(structure), draw(structure)) if structure.fields else Drawn("", "")
        part = seen.used_part.get(structure.id)
        near = nearness(seen, structure)
        report = structure_report(structure, term, derived.unit_bytes, picture, note, part, near)
        report = with_own_uses(report, structure, seen)
        found.append(with_usage(report, seen.users.get(structure.id)))
    return tuple(found)


def shared_lines(seen: Observation) -> tuple[SharedLines, ...]:
    """False sharing in the report's form."""
    ids = {(s.block_base or s.base): s.id for s in seen.structures}
    return tuple(
        SharedLines(
            s.object.name, ids.get(s.object.element_base or s.object.base), s.false, s.true, s.threads, s.fields, s.places
        )
        for s in seen.shared
    )


def _base(
    case: Case, seen: Observation, verdict: Verdict, snapshot: Any, left_out: Mapping[int, str] | None = None
) -> dict[str, Any]:
    file, line = case.profiled.place
    return {
        "symbol": case.profiled.function.name,
        "name": case.profiled.title,
        "region": "function" if case.profiled.nest is None else "loop",
        "file": file,
        "line": line,
        "share": case.profiled.share,
        "waits": case.profiled.run.waits,
        "processors": case.profiled.run.processors,
        "calls": case.probe.calls,
        "call": case.chosen.call,
        "alike": len(case.chosen.alike),
        "snapshot": snapshot,
        "threads": len(seen.trace.threads) or max(case.probe.threads, 1),
        "clock": case.clock,
        "trace": TraceSummary(seen.trace.backend, seen.trace.accesses, seen.terms, seen.trace.truncated, seen.trace.limits),
        "structures": structures(seen),
        "source": source_view(case.profiled, seen),
        "shared_lines": shared_lines(seen),
        "verdict": verdict,
        "batch": Batch(case.batch.size, *case.batch.spread, seen.puts, case.batch.unknown or None) if case.batch else None,
        "chunk": case.profiled.entry.chunk or None,
        "kinds": tuple(KindReport(k.calls, k.share, k.call, k.ns, k.text, (left_out or {}).get(k.call)) for k in case.kinds),
    }


def modelled(
    case: Case,
    seen: Observation,
    candidates: Sequence[Candidate],
    verdict: Verdict,
    stopped: tuple[NotLifted, ...],
    replays: Replays | None = None,
) -> HotspotReport:
    """The report of a hotspot that was not measured: cache lines counted from the trace, and what was replayed of it; no
    speedup."""
    done = replays or Replays()
    outcomes = [unmeasured(c, done, case.space.region.name, seen.used_part) for c in candidates]
    timings = done.timings
    rows = tuple(
        with_elsewhere(candidate_report(o, None, None, None, None, case.profiled.share, False), o.candidate, seen.users)
        for o in outcomes
    )
    return HotspotReport(
        **_base(case, seen, verdict, done.snapshot),
        original=_original(case, timings, case.chosen.in_situ_ns),
        identity=None,
        noise=Span(*noise_floor(timings)) if timings else None,
        candidates=rows,
        not_lifted=stopped,
    )


def measured(case: Case, seen: Observation, decided: Decided) -> HotspotReport:
    """The report of a hotspot that was tried."""
    decision, verified = decided.decision, decided.verified
    timings = decision.first if decision else None
    noise = noise_floor(timings, decided.mode or "steady") if timings else None
    identity = verified.found.get(IDENTITY)
    reason = identity.reason if identity else verified.built.mockups[IDENTITY].reason
    ratio = identity_ratio(timings, decided.mode or "steady") if timings else None
    return HotspotReport(
        **_base(case, seen, decided.verdict, decision.snapshot if decision else "fork", decided.left_out),
        original=_original(case, timings, decision.in_situ_ns if decision else case.chosen.in_situ_ns),
        identity=Identity(identity.evidence if identity else "rejected", interval(ratio), reason),
        noise=Span(*noise) if noise else None,
        candidates=tuple(measured_rows(case, seen, decided)),
        ablation=ablation(decision) if decision else None,
        by_threads=decided.threads,
        ended_ways=_ended(case, seen, verified.built.source.lifted),
        kept_calls=_kept(case, seen, verified.built.source.lifted),
        compiled=_compiled(case.profiled),
        most_gain=_most_gain(decided),
        no_live=next((t.reason for t in decided.trials.values() if not t.calls), None),
    )


def _most_gain(decided: Decided) -> float | None:
    """The greatest gain that is not excluded; None where the verdict does not rest on what the candidates gain."""
    ceilings = [top for one in decided.results if (top := one.ceiling()) is not None]
    return max(ceilings, default=None) if decided.verdict.interval is not None else None


def _ended(case: Case, seen: Observation, lifted: Lifted) -> tuple[EndedWay, ...]:
    module, base = case.profiled.module, seen.region.load_base
    return tuple(
        EndedWay(f"{way.pc:#x}", *_line(module, way.pc - base), in_source(way.reason, module, base))
        for way in ended_ways(lifted)
    )


def _kept(case: Case, seen: Observation, lifted: Lifted) -> tuple[KeptCall, ...]:
    module, base = case.profiled.module, seen.region.load_base
    return tuple(
        KeptCall(f"{call.origin.pc:#x}", call.function, *_line(module, call.origin.pc - base)) for call in kept_calls(lifted)
    )


def _line(module: ElfBinary, address: int) -> tuple[str | None, int | None]:
    line = module.user_line(address)
    return (line.file, line.line) if line else (None, None)


def _compiled(profiled: Profiled) -> CompiledBy:
    known = profiled.module.compiler(profiled.function)
    return CompiledBy(Path(known.executable or "gcc").name, known.flags, known.recorded, known.why)


def _original(case: Case, timings: Timings | None, in_situ_ns: float | None) -> Original:
    measured = (timings.origin or timings) if timings is not None else None
    cold, steady, fresh = (
        measured.nanoseconds(ORIGINAL, mode) if measured else None for mode in ("cold", "steady", "fresh")
    )
    return Original(
        case.per_call(cold),
        case.per_call(steady),
        case.per_call(in_situ_ns),
        case.per_call(fresh),
        timings.unknown if timings is not None and timings.unknown else None,
        tuple(median_of(window) for window in case.chosen.windows if window) if case.timed_calls == 1 else (),
    )


def ablation(decision: Decision) -> Ablation | None:
    """The gains of the layout and of the vector instructions each by themselves, if that was measured."""
    timings, name = decision.ablation, decision.ablated
    if timings is None or name is None:
        return None
    mode = decision.mode or "steady"
    scalar, layout, both = (timings.ratio(ORIGINAL, n, mode) for n in (SCALAR, name.scalar, name))
    builds = [timings.ratio(ORIGINAL, n, mode) for n in (IDENTITY, IDENTITY_RESTRICT, IDENTITY_SIMD)]
    simd = max((ratio for ratio in builds if ratio is not None), key=lambda ratio: ratio.median, default=None)
    alone = (timings.ratio(SCALAR, name.scalar, mode), timings.ratio(name.scalar, name, mode))
    return Ablation(str(name), *(interval(ratio) for ratio in (scalar, layout, simd, both, *alone)))
