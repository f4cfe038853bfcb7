"""From candidates, findings and timings to the candidates' part of the report, one row a layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from layout_advise.decide.decision import Decision
from layout_advise.decide.mixture import together
from layout_advise.describe.assemble import Converted, Outcome, candidate_report, interval
from layout_advise.describe.shown import drawn, readable, traffic
from layout_advise.describe.studied import Decided
from layout_advise.describe.users_report import with_elsewhere
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.measured import pick
from layout_advise.measure.replays import Replays
from layout_advise.mockup.remap.conversion_view import NOTHING
from layout_advise.mockup.timing.ratios import places_of
from layout_advise.mockup.timing.variants import ORIGINAL, Variant
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.reports.model.candidate import BudgetTerm, CandidateReport, KindSpeedup, LiveReport, Verification


def unmeasured(candidate: Candidate, replays: Replays, folder: str, used_part: Mapping[str, float]) -> Outcome:
    """A candidate of a hotspot that was not measured, perhaps replayed; ``folder`` is its region's in the run directory,
    ``used_part`` as :func:`~layout_advise.describe.shown.traffic` has it."""
    name, ratio = candidate.id, replays.ratios.get(candidate.id)
    reason = None if ratio is not None else replays.reasons.get(name, replays.reason)
    return Outcome(
        candidate,
        "plain",
        "modelled" if ratio is None else "replayed",
        reason and f"not replayed: {reason}",
        None,
        None,
        traffic(candidate, used_part),
        readable(replays.sources.get(name, "")) if ratio is not None else "",
        f"{folder}/mockups/{name}-replay.c" if ratio is not None else None,
        drawn(candidate),
        ratio,
    )


def measured_rows(case: Case, seen: Observation, decided: Decided) -> list[CandidateReport]:
    """The candidates that were built, tried ones with what they gain, others with why not."""
    rows = []
    for name, made in decided.verified.built.mockups.items():
        candidate = made.recipe.candidate
        if candidate is None or made.recipe.wrong:
            continue
        finding = decided.verified.found.get(name)
        reason = made.reason or (finding.reason if finding else "it was not compared")
        failed = decided.timings.failed.get(name) if decided.timings else None
        reason = reason or failed
        compared = None
        if finding is not None and finding.reason is None:
            calls = 1 if name in decided.verified.behind else decided.verified.calls
            compared = Verification(calls * case.timed_calls, finding.bytes_compared, finding.bytes_changed, finding.max_ulp)
        outcome = Outcome(
            replace(candidate, id=str(name)),
            made.recipe.variant.promise,
            "rejected" if reason or finding is None else finding.evidence,
            reason or decided.verified.behind.get(name) or (decided.timings.dropped.get(name) if decided.timings else None),
            compared,
            _converted(decided, name, alone=case.batch is None and not case.kinds),
            traffic(candidate, seen.used_part),
            readable(made.source),
            f"{case.space.region.name}/mockups/{name}.c",
            drawn(candidate),
        )
        row = msgspec.structs.replace(
            _row(case, decided, outcome, name),
            same_code_as=str(made.same_as) if made.same_as else None,
            error_budget=_budget(decided, made.same_as or name),
        )
        if row.measured_again and not reason:  # it went on, whatever the first processes made of it
            row = msgspec.structs.replace(row, reason=None)
        rows.append(with_elsewhere(_with_live(row, decided, made.same_as or name), candidate, seen.users))
    return rows


def _with_live(row: CandidateReport, decided: Decided, name: Variant) -> CandidateReport:
    """A row with what came of its layout in the running program."""
    trial = decided.trials.get(name)
    if trial is None or not trial.calls:
        return row
    speedup = interval(trial.ratio)
    original, layout = (trial.original_ns, trial.layout_ns) if speedup is not None else (None, None)
    live = LiveReport(
        trial.calls, trial.passed, trial.conversions, trial.timed, speedup, original, layout,
        trial.original_s, trial.layout_s, trial.exit_status, trial.output_bytes, trial.own_words, trial.converted,
        trial.stopped, trial.faulted, trial.unimproved, trial.held, trial.surveyed, trial.course, trial.ended,
        None if speedup is not None else trial.reason,
    )  # fmt: skip
    return msgspec.structs.replace(
        row, live=live, evidence="live" if row.evidence == "verified" and speedup is not None else row.evidence
    )


def _budget(decided: Decided, name: Variant) -> tuple[BudgetTerm, ...]:
    """The doubts about a candidate's gain."""
    one = next((r for r in decided.results if r.name == name), None)
    return tuple(BudgetTerm(d.name, d.lo, d.hi, d.how) for d in one.budget) if one is not None else ()


def _converted(decided: Decided, name: Variant, *, alone: bool) -> Converted | None:
    """The cost of converting to the layout of recipe ``name``; of the winner as it was measured again."""
    decision, candidate = decided.decision, decided.verified.built.mockups[name].recipe.candidate
    name = decided.verified.built.mockups[name].same_as or name
    if decision is None or candidate is None:
        return None
    again = decision.again if decision.winner == name else None
    timings, mode = again or decision.first, decision.mode or "steady"
    costs = timings.conversion.get(name)
    if costs is None:
        return None
    seen = decided.views.get(candidate.id, NOTHING)
    return Converted(
        *costs,
        copied_in=seen.names(candidate, seen.inward),
        copied_out=seen.names(candidate, seen.outward),
        around=timings.net(name, mode) if alone else None,
        break_even=timings.break_even(name, mode) if alone else None,
    )


def _row(case: Case, decided: Decided, outcome: Outcome, name: Variant) -> CandidateReport:
    decision = decided.decision
    if decision is None:
        return candidate_report(outcome, None, None, None, None, case.profiled.share, False)
    same = decided.verified.built.mockups[name].same_as
    second = decision.again if decision.winner in (name, same) else decision.rivals.get(same or name)
    again = second is not None
    timings = second or decision.first
    mode = decision.mode or "steady"
    name = decided.verified.built.mockups[name].same_as or name
    speedup, over = pick(timings, name, mode)
    cold = pick(timings, name, "cold")[0] or pick(decision.first, name, "cold")[0]
    one = case.per_call(timings.nanoseconds(ORIGINAL, mode))
    if decision.kinds:
        return _row_of_kinds(case, decision, outcome, name, again)
    row = candidate_report(outcome, speedup, over, cold, one, case.profiled.share, again)
    return msgspec.structs.replace(row, places=len(places_of(timings, name))) if row.speedup is not None else row


def _row_of_kinds(case: Case, decision: Decision, outcome: Outcome, name: Variant, again: bool) -> CandidateReport:
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
        KindSpeedup(texts.index(k.text), interval(speedup if counted else None))
        for k, (speedup, _) in zip(decision.kinds, ratios, strict=True)
    )
    return msgspec.structs.replace(row, kinds=kinds)
