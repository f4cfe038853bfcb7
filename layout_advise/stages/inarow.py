"""Several calls in a row in place of one that does not stand for the others: where the way of a hotspot depends on its data.

One call stands for all where these take the same time, repeated or not. Where branches depend on the data, that may be
wrong in two ways: calls differ from each other (queries with other limits, ``docs/decisions/0045``), and a call repeated is
quicker than in the program, as the processor learns which way its branches go (``docs/decisions/0035``).
"""

from __future__ import annotations

from dataclasses import replace

from layout_advise.mockup.databranches import branches_on_data
from layout_advise.mockup.lifted import Lifted
from layout_advise.reports.hotspotmodel import HotspotReport, Original
from layout_advise.stages.batches import can_be_batched, plan_batch
from layout_advise.stages.case import Case

LEARNT_CALLS, LEARNT_NS = 16, 2e6
"""Where a call repeated is quicker than the program's, so many are timed together; longer ones are too much to learn."""
DIFFERENT = 0.1
"""Calls that differ from their median by more than this part of it are not told by one of them ..."""
DIFFERENT_CALLS, DIFFERENT_NS = (4, 16), 40e6
"""... but by so many, at least and at most, which together are to take no longer than this."""


def may_be_learnt(original: Original) -> bool:
    """Whether the same call again and again is quicker than the program's calls."""
    steady, in_situ = original.ns_steady, original.ns_in_situ
    return steady is not None and in_situ is not None and steady < in_situ <= LEARNT_NS


def not_repeated(case: Case, report: HotspotReport, branches: bool) -> Case | None:
    """The case with several calls in a row timed together, where one call repeated is quicker than the program and the way
    it takes depends on the data (``branches``); None where that is not so, or they cannot be."""
    learnt = report.verdict.reason == "not-in-situ" and branches and may_be_learnt(report.original)
    if not learnt or case.batch is not None or report.batch is not None or report.kinds:
        return None
    return _together(case, LEARNT_CALLS, "the same call repeated is quicker than in the program")


def differing(case: Case, lifted: Lifted) -> Case | None:
    """The case with several calls in a row timed together, where calls that make the same accesses take different times in
    the running program, in all processes, and the way they take depends on the data; None where that is not so, or where
    they cannot be. The call that the user asks for stands for itself."""
    if case.batch is not None or case.kinds or case.settings.call is not None or case.settings.temporary:
        return None
    ns = case.chosen.in_situ_ns
    least, most = DIFFERENT_CALLS
    if case.chosen.spread <= DIFFERENT or not ns or least * ns > DIFFERENT_NS or not branches_on_data(lifted):
        return None
    return _together(case, min(most, int(DIFFERENT_NS / ns)), "calls take different times")


def _together(case: Case, calls: int, why: str) -> Case | None:
    if not can_be_batched(case.profiled, case.probe):
        return None
    chosen, batch = plan_batch(case.settings, case.profiled, case.stdin, case.probe, case.chosen, calls)
    if isinstance(batch, str):
        return None
    case.progress.note(f"{why}: {batch.size} calls in a row are timed")
    return replace(case, chosen=chosen, batch=batch)
