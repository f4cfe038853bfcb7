"""From candidates, findings and timings to the hotspot's part of the report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from layout_advise.errors import NotLiftedError
from layout_advise.layoutalgebra.declare import declare, declare_structure
from layout_advise.layoutalgebra.derive import plain_reason
from layout_advise.layoutalgebra.draw import draw, draw_relayout
from layout_advise.layoutalgebra.structure import Candidate, Relayout
from layout_advise.layoutalgebra.text import shorten
from layout_advise.layoutalgebra.traffic import lines_chosen, lines_touched
from layout_advise.mixture import together
from layout_advise.mockup.measure import (
    IDENTITY,
    IDENTITY_SIMD,
    LAYOUT_SCALAR,
    ORIGINAL,
    SCALAR,
    identity_ratio,
    noise_floor,
)
from layout_advise.mockup.view import NOTHING
from layout_advise.reports import model
from layout_advise.stages.assemble import Converted, Drawn, Outcome, candidate_report, interval, structure_report
from layout_advise.stages.case import Case
from layout_advise.stages.observe import Observation
from layout_advise.stages.replays import Replays
from layout_advise.stages.timing import Decision, pick
from layout_advise.stages.trials import Trials
from layout_advise.tracer.binary import Binary

LONGEST_TERM = 160
TABLE_ROWS = 2
"""Lines shown of either end of a table in a mock-up's source."""


def plain(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON-ready data."""
    return {
        "id": candidate.id,
        "families": candidate.families,
        "block": candidate.block,
        "derivation": candidate.derivation,
        "cost": candidate.cost,
        "relayouts": [_plain_layout(r) for r in candidate.relayouts],
    }


def _plain_layout(layout: Relayout) -> dict[str, Any]:
    """Without the bitmap of chosen elements, which can be as long as the rest of the file."""
    data: dict[str, Any] = msgspec.to_builtins(layout)
    if data["chosen"] is not None:
        del data["chosen"]["bits"]
    return data


def not_lifted(error: NotLiftedError, module: Binary, load_base: int) -> model.NotLifted:
    """What stopped the lifter, with its source line."""
    line = module.line(error.address - load_base)
    return model.NotLifted(
        f"{error.address:#x}", error.instruction, line.file if line else None, line.line if line else None, error.reason
    )


def drawn(candidate: Candidate) -> Drawn:
    """Declarations and drawing of a candidate (the drawing of its first structure)."""
    return Drawn(declare(candidate), draw_relayout(candidate.relayouts[0]))


def traffic(candidate: Candidate) -> tuple[int, int]:
    """Cache lines of one walk over the accessed fields, before and after."""
    pairs = [_traffic(layout) for layout in candidate.relayouts]
    return sum(before for before, _ in pairs), sum(after for _, after in pairs)


@lru_cache(maxsize=64)
def _traffic(layout: Relayout) -> tuple[int, int]:
    """Of one structure; where elements are chosen, of these."""
    if layout.chosen is None:
        return lines_touched(layout.structure), lines_touched(layout)
    return lines_chosen(layout.structure, layout.chosen), lines_chosen(layout, layout.chosen)


def structures(seen: Observation) -> tuple[model.StructureReport, ...]:
    """The structures, most accessed first."""
    found = []
    for derived in seen.derived:
        structure = derived.structure
        term = shorten(str(derived.term), LONGEST_TERM) if derived.term is not None else "irregular: no term is claimed"
        note = structure.inexact or derived.note or plain_reason(structure)
        note = None if structure.id in seen.chosen else note
        picture = Drawn(declare_structure(structure), draw(structure)) if structure.fields else Drawn("", "")
        part = seen.used_part.get(structure.id)
        found.append(structure_report(structure, term, derived.unit_bytes, picture, note, part))
    return tuple(found)


def shared_lines(seen: Observation) -> tuple[model.SharedLines, ...]:
    """False sharing in the report's form."""
    ids = {(s.block_base or s.base): s.id for s in seen.structures}
    return tuple(
        model.SharedLines(
            s.object.name, ids.get(s.object.element_base or s.object.base), s.false, s.true, s.threads, s.fields, s.places
        )
        for s in seen.shared
    )


def _base(
    case: Case, seen: Observation, verdict: model.Verdict, snapshot: Any, left_out: Mapping[int, str] | None = None
) -> dict[str, Any]:
    file, line = case.profiled.place
    return {
        "symbol": case.profiled.function.name,
        "region": "function" if case.profiled.nest is None else "loop",
        "file": file,
        "line": line,
        "share": case.profiled.share,
        "calls": case.probe.calls,
        "call": case.chosen.call,
        "snapshot": snapshot,
        "threads": len(seen.trace.threads) or max(case.probe.threads, 1),
        "clock": case.clock,
        "trace": model.TraceSummary(
            seen.trace.backend, seen.trace.accesses, seen.terms, seen.trace.truncated, seen.trace.limits
        ),
        "structures": structures(seen),
        "shared_lines": shared_lines(seen),
        "verdict": verdict,
        "batch": model.Batch(case.batch.size, *case.batch.spread) if case.batch is not None else None,
        "kinds": tuple(
            model.KindReport(k.calls, k.share, k.call, k.ns, k.text, (left_out or {}).get(k.call)) for k in case.kinds
        ),
    }


def modelled(
    case: Case,
    seen: Observation,
    candidates: Sequence[Candidate],
    verdict: model.Verdict,
    stopped: tuple[model.NotLifted, ...],
    replays: Replays | None = None,
) -> model.HotspotReport:
    """The report of a hotspot that was not measured: cache lines counted from the trace, and what was replayed of it; no
    speedup."""
    done = replays or Replays()
    outcomes = [_unmeasured(c, done) for c in candidates]
    timings = done.timings
    rows = tuple(candidate_report(o, None, None, None, None, case.profiled.share, False) for o in outcomes)
    return model.HotspotReport(
        **_base(case, seen, verdict, done.snapshot),
        original=model.Original(
            case.per_call(timings.nanoseconds(ORIGINAL, "cold") if timings else None),
            case.per_call(timings.nanoseconds(ORIGINAL) if timings else None),
            case.per_call(case.chosen.in_situ_ns),
        ),
        identity=None,
        noise=model.Span(*noise_floor(timings)) if timings else None,
        candidates=rows,
        not_lifted=stopped,
    )


def _unmeasured(candidate: Candidate, replays: Replays) -> Outcome:
    name, ratio = candidate.id, replays.ratios.get(candidate.id)
    reason = None if ratio is not None else replays.reasons.get(name, replays.reason)
    return Outcome(
        candidate,
        "plain",
        "modelled" if ratio is None else "replayed",
        reason and f"not replayed: {reason}",
        None,
        None,
        traffic(candidate),
        readable(replays.sources.get(name, "")) if ratio is not None else "",
        f"mockups/{name}-replay.c" if ratio is not None else None,
        drawn(candidate),
        ratio,
    )


def measured(case: Case, seen: Observation, trials: Trials) -> model.HotspotReport:
    """The report of a hotspot that was tried."""
    decision = trials.decision
    timings = decision.first if decision else None
    noise = noise_floor(timings, trials.mode or "steady") if timings else None
    identity = trials.found.get(IDENTITY)
    reason = identity.reason if identity else trials.made[IDENTITY].reason
    ratio = identity_ratio(timings, trials.mode or "steady") if timings else None
    return model.HotspotReport(
        **_base(case, seen, trials.verdict, decision.snapshot if decision else "fork", trials.left_out),
        original=model.Original(
            case.per_call(timings.nanoseconds(ORIGINAL, "cold") if timings else None),
            case.per_call(timings.nanoseconds(ORIGINAL) if timings else None),
            case.per_call(decision.in_situ_ns if decision else case.chosen.in_situ_ns),
        ),
        identity=model.Identity("rejected" if reason else "verified", interval(ratio), reason),
        noise=model.Span(*noise) if noise else None,
        candidates=tuple(_rows(case, trials)),
        ablation=ablation(decision) if decision else None,
    )


def ablation(decision: Decision) -> model.Ablation | None:
    """What the layout and the vector instructions do each by themselves, if that was measured."""
    timings, name = decision.ablation, decision.ablated
    if timings is None or name is None:
        return None
    mode = decision.mode or "steady"
    simd = IDENTITY_SIMD if timings.restores(IDENTITY_SIMD) else IDENTITY
    values = [interval(timings.ratio(ORIGINAL, n, mode)) for n in (SCALAR, LAYOUT_SCALAR, simd, name)]
    return model.Ablation(name, *values)


def _rows(case: Case, trials: Trials) -> list[model.CandidateReport]:
    rows = []
    for name, made in trials.made.items():
        candidate = made.recipe.candidate
        if candidate is None or made.recipe.wrong:
            continue
        finding = trials.found.get(name)
        reason = made.reason or (finding.reason if finding else "it was not compared")
        failed = trials.timings.failed.get(name) if trials.timings else None
        reason = reason or failed
        compared = None
        if finding is not None and finding.reason is None:
            compared = model.Verification(trials.calls * case.timed_calls, finding.bytes_compared, finding.bytes_changed, 0)
        outcome = Outcome(
            _named(candidate, name),
            made.recipe.variant,
            "rejected" if reason else "verified",
            reason or (trials.timings.dropped.get(name) if trials.timings else None),
            compared,
            _converted(trials, name, alone=case.batch is None and not case.kinds),
            traffic(candidate),
            readable(made.source),
            f"mockups/{name}.c",
            drawn(candidate),
        )
        rows.append(_row(case, trials, outcome, name))
    return rows


def _converted(trials: Trials, name: str, *, alone: bool) -> Converted | None:
    """What converting to the layout of recipe ``name`` costs; of the winner as it was measured again."""
    decision, candidate = trials.decision, trials.made[name].recipe.candidate
    name = trials.made[name].same_as or name
    if decision is None or candidate is None:
        return None
    again = decision.again if decision.winner == name else None
    timings, mode = again or decision.first, decision.mode or "steady"
    costs = timings.conversion.get(name)
    if costs is None:
        return None
    seen = trials.views.get(candidate.id, NOTHING)
    return Converted(
        *costs,
        copied_in=seen.names(candidate, seen.inward),
        copied_out=seen.names(candidate, seen.outward),
        around=timings.net(name, mode) if alone else None,
        break_even=timings.break_even(name, mode) if alone else None,
    )


def readable(source: str) -> str:
    """The C of a mock-up for the report: long tables are cut, the file has them whole."""

    def cut(table: re.Match[str]) -> str:
        rows = table[0].splitlines(keepends=True)
        left = len(rows) - 2 * TABLE_ROWS
        return (
            table[0]
            if left <= 0
            else "".join((*rows[:TABLE_ROWS], f"    /* ... {left} more lines */\n", *rows[-TABLE_ROWS:]))
        )

    return re.sub(r"(?:^    0x\w+,.*\n)+", cut, source, flags=re.MULTILINE)


def _named(candidate: Candidate, name: str) -> Candidate:
    return Candidate(
        name,
        candidate.relayouts,
        candidate.families,
        candidate.derivation,
        candidate.block,
        candidate.temporary,
        candidate.keeps_cold,
        candidate.cost,
    )


def _row(case: Case, trials: Trials, outcome: Outcome, name: str) -> model.CandidateReport:
    decision = trials.decision
    if decision is None:
        return candidate_report(outcome, None, None, None, None, case.profiled.share, False)
    again = decision.again is not None and decision.winner in (name, trials.made[name].same_as)
    timings = decision.again if again and decision.again is not None else decision.first
    mode = decision.mode or "steady"
    name = trials.made[name].same_as or name
    speedup, over = pick(timings, name, mode)
    cold = pick(timings, name, "cold")[0]
    one = case.per_call(timings.nanoseconds(ORIGINAL, mode))
    if decision.kinds:
        return _row_of_kinds(case, decision, outcome, name, again)
    return candidate_report(outcome, speedup, over, cold, one, case.profiled.share, again)


def _row_of_kinds(case: Case, decision: Decision, outcome: Outcome, name: str, again: bool) -> model.CandidateReport:
    """A candidate whose speedup is that over calls of several kinds; what converting costs is held against the mean call."""
    ratios = [kind.ratios(name, again) for kind in decision.kinds]
    whole = [together([(k.share, r[n]) for k, r in zip(decision.kinds, ratios, strict=True)]) for n in (0, 1)]
    if any(speedup is None for speedup, _ in ratios):
        whole = [None, None]
    known = [kind for kind in case.kinds if kind.ns is not None]
    calls = sum(kind.calls for kind in known)
    one = sum(kind.calls * (kind.ns or 0.0) for kind in known) / calls if calls else None
    row = candidate_report(outcome, whole[0], whole[1], None, one, case.profiled.share, again)
    counted = outcome.evidence in ("verified", "close")
    texts = [kind.text for kind in case.kinds]
    kinds = tuple(
        model.KindSpeedup(texts.index(k.text), interval(speedup if counted else None))
        for k, (speedup, _) in zip(decision.kinds, ratios, strict=True)
    )
    return msgspec.structs.replace(row, kinds=kinds)
