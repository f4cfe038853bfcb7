"""One region: its calls watched, the case made of it, and its study taken up again in the ways that it asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from layout_advise.choose.batches import can_be_batched, first_calls, may_be_learnt, plan_batch, too_short
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.chunks import find_chunk
from layout_advise.choose.loop_regions import find_loop
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import probe_calls
from layout_advise.choose.profile import Profiled
from layout_advise.choose.short_calls import long_call, plan_short_calls
from layout_advise.config import Settings
from layout_advise.describe.studied import AnotherKind, LongCall, MoreWays, SmallerRegion, Studied
from layout_advise.errors import TraceError, UsageError
from layout_advise.measure.stage import seconds_of
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds, at_kind
from layout_advise.progress import Progress
from layout_advise.regions.run_seconds import RunTime
from layout_advise.regions.study_end import StudyOver, ended_at
from layout_advise.road import study
from layout_advise.rundir import RunDir
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import Probe
from layout_advise.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all regions of a run have in common: the program, what it reads, and where files and progress go."""

    settings: Settings
    main: ElfBinary
    stdin: Path | None
    run: RunDir
    work: Path
    progress: Progress
    time: RunTime = field(default_factory=RunTime)


def watch(start: RunContext, profiled: Profiled, end: float = math.inf) -> Case:
    """Count and time the hotspot's calls: of a loop where there are too few, of many at a time where they are short. Unless
    the user asks for it, that is ended at ``end`` (``own_time``), or, where others were studied, when the run has to end:
    with a TraceError."""
    asked = start.settings.restores is not None or start.settings.hotspot is not None
    try:
        with ended_at(math.inf if asked else min(end, start.time.end)):
            return _watched(start, profiled)
    except StudyOver as over:
        raise TraceError("watching its calls took longer than the run may", hint="name it with --hotspot") from over


def _watched(start: RunContext, profiled: Profiled) -> Case:
    settings, main, stdin, progress = start.settings, start.main, start.stdin, start.progress
    progress.step("counting and timing the hotspot's calls")
    no_loop, beyond = "", None
    try:
        seen, chosen = probe_calls(settings, profiled, stdin)
    except UsageError as error:  # there is no such call; of a loop in it there may be
        beyond = error
        seen, chosen = probe_calls(replace(settings, call=None), profiled, stdin)
    if seen.calls < CHOOSE.fewest_calls:
        progress.step("looking for a loop that is entered more often")
        found = find_loop(settings, main, profiled, stdin)
        if not isinstance(found, str):
            profiled, seen, chosen = _or_chunk(start, profiled, found)
            chunk = profiled.entry.chunk
            part = f", {chunk:,} iterations at a time" if chunk else ""
            progress.note(f"hotspot: {profiled.name}{part} ({profiled.share:.0%} of the samples)")
        else:
            no_loop = found
    if beyond is not None and profiled.nest is None:
        raise beyond
    space = Workspace(start.run.region(profiled.name), start.work, progress)
    case = Case(settings, main, profiled, seen, chosen, stdin, space, no_loop=no_loop)
    if not too_short(profiled, seen, chosen):
        return case
    progress.step("recording calls, which are too short to be timed one by one")
    chosen, batch = plan_short_calls(settings, profiled, stdin, seen, chosen)
    return case.unbatched(batch) if isinstance(batch, str) else replace(case, chosen=chosen, batch=batch)


def _or_chunk(
    start: RunContext, profiled: Profiled, found: tuple[Profiled, Probe, ChosenCall]
) -> tuple[Profiled, Probe, ChosenCall]:
    """The loop ``found`` in the hotspot; where an entry of it is too short to be timed, a chunk of the iterations of a loop
    around it, if there is one: it holds many such entries."""
    chosen = found[2]
    if chosen.in_situ_ns is None or chosen.in_situ_ns >= CHOOSE.short_call_ns:
        return found
    start.progress.step("looking for a chunk of the iterations of a loop, as entries are too short")
    chunk = find_chunk(start.settings, start.main, profiled, start.stdin)
    return found if isinstance(chunk, str) else chunk


def study_in_time(case: Case, time: RunTime) -> tuple[Case, Studied | None]:
    """The study of a region, taken up again as long as the run has time. Where others were studied before, it is ended when
    the run has to end, unless the user asks for it, or for so many processes: what it has found by then is kept. Raises
    TraceError where that is nothing."""
    case, found = replace(case, until=time.until), list[tuple[Case, Studied]]()
    asked = case.settings.restores is not None or case.settings.hotspot is not None
    try:
        with ended_at(math.inf if asked else time.end):
            result = study_again(case, _timed(time, lambda: study(case)), time, found.append)
    except StudyOver as over:
        if not found:
            raise TraceError("its study took longer than the run may", hint="name it with --hotspot") from over
        result = found[-1]
    time.told = True
    return result


def _timed(
    time: RunTime, made: Callable[[], Studied | AnotherKind | None], before: float = 0.0
) -> Studied | AnotherKind | None:
    """The findings of a study, and how long it takes beside measuring, of which it counts so many seconds ``before`` it."""
    with time.studying() as seconds:
        studied = made()
        seconds.measuring = studied.took - before if isinstance(studied, Studied) else 0.0
    return studied


def study_again(
    case: Case,
    studied: Studied | AnotherKind | None,
    time: RunTime,
    found: Callable[[tuple[Case, Studied]], None] = lambda one: None,
) -> tuple[Case, Studied | None]:
    """The study of the region, taken up again in the ways that it asks for; and the case that it is of. Each of them is told
    to ``found``."""
    rounds = 0
    while True:
        if isinstance(studied, Studied):
            found((case, studied))
        if isinstance(studied, AnotherKind):  # the calls differ, and another one has to stand for them
            case, kinds = at_kind(case, studied.kinds.found), studied.kinds
            studied = _timed(time, partial(study, case, kinds))
        elif studied is None or studied.retry is None or time.is_over(_still(case, studied)):
            return case, studied
        elif isinstance(studied.retry, MoreWays):
            rounds += 1
            if studied.retry.taken <= case.taken or rounds > CHOOSE.most_rounds:
                return case, studied
            case, kinds = replace(case, taken=case.taken | studied.retry.taken), Kinds(studied.retry.kinds)
            case = at_kind(case, kinds.found) if kinds else case
            studied = _timed(time, partial(study, case, kinds))
        elif isinstance(studied.retry, LongCall):
            one = at_long_call(case)
            if one is None:
                return case, studied
            case, studied = one, _timed(time, partial(_with_rest, one, studied), studied.took)
        elif isinstance(studied.retry, SmallerRegion):
            smaller = with_fewer_accesses(case)
            if smaller is None:
                return case, studied
            case, studied = smaller, _timed(time, partial(study, smaller))
        else:
            batch = in_batches(case, studied)
            if batch is None:
                return case, studied
            several = _timed(time, partial(_with_rest, batch, studied), studied.took)
            assert not isinstance(several, AnotherKind)  # batches have no kinds
            if several is None or several.tells:
                return case, several
            # calls in a row may use other arrays through one pointer, as of two buffers that are swapped between them
            return case, replace(studied, took=several.took)


def _with_rest(case: Case, before: Studied) -> Studied | AnotherKind | None:
    """The study of ``case`` in the seconds that the one ``before`` has left of the region's; it has taken those of both."""
    found = study(replace(case, seconds=_left(case, before)))
    return replace(found, took=before.took + found.took) if isinstance(found, Studied) else found


def _still(case: Case, before: Studied) -> float:
    """The seconds for measuring of a study in the place of ``before``. None count where that measured nothing, as calls took
    other ways: nothing is known of the region yet."""
    return 0.0 if isinstance(before.retry, MoreWays) else _left(case, before)


def _left(case: Case, before: Studied) -> float:
    """The seconds of the region that the study ``before`` has left, or the least that one has."""
    return max(seconds_of(case) - before.took, CHOOSE.least_budget * seconds_of(replace(case, seconds=None)))


def with_fewer_accesses(case: Case) -> Case | None:
    """The case of the outermost loop in the hotspot that is entered more often than it, and makes fewer accesses each time;
    else of a chunk of the iterations of one. None where there is none."""
    if case.settings.call is not None or case.batch is not None:
        return None
    progress = case.space.progress
    progress.step("looking for a loop that makes fewer accesses")
    smaller = loop_of(case, 2 * case.probe.calls) if not case.no_loop else None
    if smaller is None:
        now = case.profiled.entry.chunk
        most = (now // CHOOSE.fewest_chunks,) if now else ()
        found = find_chunk(case.settings, case.main, case.profiled, case.stdin, *most)
        smaller = _in_place_of(case, *found) if not isinstance(found, str) else None
        if isinstance(found, str):
            progress.note(f"nor is there a chunk of its iterations to study: {found}")
    if smaller is not None:
        chunk = smaller.profiled.entry.chunk
        part = f", {chunk:,} iterations at a time," if chunk else ""
        progress.note(f"a call makes more accesses than are recorded: {smaller.profiled.name}{part} is looked at")
        if smaller.space.region != case.space.region:  # else it is a shorter chunk of the same loop
            case.space.region.remove()
    return smaller


def loops_of(case: Case, least: int) -> Iterator[Case]:
    """Yields the case of :func:`loop_of`, then those of the loops beside it and each other, the hottest first."""
    heads: list[int] = []
    while (found := loop_of(case, least, heads)) is not None:
        yield found
        assert found.profiled.nest is not None
        heads.append(found.profiled.nest.head)


def loop_of(case: Case, least: int, beside: Collection[int] = ()) -> Case | None:
    """The case of the outermost loop in the hotspot that is entered at least so often, and long enough to be timed: each
    time, or where much of its time is; ``beside`` loops with these heads. None where there is none."""
    found = find_loop(case.settings, case.main, case.profiled, case.stdin, least, beside)
    if isinstance(found, str):
        return None
    profiled, seen, chosen = found
    if chosen.in_situ_ns is None:  # it could not be timed
        return None
    if chosen.in_situ_ns < CHOOSE.short_call_ns:
        longer = long_call(case.settings, profiled, case.stdin, seen, chosen)
        if longer is None:
            return None
        chosen = longer
    return _in_place_of(case, profiled, seen, chosen)


def _in_place_of(case: Case, profiled: Profiled, seen: Probe, chosen: ChosenCall) -> Case:
    """The case of what is studied in the place of that of ``case``."""
    space = replace(case.space, region=case.space.region.beside(profiled.name))
    smaller = Case(case.settings, case.main, profiled, seen, chosen, case.stdin, space)
    # what it has in common with other regions of the run stays, and so do the numbers of its own candidates
    common = replace(smaller, beside=case.beside, given=case.given, further_ids=case.further_ids)
    return replace(common, seconds=case.seconds, until=case.until)


def at_long_call(case: Case) -> Case | None:
    """The case of a call that is long enough to be timed by itself; None where short ones have nearly all of the time."""
    if not can_be_batched(case.profiled, case.probe) or case.chosen.alike:
        return None
    case.space.progress.step("looking for calls that are long enough to be timed by themselves")
    chosen = long_call(case.settings, case.profiled, case.stdin, case.probe, case.chosen)
    return None if chosen is None else replace(case, chosen=chosen, batch=None, no_batch="")


def in_batches(case: Case, studied: Studied) -> Case | None:
    """The case with several calls in a row timed together, where one call repeated is quicker than the program; None where
    that is not so, or they cannot be."""
    report = studied.report
    fit = case.batch is None and not case.chosen.alike and not report.kinds and can_be_batched(case.profiled, case.probe)
    if not fit or not may_be_learnt(report.original):
        return None
    start = case.settings, case.profiled, case.stdin, case.probe
    chosen, batch = plan_batch(*start, case.chosen, first_calls(*start), CHOOSE.learnt_calls)
    if isinstance(batch, str):
        return None
    case.space.progress.note(f"the same call repeated is quicker than in the program: {batch.size} calls in a row are timed")
    return replace(case, chosen=chosen, batch=batch)
