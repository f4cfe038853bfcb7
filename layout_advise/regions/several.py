"""The regions of a run: where one gives no answer, the loops in it, what calls it, and the next hottest ones are looked at.

Which of them comes next follows from why the last one failed (``docs/decisions/0061``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from layout_advise.choose.further_regions import Key
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.errors import LayoutAdviseError, ProgramError, SnapshotError, TraceError
from layout_advise.observe.case import Case
from layout_advise.reasons import Reason
from layout_advise.regions.beside import all_of
from layout_advise.regions.looked import (
    Looked,
    Told,
    elsewhere,
    ends_the_run,
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
from layout_advise.regions.run_seconds import RunSeconds, run_seconds
from layout_advise.regions.survey import Surveyed, regions_beside, survey
from layout_advise.regions.whole import apart, excluded, for_program, tells_more, with_shares, without_rules
from layout_advise.reports.words.reason_words import clause
from layout_advise.tracer.sampling.turns import own_time


def study_regions(start: RunContext, profiled: Profiled) -> Told | None:
    """Studies ``profiled`` and the hot regions beside it; where there are none, and as long as there is no answer and time
    is left, what may do in its place. None where the settings end the road before the verdict. Raises what went wrong at
    the first region where no other gave a report."""
    wanted = regions_beside(start, profiled)
    profiled = wanted[0]
    surveyed = survey(start, wanted) if len(wanted) > 1 else Surveyed(())
    if len(surveyed.cases) < 2:
        told = _one_answer(start, profiled, surveyed)
        if told is None:
            return None
        further = untold(surveyed.left_out, told.passed_over, [told, *told.beside])
        return replace(told, passed_over=(*told.passed_over, *further))
    return all_of(start, profiled, surveyed)


def _one_answer(start: RunContext, profiled: Profiled, surveyed: Surveyed) -> Told | None:
    """The first region that gives an answer, and as long as most of the samples have none and there is time, or it is early
    in the run, further ones; those that failed before are not looked at again."""
    settings, since = start.settings, own_time()
    seconds = run_seconds(settings.budget, (profiled.share,))
    looked: list[Looked] = []
    answered: list[Profiled] = []
    failed = list(surveyed.failed)
    seen = any(place_of(case.profiled) == place_of(profiled) for case in surveyed.cases)
    first: tuple[Profiled, ...] = () if seen else (profiled,)
    waiting: Iterator[Profiled | Case] = chain(first, surveyed.cases, elsewhere(start, profiled))
    known: set[tuple[Key, int]] = {place_of(one) for one, _ in failed}
    plain = without_rules(surveyed.left_out)
    while len(looked) + len(failed) < CHOOSE.most_regions + len(surveyed.failed) + len(answered):
        new = (region for region in waiting if place_of(region) not in known)
        one = next((region for region in new if not answered or tells_more(region, answered, plain, start.main)), None)
        if one is None or (known and _is_late(start, seconds, profiled_of(one).share, since)):
            break
        known.add(place_of(one))
        if len(known) > 1:
            start.progress.note(f"looking at {profiled_of(one).name} ({profiled_of(one).share:.0%} of the samples)")
        try:
            case = one if isinstance(one, Case) else watch(start, one)
            if (place := place_of(case.profiled)) != place_of(one):  # one that is entered more often is taken
                if place in known:
                    continue
                known.add(place)
            case = replace(case, seconds=seconds.of(case.profiled.share))
            case, studied = study_in_time(case, start.time)
        except (ProgramError, SnapshotError, TraceError) as error:
            if ends_the_run(error, one is profiled, settings.hotspot is not None):
                raise
            failed.append((profiled_of(one), error))
            waiting = chain(near_failed(start, profiled_of(one), error), waiting)
            continue
        if studied is None:
            return None
        looked.append(Looked(case, studied))
        seconds = seconds.after(studied.took)
        if looked[-1].answers:
            answered.append(case.profiled)
            start.time.answered += case.profiled.share
        else:
            start.progress.note(f"no clear answer from {case.profiled.name}: {clause(looked[-1].reason)}")
            waiting = chain(near(start, looked[-1]), waiting)
        enough = start.time.answered >= CHOOSE.held_share or len(answered) >= settings.regions
        if enough or excluded(start, apart(looked, start.main)):
            break
    if not looked:
        raise failed[0][1]
    return _outcome(start, looked, failed)


def _is_late(start: RunContext, seconds: RunSeconds, share: float, since: float) -> bool:
    """Tells whether a region with this share of the samples is no longer begun."""
    return start.time.is_over(seconds.of(share)) or seconds.is_late(share, since, start.time.answered)


def _outcome(start: RunContext, looked: Sequence[Looked], failed: Sequence[tuple[Profiled, LayoutAdviseError]]) -> Told:
    """The region that tells most, of several the first, the others with an answer beside it, and those without one."""
    told = max(looked, key=lambda one: (one.changes, *one.worth))
    others = sorted((one for one in looked if one is not told), key=lambda one: not one.answers)
    rows = [*(failed_row(region, error) for region, error in failed), *(row_of(one) for one in looked if one is not told)]
    told = not_blind(start.main, told, others, failed)
    measured = [one for one in apart([told, *others], start.main) if one is not told]
    told = for_program(start, told, measured, rows)
    # what the program cannot gain rests on the others that were measured, too
    rests = told.reason == Reason.NO_PROGRAM_GAIN
    told, *beside = with_shares(start, [told, *(one for one in measured if rests or one.answers)])
    names = {one.case.profiled.name for one in beside}
    return Told(told.case, told.studied, tuple(row for row in rows if row.name not in names), tuple(beside))
