"""The regions of a run: where one gives no answer, the loops in it, what calls it, and the next hottest ones are looked at.

Which of them comes next follows from why the last one failed (``docs/decisions/0061``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import msgspec

from layout_advise.choose.further_regions import Key, callers, key_of, others, share_beside
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.decide.verdict import undecided
from layout_advise.describe.studied import Studied
from layout_advise.errors import LayoutAdviseError, ProgramError, SnapshotError, TraceError
from layout_advise.measure.policy import MEASURE
from layout_advise.observe.case import Case
from layout_advise.reasons import MEASURED, Reason
from layout_advise.regions.logged_order import log_order
from layout_advise.regions.one import RunContext, loop_of, study_again, watch
from layout_advise.regions.over_regions import over_regions, with_regions
from layout_advise.regions.planned import MeasuredRegions, program_plan
from layout_advise.regions.survey import Surveyed, regions_beside, survey
from layout_advise.reports.model.contract import OverRegions, PassedOver
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.plan import ProgramPlan
from layout_advise.reports.words.hotspot_words import unsaid
from layout_advise.road import study

LOOPS_MAY_DO = frozenset(
    (
        Reason.NOT_LIFTED,
        Reason.IDENTITY_NOT_VERIFIED,
        Reason.NOTHING_MEASURED,
        Reason.NOT_MEASURED,
        Reason.NOT_ALL_TRIED,
        Reason.STRUCTURE_UNCLEAR,
        Reason.RECURSIVE,
        Reason.NOT_IN_SITU,
    )
)
"""Where a function gives no answer for these reasons, a loop in it may."""
CALLERS_MAY_DO = frozenset((Reason.SHORT_CALLS, Reason.NOT_IN_SITU, Reason.RECURSIVE))
"""Where it does for these, what calls it may."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A region that was looked at, and what came of it."""

    case: Case
    studied: Studied

    @property
    def reason(self) -> str:
        """Why its verdict is what it is."""
        return self.studied.report.verdict.reason

    @property
    def answers(self) -> bool:
        """Tells whether the verdict is an answer that rests on measured times."""
        return self.studied.report.verdict.action != "undecided" and self.reason in MEASURED

    @property
    def worth(self) -> tuple[bool, bool, bool]:
        """What to tell of several regions: an answer before times that leave it open before none."""
        verdict = self.studied.report.verdict
        timed = any(c.speedup is not None for c in self.studied.report.candidates)
        return self.answers, verdict.action == "change" or timed, verdict.action != "undecided"


@dataclass(frozen=True, slots=True)
class Told:
    """The region that the report is of, those studied beside it, and those that gave no answer before it did."""

    case: Case
    studied: Studied
    passed_over: tuple[PassedOver, ...] = ()
    beside: tuple[Looked, ...] = ()
    over_regions: tuple[OverRegions, ...] = ()
    plan: ProgramPlan | None = None


def study_regions(start: RunContext, profiled: Profiled) -> Told | None:
    """Studies ``profiled`` and the hot regions beside it; where there are none, and as long as there is no answer and time
    is left, what may do in its place. None where the settings end the road before the verdict. Raises what went wrong at
    the first region where no other gave a report."""
    wanted = regions_beside(start, profiled)
    surveyed = survey(start, wanted) if len(wanted) > 1 else Surveyed(())
    if len(surveyed.cases) < 2:
        told = _one_answer(start, profiled, surveyed)
        return told if told is None else _with_left_out(told, surveyed)
    return _all_of(start, surveyed)


def _with_left_out(told: Told, surveyed: Surveyed) -> Told:
    """``told`` with the regions that were left out, as far as nothing is said of them yet."""
    said = {told.case.profiled.name, *(one.name for one in told.passed_over)}
    further = (one for one in surveyed.left_out if one.name not in said)
    return replace(told, passed_over=(*told.passed_over, *further))


def _all_of(start: RunContext, surveyed: Surveyed) -> Told:
    """Studies each of the regions. One that fails costs its own part only; raises its error where none is left."""
    looked: list[Looked] = []
    numbers: list[int] = []
    failed = list(surveyed.failed)
    order = log_order(start, [case.profiled for case in surveyed.cases])
    for number, case in enumerate(surveyed.cases, 1):
        name = case.profiled.name
        start.progress.note(f"region {number} of {len(surveyed.cases)}: {name} ({case.profiled.share:.0%} of the samples)")
        try:
            now, studied = study_again(case, study(case))
        except (ProgramError, SnapshotError, TraceError) as error:
            failed.append((case.profiled, error))
            start.progress.note(f"no answer from {name}: {error.line()}")
            continue
        assert studied is not None
        looked.append(Looked(now, studied))
        numbers.append(number - 1)
    if not looked:
        raise failed[0][1]
    alone = _alone(start, looked)
    table, looked = _over_regions(looked, alone)
    seen = MeasuredRegions(tuple(one.studied.report for one in looked), tuple(alone), order.of(numbers))
    plan = program_plan(seen, table, [region.name for region, _ in failed])
    told = max(looked, key=lambda one: one.worth)
    rows = [PassedOver(p.name, p.share, "failed", error.line()) for p, error in failed]
    rows += surveyed.left_out
    return Told(told.case, told.studied, tuple(rows), tuple(one for one in looked if one is not told), table, plan)


def _alone(start: RunContext, looked: Sequence[Looked]) -> list[float]:
    """The part of the samples of each region that no region before it has."""
    regions = [one.case.profiled for one in looked]
    held = [share_beside(regions[0], regions[1:number], start.main) for number in range(1, len(regions) + 1)]
    return [regions[0].share, *(more - less for less, more in pairwise(held))]


def _over_regions(looked: Sequence[Looked], alone: Sequence[float]) -> tuple[tuple[OverRegions, ...], list[Looked]]:
    """What the layouts that the regions have in common gain in all of them, and the regions with it in their verdicts."""
    shared = dict.fromkeys(c.id for one in looked for c in one.case.given)
    table = over_regions([one.studied.report for one in looked], alone, tuple(shared))
    judged = [replace(one, studied=replace(one.studied, report=with_regions(one.studied.report, table))) for one in looked]
    return table, judged


def _one_answer(start: RunContext, profiled: Profiled, surveyed: Surveyed) -> Told | None:
    """The first region that gives an answer; those that failed before are not looked at again."""
    settings, begun = start.settings, time.monotonic()
    seconds = CHOOSE.regions_part * (settings.budget if settings.budget is not None else MEASURE.budget_s)
    looked: list[Looked] = []
    failed = list(surveyed.failed)
    waiting: Iterator[Profiled | Case] = chain((profiled,), surveyed.cases, _elsewhere(start, profiled))
    known: set[tuple[Key, int]] = {_place(one) for one, _ in failed}
    for _ in range(CHOOSE.most_regions):
        one = next((region for region in waiting if _place(region) not in known), None)
        if one is None or (known and time.monotonic() - begun > seconds):
            break
        known.add(_place(one))
        if len(known) > 1:
            start.progress.note(f"looking at {_profiled(one).name} ({_profiled(one).share:.0%} of the samples)")
        try:
            case = one if isinstance(one, Case) else watch(start, one)
            if (place := _place(case.profiled)) != _place(one):  # one that is entered more often is taken
                if place in known:
                    continue
                known.add(place)
            case, studied = study_again(case, study(case))
        except (ProgramError, SnapshotError, TraceError) as error:
            if one is profiled and (isinstance(error, ProgramError) or settings.hotspot is not None):
                raise
            failed.append((_profiled(one), error))
            continue
        if studied is None:
            return None
        looked.append(Looked(case, studied))
        if looked[-1].answers:
            break
        start.progress.note(f"no answer from {case.profiled.name}: {looked[-1].reason}")
        waiting = chain(_near(start, looked[-1]), waiting)
    if not looked:
        raise failed[0][1]
    return _outcome(start, looked, failed)


def _profiled(one: Profiled | Case) -> Profiled:
    return one.profiled if isinstance(one, Case) else one


def _place(one: Profiled | Case) -> tuple[Key, int]:
    """The function and the loop in it (0: none)."""
    profiled = _profiled(one)
    return key_of(profiled), profiled.nest.head if profiled.nest is not None else 0


def _elsewhere(start: RunContext, profiled: Profiled) -> Iterator[Profiled]:
    """The other hot functions, unless the user wants one, or a call of it."""
    if start.settings.hotspot is None and start.settings.call is None:
        yield from others(profiled, start.main)


def _near(start: RunContext, last: Looked) -> Iterator[Profiled | Case]:
    """What may do in the place of a region without an answer: a loop in it, what calls it."""
    profiled = last.case.profiled
    if start.settings.call is not None or profiled.threaded:
        return
    if last.reason in LOOPS_MAY_DO and profiled.nest is None and (smaller := loop_of(last.case, CHOOSE.fewest_calls)):
        yield smaller
    if last.reason in CALLERS_MAY_DO and profiled.nest is None and start.settings.hotspot is None:
        yield from callers(profiled, start.main)


def _outcome(start: RunContext, looked: Sequence[Looked], failed: Sequence[tuple[Profiled, LayoutAdviseError]]) -> Told:
    """The region that tells most; of several the first."""
    told = max(looked, key=lambda one: one.worth)
    passed = [one for one in looked if one is not told]
    rows = [PassedOver(p.name, p.share, "failed", error.line()) for p, error in failed]
    rows += [_row(one) for one in passed]
    # where no layout rule applies, that is an answer, although it needs no times
    unanswered = [one for one in passed if one.studied.report.verdict.action == "undecided"]
    regions = [*(one.case.profiled for one in unanswered), *(one for one, _ in failed)]
    beside = share_beside(told.case.profiled, regions, start.main)
    report = told.studied.report
    blind = [row for row in rows if row.reason != Reason.NO_RULE_APPLIES]
    verdict = with_passed_over(report.verdict, told.case.profiled.name, report.share, blind, beside)
    studied = replace(told.studied, report=msgspec.structs.replace(report, verdict=verdict))
    return Told(told.case, studied, tuple(rows))


def _row(one: Looked) -> PassedOver:
    report = one.studied.report
    return PassedOver(one.case.profiled.name, report.share, report.verdict.reason, report.verdict.text)


def with_passed_over(verdict: Verdict, name: str, share: float, passed: Sequence[PassedOver], beside: float) -> Verdict:
    """A ``keep`` says nothing where most of the program's time was passed over (``beside``, a part of the samples)."""
    if verdict.action != "keep" or beside <= CHOOSE.most_passed_over:
        return verdict
    hottest = max(passed, key=lambda one: one.share)
    text = (
        f"{beside:.0%} of the samples fell where nothing could be measured, most in {hottest.name}: "
        f"{unsaid(hottest.text)} Of {name} ({share:.0%}): {verdict.text}"
    )
    return undecided(Reason.PASSED_OVER, text)
