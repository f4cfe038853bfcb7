"""Looking for kinds of calls: traces of a few calls beside the one studied, and the times of the first ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from layout_advise.choose import batches, probed_calls
from layout_advise.choose.call_kinds import (
    Kind,
    Work,
    grouped,
    label_calls,
    named,
    period_of,
    unlike_in_time,
    weigh,
    work_of,
)
from layout_advise.choose.calls import ChosenCall, calm_time, latest, preferred
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import PATIENCE_NS, call_times
from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.timing.canary import usual_ticks
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import median_of
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.process.stopped_program import Calm
from layout_advise.tracer.sampling.probe import probe


@dataclass(frozen=True, slots=True)
class Kinds:
    """All kinds found, that with the greatest share first; ``times`` are the undisturbed ns of the first calls. Empty where
    all calls looked at are alike."""

    found: tuple[Kind, ...] = ()
    times: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return len(self.found) > 1


def find_kinds(case: Case, seen: Observation) -> Kinds:
    """The kinds of calls of the hotspot of which ``seen`` is one call; none of a parallel region, of calls in a batch
    or of those that were chosen by their time."""
    call = case.chosen.call
    known = case.probe.calls
    if case.batch is not None or case.chosen.alike or case.profiled.threaded or case.probe.recursive or seen.trace.truncated:
        return Kinds()
    if seen.trace.backend != "clone":  # other tracers count otherwise, and take too long
        return Kinds()
    works = {call: work_of(seen.trace, seen.structures)}
    times = call_times(case.profiled, case.probe)[: CHOOSE.latest_call]
    beside = [c for c in (call + 1, call + 2, call - 1, call - 2) if 1 <= c <= known][: OBSERVE.beside]
    case.space.progress.step("looking at other calls")
    begun = time.monotonic()
    for wanted in (*beside, *unlike_in_time(times, (call, *beside))):
        if len(works) > 1 and time.monotonic() - begun > OBSERVE.beside_seconds:
            break
        if wanted not in works and not _look(case, seen, wanted, works):
            return Kinds()
    if len(grouped(works)) == 1:
        return Kinds()
    begun = time.monotonic()
    for wanted in range(call + OBSERVE.beside + 1, min(call + OBSERVE.beside + OBSERVE.further, known) + 1):
        if time.monotonic() - begun > OBSERVE.further_seconds or (
            wanted not in works and not _look(case, seen, wanted, works)
        ):
            break
    return _weighed(case, works)


def _look(case: Case, seen: Observation, call: int, works: dict[int, Work]) -> bool:
    """Tells whether ``call`` could be traced; what it does goes into ``works``."""
    try:
        trace = case.traced(call)
    except LayoutAdviseError:
        return False
    if trace.truncated:
        return False
    works[call] = work_of(trace, seen.structures)
    return True


def _weighed(case: Case, works: dict[int, Work]) -> Kinds:
    times = _times(case)
    exact = {call: number for number, group in enumerate(grouped(works)) for call in group}
    labels = label_calls(exact, times)
    period = period_of(exact)
    weights = weigh(labels, times, case.probe.calls, period)
    found = []
    for number, (calls, share) in weights.items():
        members = tuple(sorted({c for c, kind in labels.items() if kind == number}))
        stands = _stands(case, members, times)
        near = [times[c - 1] for c in members if c > 1] or [times[c - 1] for c in members]
        ns = median_of(near)
        spread = (max(near) - min(near)) / 2 / ns if ns else 0.0
        found.append(Kind(calls, share, stands, members, named(members, period, stands), ns, spread))
    found.sort(key=lambda kind: (-kind.share, kind.call))
    return Kinds(tuple(found), times)


def _stands(case: Case, members: tuple[int, ...], times: tuple[float, ...]) -> int:
    """The call that stands for those of a kind: the one asked for, else one late enough, with room to compare at two more,
    whose time is nearest to the kind's median."""
    if case.settings.call in members:
        return case.settings.call or members[0]
    if case.chosen.call in members[: -(CHOOSE.verified_calls - 1)]:
        return case.chosen.call
    room = [c for c in members[: -(CHOOSE.verified_calls - 1)] if c > 1] or [c for c in members if c > 1] or list(members)
    late = [c for c in room if preferred(case.probe.calls) <= c <= latest(case.probe.calls)] or room
    middle = median_of([times[c - 1] for c in members])
    return min(late[: CHOOSE.verified_calls], key=lambda c: (abs(times[c - 1] - middle), c))


def _times(case: Case, canary: int = 0, seconds: float = OBSERVE.processes_seconds) -> tuple[float, ...]:
    """The undisturbed (or usual) times of the first calls, from several processes: as many as take not too long, at least
    those that are traced. Of each call those count at which the processor was not slowed, held against the fastest canary
    and ``canary`` (0: not known), where these are several."""
    first = call_times(case.profiled, case.probe)[: CHOOSE.latest_call]
    count, spent = 0, 0.0
    for ns in first:
        spent += ns / 1e9
        if count >= case.chosen.call + OBSERVE.beside + OBSERVE.further and spent > OBSERVE.timed_seconds:
            break
        count += 1
    runs, canaries = [first[:count]], [tuple(s.canary for s in case.probe.times[:count])]
    begun = time.monotonic()
    while len(runs) < OBSERVE.fewest_processes or (
        len(runs) < OBSERVE.most_processes and time.monotonic() - begun < seconds
    ):
        limit = _limit(canaries, canary)
        again = probe(
            case.settings.command, case.profiled.entry, stdin_path=case.stdin, timeout=case.settings.timeout,
            timed=count, max_calls=count, calm=Calm(limit, PATIENCE_NS),
        )  # fmt: skip
        runs.append(call_times(case.profiled, again))
        canaries.append(tuple(s.canary for s in again.times))
    calls = min(map(len, runs))
    return tuple(calm_time(runs, canaries, k, _limit(canaries, canary), case.chosen.quantile) for k in range(calls))


def _limit(canaries: Sequence[Sequence[int]], canary: int) -> int:
    """How slow a canary may be beside a call that counts as undisturbed."""
    usual = usual_ticks([c for one in canaries for c in one])
    return int(TIMING.calm * min((c for c in (canary, usual) if c), default=0))


def at_kind(case: Case, kinds: tuple[Kind, ...]) -> Case:
    """The case of the calls of the first of ``kinds``: stopped at, compared and timed in the program at these."""
    kind = kinds[0]
    return replace(case, chosen=_chosen(case, kind), kinds=kinds)


def _chosen(case: Case, kind: Kind) -> ChosenCall:
    return ChosenCall(kind.call, case.chosen.calls, kind.ns, kind.spread, quantile=case.chosen.quantile)


def timed_again(case: Case, kind: Kind, canary: int) -> float | None:
    """The time of the kind's calls in the program, undisturbed or usual, from further processes too (ns), which wait for
    such a canary: what these took longer than the first ones is the machine's doing, where data lies in the core's own
    caches."""
    times = _times(case, canary, CHOOSE.second_look_seconds)
    known = [times[c - 1] for c in kind.members if c <= len(times)]
    again = median_of(known) if known else None
    if case.chosen.quantile == TIMING.typical:
        return again or kind.ns
    return min(again, kind.ns) if again is not None and kind.ns is not None else again


def look_again(case: Case, canary: int) -> float | None:
    """The time in ns of what is timed, from further runs of the program, which wait for such a canary."""
    if case.batch is not None:
        return batches.look_again(case.settings, case.profiled, case.stdin, case.batch, canary)
    if case.kinds:
        return timed_again(case, case.kinds[0], canary)
    chosen = replace(case.chosen, canary=min((c for c in (canary, case.chosen.canary) if c), default=0))
    return probed_calls.look_again(case.settings, case.profiled, case.stdin, chosen, CHOOSE.second_look_seconds).in_situ_ns
