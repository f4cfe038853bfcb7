"""From candidates, findings and timings to the candidates' part of the report, one row a layout."""

from __future__ import annotations

import msgspec

from layout_advise.case import Case
from layout_advise.decide.mixture import together
from layout_advise.describe.assemble import Converted, Outcome, candidate_report, interval
from layout_advise.describe.shown import drawn, readable, traffic
from layout_advise.describe.users_report import with_elsewhere
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.experiment import Trials
from layout_advise.measure.replays import Replays
from layout_advise.measure.timing import Decision, pick
from layout_advise.mockup.remap.conversion_view import NOTHING
from layout_advise.mockup.timing.names import ORIGINAL
from layout_advise.mockup.timing.ratios import places_of
from layout_advise.observe.observe import Observation
from layout_advise.reports.model.candidate import CandidateReport, KindSpeedup, Verification


def unmeasured(candidate: Candidate, replays: Replays) -> Outcome:
    """A candidate of a hotspot that was not measured, perhaps replayed."""
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


def measured_rows(case: Case, seen: Observation, trials: Trials) -> list[CandidateReport]:
    """The candidates that were built, tried ones with what they gain, others with why not."""
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
            compared = Verification(
                trials.calls * case.timed_calls, finding.bytes_compared, finding.bytes_changed, finding.max_ulp
            )
        outcome = Outcome(
            _named(candidate, name),
            made.recipe.variant,
            "rejected" if reason or finding is None else finding.evidence,
            reason or (trials.timings.dropped.get(name) if trials.timings else None),
            compared,
            _converted(trials, name, alone=case.batch is None and not case.kinds),
            traffic(candidate),
            readable(made.source),
            f"mockups/{name}.c",
            drawn(candidate),
        )
        row = msgspec.structs.replace(_row(case, trials, outcome, name), same_code_as=made.same_as)
        rows.append(with_elsewhere(row, candidate, seen.users))
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


def _row(case: Case, trials: Trials, outcome: Outcome, name: str) -> CandidateReport:
    decision = trials.decision
    if decision is None:
        return candidate_report(outcome, None, None, None, None, case.profiled.share, False)
    again = decision.again is not None and decision.winner in (name, trials.made[name].same_as)
    timings = decision.again if again and decision.again is not None else decision.first
    mode = decision.mode or "steady"
    name = trials.made[name].same_as or name
    speedup, over = pick(timings, name, mode)
    cold = pick(timings, name, "cold")[0] or pick(decision.first, name, "cold")[0]
    one = case.per_call(timings.nanoseconds(ORIGINAL, mode))
    if decision.kinds:
        return _row_of_kinds(case, decision, outcome, name, again)
    row = candidate_report(outcome, speedup, over, cold, one, case.profiled.share, again)
    return msgspec.structs.replace(row, places=len(places_of(timings, name))) if row.speedup is not None else row


def _row_of_kinds(case: Case, decision: Decision, outcome: Outcome, name: str, again: bool) -> CandidateReport:
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
