"""A region that was looked at: what came of it, and what may do in its place where it gives no answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from layout_advise.choose.further_regions import Key, callers, key_of, others, share_beside
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.decide.verdict import undecided
from layout_advise.describe.studied import Studied
from layout_advise.errors import EntryError, LayoutAdviseError, NeverCalledError, ProgramError
from layout_advise.observe.case import Case
from layout_advise.reasons import MEASURED, Reason
from layout_advise.regions.one import RunContext, loops_of
from layout_advise.reports.model.contract import OverRegions, PassedOver
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.plan import ProgramPlan
from layout_advise.reports.words.hotspot_words import unsaid
from layout_advise.tracer.program.binary import ElfBinary

LOOPS_MAY_DO = frozenset(
    (
        Reason.NOT_LIFTED,
        Reason.IDENTITY_NOT_VERIFIED,
        Reason.NOTHING_MEASURED,
        Reason.NOT_MEASURED,
        Reason.NOT_ALL_TRIED,
        Reason.STRUCTURE_UNCLEAR,
        Reason.OWN_MEMORY,
        Reason.RECURSIVE,
        Reason.NOT_IN_SITU,
        Reason.NOTHING_CHANGED,
        Reason.COMPARISON_BLIND,
    )
)
"""Where a function gives no answer for these reasons, a loop in it may."""
CALLERS_MAY_DO = frozenset(
    (Reason.SHORT_CALLS, Reason.NOT_IN_SITU, Reason.RECURSIVE, Reason.NOTHING_CHANGED, Reason.COMPARISON_BLIND)
)
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
    def changes(self) -> bool:
        """Tells whether the answer is to change the layout."""
        return self.answers and self.studied.report.verdict.action == "change"

    @property
    def has_times(self) -> bool:
        """Tells whether any layout was measured."""
        return any(c.speedup is not None for c in self.studied.report.candidates)

    @property
    def worth(self) -> tuple[bool, bool, bool, bool]:
        """What to tell of several regions: an answer before advice about the loop, with the layout open, before times that
        leave all open, before none. A ``keep`` that rests on no times is worth more than nothing only where there are none:
        of a twentieth of the samples it says less than an interval for most of them."""
        verdict = self.studied.report.verdict
        advises, has_times = verdict.loop is not None, verdict.action == "change" or self.has_times
        return self.answers, advises, has_times, not has_times and verdict.action != "undecided"


@dataclass(frozen=True, slots=True)
class Told:
    """The region that the report is of, those studied beside it, and those that gave no answer before it did."""

    case: Case
    studied: Studied
    passed_over: tuple[PassedOver, ...] = ()
    beside: tuple[Looked, ...] = ()
    over_regions: tuple[OverRegions, ...] = ()
    plan: ProgramPlan | None = None


def profiled_of(one: Profiled | Case) -> Profiled:
    """The region of a case, or itself."""
    return one.profiled if isinstance(one, Case) else one


def place_of(one: Profiled | Case) -> tuple[Key, int]:
    """The function and the loop in it (0: none)."""
    profiled = profiled_of(one)
    return key_of(profiled), profiled.nest.head if profiled.nest is not None else 0


def elsewhere(start: RunContext, profiled: Profiled) -> Iterator[Profiled]:
    """The other hot functions, unless the user wants one, or a call of it."""
    if start.settings.hotspot is None and start.settings.call is None:
        yield from others(profiled, start.main)


def near(start: RunContext, last: Looked) -> Iterator[Profiled | Case]:
    """What may do in the place of a region without an answer: the loops in it, what calls it."""
    profiled = last.case.profiled
    if start.settings.call is not None or profiled.threaded:
        return
    if last.reason in LOOPS_MAY_DO and profiled.nest is None:
        yield from loops_of(last.case, CHOOSE.fewest_calls)
    if last.reason in CALLERS_MAY_DO and profiled.nest is None and start.settings.hotspot is None:
        yield from callers(profiled, start.main)


def near_failed(start: RunContext, profiled: Profiled, error: LayoutAdviseError) -> Iterator[Profiled]:
    """The callers of a region that cannot be stopped at, or that is entered otherwise, which may do in its place."""
    settings = start.settings
    asked = settings.hotspot is not None or settings.call is not None
    if isinstance(error, EntryError | NeverCalledError) and profiled.nest is None and not profiled.threaded and not asked:
        yield from callers(profiled, start.main)


def ends_the_run(error: LayoutAdviseError, first: bool, asked: bool) -> bool:
    """Tells whether what went wrong at a region, the first one or one that the user ``asked`` for, leaves no others to look
    at: the program cannot be run."""
    return first and (asked or (isinstance(error, ProgramError) and not isinstance(error, NeverCalledError)))


def failed_row(profiled: Profiled, error: LayoutAdviseError) -> PassedOver:
    """What is said of a region at which something went wrong."""
    return PassedOver(profiled.name, profiled.share, "failed", error.line())


def row_of(one: Looked) -> PassedOver:
    """What is said of a region that gave no answer."""
    report = one.studied.report
    return PassedOver(one.case.profiled.name, report.share, report.verdict.reason, report.verdict.text)


def untold(
    left_out: Sequence[PassedOver], rows: Sequence[PassedOver], reported: Sequence[Looked | Told]
) -> list[PassedOver]:
    """Those of the regions left out of which neither ``rows`` nor a report of their own say anything."""
    said = {one.name for one in rows} | {one.case.profiled.name for one in reported}
    return [one for one in left_out if one.name not in said]


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


def not_blind(
    main: ElfBinary, told: Looked, others: Sequence[Looked], failed: Sequence[tuple[Profiled, LayoutAdviseError]]
) -> Looked:
    """The region to tell, ``others`` beside it; its ``keep`` says nothing where most of the program's time was passed
    over."""
    unanswered = [one for one in others if one.studied.report.verdict.action == "undecided"]
    regions = [*(one.case.profiled for one in unanswered), *(region for region, _ in failed)]
    rows = [*(row_of(one) for one in unanswered), *(failed_row(region, error) for region, error in failed)]
    report, profiled = told.studied.report, told.case.profiled
    known = [one.case.profiled for one in others if one not in unanswered]
    beside = share_beside(profiled, [*known, *regions], main)
    beside -= share_beside(profiled, known, main) if known else 0.0  # a loop in a function is known by itself
    verdict = with_passed_over(report.verdict, profiled.name, report.share, rows, beside)
    return replace(told, studied=replace(told.studied, report=msgspec.structs.replace(report, verdict=verdict)))
