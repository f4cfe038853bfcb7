"""The regions of a run that are studied beside each other: which ones, and what they have in common.

Of a program with one hot region there is nothing to survey. Where there are several, each is traced once before any is
studied, so that structures get the fields of all of them, and the same layouts are measured in each (decision 66).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from layout_advise.choose.further_regions import others, share_beside
from layout_advise.choose.named_regions import named_regions
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled, Sampled
from layout_advise.config import Settings
from layout_advise.decide.untried import is_mostly_own
from layout_advise.errors import LayoutAdviseError, ProgramError, SnapshotError, TraceError
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation, united
from layout_advise.observe.stage import Observed, observe_call
from layout_advise.propose.proposals import propose
from layout_advise.propose.shared_candidates import place_of as structure_place
from layout_advise.propose.shared_candidates import shared_candidates
from layout_advise.reasons import Reason
from layout_advise.regions.looked import ends_the_run, near_failed, place_of
from layout_advise.regions.one import RunContext, loop_of, watch
from layout_advise.regions.run_seconds import no_less
from layout_advise.reports.model.contract import PassedOver
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.turns import own_time

SELDOM = "it is entered too seldom to be compared beside the others."
LATE = "tracing the regions before it took the time that there is for it (--budget)."
NOTHING = "no layout rule applies to its structures, and no other region uses them."


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The cases of the regions to study, ready for it, those that could not be looked at, and those without anything to
    compare."""

    cases: tuple[Case, ...]
    failed: tuple[tuple[Profiled, LayoutAdviseError], ...] = ()
    left_out: tuple[PassedOver, ...] = ()


def regions_beside(start: RunContext, profiled: Profiled) -> tuple[Profiled, ...]:
    """The regions to study: those that the user names, or ``profiled`` and the hottest functions beside it until 90 % of the
    samples are held, each with at least a twentieth of them that no other one has."""
    settings = start.settings
    first, *named = _named(start, profiled) if settings.hotspot is not None else (profiled,)
    if settings.call is not None or settings.until not in ("measure", "report") or settings.regions < 2:
        return (first,)
    found = [first]
    for other in named if settings.hotspot is not None else others(profiled, start.main):
        enough = settings.hotspot is None and held(found, start.main) >= CHOOSE.held_share
        if len(found) >= settings.regions or enough:
            break
        alone = share_beside(first, [*found, other], start.main) - share_beside(first, found, start.main)
        nested = alone < (1.0 - CHOOSE.most_overlap) * other.share
        if not nested and (settings.hotspot is not None or alone >= CHOOSE.least_region_share):
            found.append(other)
    return tuple(found)


def _named(start: RunContext, profiled: Profiled) -> Sequence[Profiled]:
    """What the functions that the user names stand for: ``profiled``, and those after it. Raises BinaryError for one that is
    not in the program."""
    seen = Sampled.of(profiled, start.main)
    further = (seen.profiled((), start.main, start.main.find(name)) for name in start.settings.further_hotspots)
    return [region for one in (profiled, *further) for region in named_regions(one, start.main)]


def held(regions: Sequence[Profiled], main: ElfBinary) -> float:
    """The part of the samples that fell in any of the regions."""
    return regions[0].share + share_beside(regions[0], regions[1:], main)


def survey(start: RunContext, wanted: Sequence[Profiled]) -> Surveyed:
    """Watches and traces each of the regions, and says what to measure in all of them; those that use no structure in which
    anything could be rearranged are left out. One that fails costs its own part only. Raises ProgramError where the first
    one shows that the program cannot be run."""
    looked: list[tuple[Case, Observation]] = []
    failed: list[tuple[Profiled, LayoutAdviseError]] = []
    seldom: list[PassedOver] = []
    late: list[PassedOver] = []
    begun = last = own_time()
    waiting, known = deque(wanted), {place_of(one) for one in wanted}
    while waiting:
        now, before, last = own_time(), last, own_time()
        first = waiting[0] is wanted[0]
        if not first and start.settings.hotspot is None and (now - begun) + (now - before) > most_seconds(start.settings):
            late = [PassedOver(one.name, one.share, Reason.NOT_MEASURED, LATE) for one in waiting]
            break
        number, profiled = 1 + max(0, len(wanted) - len(waiting)), waiting.popleft()
        start.progress.stage("trace", f"looking at region {number} of {len(wanted)}: {profiled.name}")
        try:
            case = watch(start, profiled, math.inf if first else begun + most_seconds(start.settings))
            if any(_same_region(case, one) for one, _ in looked):
                continue
            if case.probe.calls < CHOOSE.fewest_calls:
                seldom.append(PassedOver(case.profiled.name, case.profiled.share, Reason.FEW_CALLS, SELDOM))
                continue
            observed = or_its_loop(observed_at(case))
            looked.append((observed.case, observed.seen))
        except (ProgramError, SnapshotError, TraceError) as error:
            if ends_the_run(error, first, asked=False):
                raise
            failed.append((profiled, error))
            instead = [one for one in near_failed(start, profiled, error) if place_of(one) not in known]
            known.update(map(place_of, instead))
            waiting.extendleft(reversed(instead))
    cases = _shared(looked, start.settings.candidates)
    kept = {case.profiled.name for case in cases}
    plain = [one.profiled for one, _ in looked if one.profiled.name not in kept]
    nothing = (PassedOver(one.name, one.share, Reason.NO_RULE_APPLIES, NOTHING) for one in plain)
    return Surveyed(cases, tuple(failed), (*seldom, *nothing, *late))


def observed_at(case: Case) -> Observed:
    """The call of ``case``, traced."""
    with case.park(case.chosen.call) as parked:
        return observe_call(case, parked)


def or_its_loop(observed: Observed) -> Observed:
    """``observed``, or the loop in it, traced, where most of what it works on it allocates itself."""
    case = observed.case
    if not case.may_have_loops or not is_mostly_own(observed.seen):
        return observed
    case.space.progress.step("looking for a loop that works on what the call allocates")
    smaller = loop_of(case, CHOOSE.fewest_calls)
    return observed if smaller is None else observed_at(smaller)


def most_seconds(settings: Settings) -> float:
    """The seconds in which regions that the user does not name are traced before any is studied: none is that would take
    longer, if it took as long as the one before it."""
    return CHOOSE.survey_budgets * no_less(settings.budget)


def _same_region(one: Case, other: Case) -> bool:
    """Whether one was taken in the place of the other."""
    places = [(str(c.profiled.module.path), c.profiled.entry.address) for c in (one, other)]
    return places[0] == places[1]


def _shared(looked: Sequence[tuple[Case, Observation]], budget: int) -> tuple[Case, ...]:
    """The cases with what regions have in common: of those that use a structure together the calls, and the layouts."""
    known = [united(seen, _beside(number, looked)) for number, (_, seen) in enumerate(looked)]
    proposed = [propose(seen, budget, beside=_beside(number, looked)) for number, seen in enumerate(known)]
    together = [bool(_beside(number, looked)) for number in range(len(looked))]
    given = shared_candidates([found if shared else () for found, shared in zip(proposed, together, strict=True)], budget)
    cases = []
    for number, (case, _) in enumerate(looked):
        if number and not proposed[number] and not together[number]:
            continue
        first = 1 + len(given) + number * budget if given else 1 + number * budget
        cases.append(replace(case, beside=_beside(number, looked), given=given, further_ids=first))
    return tuple(cases)


def _beside(number: int, looked: Sequence[tuple[Case, Observation]]) -> tuple[Observation, ...]:
    """The calls of other regions that touch a structure of this one."""
    own = {structure_place(structure) for structure in looked[number][1].structures}
    return tuple(
        seen
        for other, (_, seen) in enumerate(looked)
        if other != number and own & {structure_place(structure) for structure in seen.structures}
    )
