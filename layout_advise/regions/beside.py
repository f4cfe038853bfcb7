"""The regions that are studied beside each other: each for itself, then what their layouts gain in the whole program.

Where one of them gives no answer, a loop in it or what calls it takes its place, and where none does, the next hottest ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, takewhile

from layout_advise.choose.further_regions import Key
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.errors import LayoutAdviseError, ProgramError, SnapshotError, TraceError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.observe.case import Case
from layout_advise.reasons import Reason
from layout_advise.regions.live_plan import as_run, with_trial
from layout_advise.regions.logged_order import log_order
from layout_advise.regions.looked import (
    Looked,
    Told,
    elsewhere,
    failed_row,
    near,
    near_failed,
    not_blind,
    place_of,
    profiled_of,
    row_of,
    untold,
)
from layout_advise.regions.one import RunContext, study_in_time, watch
from layout_advise.regions.over_regions import over_regions, with_regions
from layout_advise.regions.planned import MeasuredRegions, Unmeasured, program_plan
from layout_advise.regions.run_seconds import RunSeconds, run_seconds
from layout_advise.regions.seen_users import seen_users
from layout_advise.regions.survey import Surveyed
from layout_advise.regions.whole import alone, excluded, for_program, nested, tells_more, with_shares, without_rules
from layout_advise.reports.model.contract import OverRegions, PassedOver
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.plan import ProgramPlan
from layout_advise.reports.words.reason_words import clause
from layout_advise.tracer.sampling.turns import own_time

LATE = "the time for measuring (--budget) went into the regions before it."


@dataclass(slots=True)
class Search:
    """What was looked at so far: effects are here, and in what it calls."""

    start: RunContext
    since: float
    """When studies began (``own_time``)."""
    failed: list[tuple[Profiled, LayoutAdviseError]]
    known: set[tuple[Key, int]]
    free_id: int
    """The number of the next candidate that no region has yet."""
    seconds: RunSeconds
    """For measuring and for trials."""
    left_out: list[PassedOver]
    """Those of the survey, and those for which no time was left."""
    tried: list[Looked] = field(default_factory=list)
    """Those that were looked at in the place of another one, and gave no answer either."""
    unmeasured: list[Unmeasured] = field(default_factory=list)
    """Those with structures that others use too, of which there are no times."""
    begun: bool = False

    def is_late(self, share: float, *, shares: bool = False) -> bool:
        """Tells whether a region with this share of the samples is no longer begun. As long as most of the samples have no
        answer, and for one that ``shares`` structures with others, whose plan hangs on it, the time of the run is all there
        is."""
        over = self.start.time.is_over(self.seconds.of(share))
        return over or (not shares and self.seconds.is_late(share, self.since, self.start.time.answered))

    def look(self, region: Profiled | Case, waiting: Sequence[float] = ()) -> Looked | None:
        """Studies a region, after which others with these shares come; None where it is known already, or fails, or the time
        is up."""
        if place_of(region) in self.known:
            return None
        profiled = profiled_of(region)
        given = region.given if isinstance(region, Case) else ()
        if self.begun and self.is_late(profiled.share, shares=bool(given)):
            self.left_out.append(PassedOver(profiled.name, profiled.share, Reason.NOT_MEASURED, LATE))
            self.leave(profiled, given)
            return None
        self.begun = True
        self.known.add(place_of(region))
        try:
            case = region if isinstance(region, Case) else self.watched(region)
            if case is None:
                return None
            case = replace(case, seconds=self.seconds.of(case.profiled.share, waiting))
            case, studied = study_in_time(case, self.start.time)
        except (ProgramError, SnapshotError, TraceError) as error:
            self.failed.append((profiled, error))
            self.leave(profiled, given)
            self.start.progress.note(f"no answer from {profiled.name}: {error.line()}")
            return None
        assert studied is not None
        self.seconds = self.seconds.after(studied.took)
        self.known.add(place_of(case))
        found = Looked(case, studied)
        self.start.time.answered += case.profiled.share if found.answers else 0.0
        if not found.answers:
            self.start.progress.note(f"no clear answer from {case.profiled.name}: {clause(found.reason)}")
        return found

    def wants_more(self, regions: int) -> bool:
        """Tells whether beside so many regions further ones are looked for: samples have no answer yet."""
        return regions < self.start.settings.regions and self.start.time.answered < CHOOSE.held_share

    def leave(self, region: Profiled, given: Sequence[Candidate]) -> None:
        """Notes that there are no times of a region for these layouts of what it shares with others."""
        if given:
            self.unmeasured.append(Unmeasured(region.name, region.share, frozenset(c.id for c in given)))

    def watched(self, region: Profiled) -> Case | None:
        """The case of a region that was not surveyed; None where one that is known already is taken in its place."""
        case = watch(self.start, region)
        if place_of(case.profiled) != place_of(region) and place_of(case.profiled) in self.known:
            return None
        first, self.free_id = self.free_id, self.free_id + case.settings.candidates
        return replace(case, further_ids=first)

    def first_answer(self, waiting: Iterable[Profiled | Case]) -> Looked | None:
        """The first of the regions that gives an answer; the others are told of as passed over."""
        left = iter(waiting)
        # what may do in a region's place is found by running the program
        while not self.start.time.is_over(self.seconds.of(1.0)) and (region := next(left, None)) is not None:
            if self.is_late(profiled_of(region).share):
                return None
            if place_of(region) in self.known:
                continue
            name, share = profiled_of(region).name, profiled_of(region).share
            self.start.progress.note(f"looking at {name} ({share:.0%} of the samples)")
            failed = len(self.failed)
            found = self.look(region)
            if found is not None and found.answers:
                return found
            self.tried += [found] if found is not None else []
            for one, error in self.failed[failed:]:
                left = chain(near_failed(self.start, one, error), left)
        return None

    def advice(self, kept: Sequence[Looked]) -> Looked | None:
        """The largest of the regions tried that has advice about its loop, where none of those that are kept has: it is not
        passed over any more."""
        advised = [one for one in self.tried if one.studied.report.verdict.loop is not None]
        if not advised or any(one.studied.report.verdict.loop is not None for one in kept):
            return None
        found = max(advised, key=lambda one: one.case.profiled.share)
        self.tried.remove(found)
        return found


def all_of(start: RunContext, profiled: Profiled, surveyed: Surveyed) -> Told:
    """Studies each of the regions. One that fails costs its own part only; raises its error where none is left."""
    since = own_time()
    free = max(case.further_ids + case.settings.candidates for case in surveyed.cases)
    seconds = run_seconds(start.settings.budget, [case.profiled.share for case in surveyed.cases])
    known = {place_of(one) for one, _ in surveyed.failed}
    search = Search(start, since, list(surveyed.failed), known, free, seconds, list(surveyed.left_out))
    looked = _studied(search, surveyed.cases)
    kept, passed = (looked, []) if excluded(start, looked) else _with_answers(search, looked)
    enough = any(one.answers for one in kept) or excluded(start, kept)
    if not enough and (found := search.first_answer(elsewhere(start, profiled)) or search.advice(kept)) is not None:
        kept.append(found)
    kept += _further(search, elsewhere(start, profiled), kept)
    if not kept:
        raise search.failed[0][1]
    table, kept, plan = _over_regions(search, kept)
    told = max(kept, key=lambda one: (one.changes, *one.worth))
    others = [one for one in kept if one is not told]
    rows = [*(failed_row(p, error) for p, error in search.failed), *(row_of(one) for one in passed)]
    rows += [row_of(one) for one in search.tried]
    rows += untold(search.left_out, rows, [told, *others])
    first, *rest = with_shares(start, [told, *others])
    first = not_blind(start.main, first, [*others, *passed], search.failed)
    if first.reason == Reason.PASSED_OVER and (larger := _largest_open(others, told.case.profiled.share)) is not None:
        first, *rest = with_shares(start, [larger, *(one for one in kept if one is not larger)])
    first = for_program(start, first, rest, rows)
    return Told(first.case, first.studied, tuple(rows), tuple(rest), table, plan)


def _further(search: Search, waiting: Iterable[Profiled], kept: Sequence[Looked]) -> list[Looked]:
    """Beside the regions kept, of which one has an answer, those ``waiting`` that give one, as long as there is time: where
    most of the samples have none all that the run has, else early in it."""
    start, found = search.start, list[Looked]()
    known = [one.case.profiled for one in kept]
    plain = without_rules(search.left_out)
    while any(one.answers for one in kept) and search.wants_more(len(kept) + len(found)):
        new = (region for region in waiting if tells_more(region, known, plain, start.main))
        if (one := search.first_answer(new)) is None:
            break
        found.append(one)
        known.append(one.case.profiled)
    return found


def _largest_open(looked: Sequence[Looked], share: float) -> Looked | None:
    """Of the regions without an answer that with most of the samples, more than ``share`` of them, where its layouts were
    measured: its interval says more than that a smaller one's ``keep`` is undone for it."""
    undecided = [one for one in looked if one.studied.report.verdict.action == "undecided"]
    largest = max(undecided, key=lambda one: one.case.profiled.share, default=None)
    return largest if largest is not None and largest.has_times and largest.case.profiled.share > share else None


def _studied(search: Search, cases: Sequence[Case]) -> list[Looked]:
    """The regions one after the other."""
    looked = []
    for number, case in enumerate(cases, 1):
        name = case.profiled.name
        search.start.progress.note(f"region {number} of {len(cases)}: {name} ({case.profiled.share:.0%} of the samples)")
        found = search.look(case, [one.profiled.share for one in cases[number:]])
        if found is not None:
            looked.append(found)
    return looked


def is_loop_in(one: Looked, other: Profiled | Case) -> bool:
    """Tells whether ``other`` is a loop in the function ``one``."""
    return profiled_of(other).nest is not None and place_of(other)[0] == place_of(one.case)[0]


def _with_answers(search: Search, looked: Sequence[Looked]) -> tuple[list[Looked], list[Looked]]:
    """The regions, each without an answer replaced by the first that gives one of the loops in it and what calls it, with
    the loops beside that which give one, too, and where none does by one of these that tells more; and those that were
    replaced."""
    kept = list(looked)
    replaced = []
    for number, one in enumerate(looked):
        if one.answers:
            continue
        rest = [other.case.profiled for other in kept if other is not one]
        apart = (region for region in near(search.start, one) if not nested(profiled_of(region), rest, search.start.main))
        before = len(search.tried)
        instead = search.first_answer(apart)
        if instead is None and (better := [other for other in search.tried[before:] if other.worth > one.worth]):
            instead = max(better, key=lambda other: other.worth)
            search.tried.remove(instead)
        if instead is not None:
            kept[number] = instead
            replaced.append(one)
        while instead is not None and instead.answers and is_loop_in(one, instead.case):
            # what else of its function is in loops is none the wiser for that one
            instead = search.first_answer(takewhile(partial(is_loop_in, one), apart))
            kept += [instead] if instead is not None else []
    return kept, replaced


def _over_regions(
    search: Search, looked: Sequence[Looked]
) -> tuple[tuple[OverRegions, ...], list[Looked], ProgramPlan | None]:
    """What the layouts that the regions have in common gain in all of them, the regions with it in their verdicts, and the
    plan. Of a region without any times it is only known that it uses the structures."""
    timed = [one for one in looked if one.has_times]
    for one in looked:
        if not one.has_times:
            search.leave(one.case.profiled, one.case.given)
    if not timed:
        return (), list(looked), None
    start, regions = search.start, [one.case.profiled for one in timed]
    parts = alone(regions, start.main)
    shared = dict.fromkeys(c.id for one in timed for c in one.case.given)
    table = over_regions([one.studied.report for one in timed], parts, tuple(shared))
    judged = [_with(one, with_regions(one.studied.report, table)) for one in timed]
    seen = MeasuredRegions(tuple(one.studied.report for one in judged), tuple(parts), log_order(start, regions))
    unmeasured = [*search.unmeasured, *seen_users(seen, regions[0].ranking, search.unmeasured)]
    plan = program_plan(seen, table, [region.name for region, _ in search.failed], unmeasured)
    plan = with_trial(plan, judged, start.settings.live, start.time.of_plan(search.seconds.for_plan))
    return table, [*as_run(judged, plan), *(one for one in looked if not one.has_times)], plan


def _with(one: Looked, report: HotspotReport) -> Looked:
    return replace(one, studied=replace(one.studied, report=report))
