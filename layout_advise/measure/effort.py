"""How many processes, rounds and calls a hotspot is measured with: what takes long is called less often. And how long trials
in the running program may take.

What disturbs a shared machine comes in phases of 10 ms to a second: many calls, spread over a process' life, let undisturbed
ones show. Quick calls cost nothing but that; with slow ones, mostly on much data, a restored process takes seconds, and they
feel disturbances less (``docs/decisions/0026``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.build.policy import BUILD
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.plan import TimingPlan


@dataclass(frozen=True, slots=True)
class Effort:
    """``restores``: processes to measure in, ``fewer`` of them for the winner again. ``rounds``: in each process, from and
    to. ``most_calls``, ``patience_ns``, ``hopeless`` and ``finalists`` as in :class:`TimingPlan`."""

    restores: int
    fewer: int
    rounds: tuple[int, int]
    most_calls: int
    patience_ns: int
    hopeless: float | None
    finalists: int | None
    cold_restores: int | None


QUICK = Effort(9, 2, (3, 10), 64, 18_000_000_000, None, None, None)
# Slow calls mostly wait for memory: disturbed, their ratios are hardly ever off by 1.5 (docs/decisions/0022).
SLOW = Effort(7, 4, (1, 1), 64, 2_000_000_000, 1.5, 5, 4)


def effort_for(call_ns: float, beyond: bool = True) -> Effort:
    """For a hotspot of which one call takes ``call_ns``; ``beyond``: on more data than the L2 holds. Slow calls on less feel
    what disturbs the core as quick ones do, and wait as long for it to end (``docs/decisions/0152``)."""
    if call_ns < MEASURE.quick_ns:
        return QUICK
    return SLOW if beyond else replace(SLOW, patience_ns=QUICK.patience_ns)


def cold_calls(call_ns: float, flushed: int) -> int:
    """How many calls that take ``call_ns``, each after so many bytes were ``flushed``, are timed with flushed caches in each
    process: of quick ones more, as the processor is calm at some of them (``docs/decisions/0150``)."""
    each = call_ns + MEASURE.flush_ns * flushed / BUILD.line
    return max(MEASURE.least_cold, min(MEASURE.most_cold, int(MEASURE.cold_ns / each)))


def plans_for(
    call_ns: float,
    restores: int | None,
    clock: Literal["thread-cpu", "wall"],
    canary: int = 0,
    budget: float = MEASURE.budget_s,
    flushed: int = 0,
    beyond: bool = True,
) -> tuple[TimingPlan, TimingPlan]:
    """The plan for all candidates and the one for measuring the winner again. ``restores``: so many processes, whatever the
    calls take (for the winner somewhat fewer). ``budget``: seconds for both. ``flushed``: the bytes that a call touches;
    ``beyond``: they are more than the L2 holds."""
    effort = effort_for(call_ns, beyond)
    calls = max(MEASURE.least_calls, min(MEASURE.most_calls, int(MEASURE.block_ns / max(call_ns, 1.0))))
    least, most = effort.rounds
    seconds: tuple[float | None, float | None] = None, None
    if not restores:
        seconds = MEASURE.first_part * budget, MEASURE.again_part * budget
    first = TimingPlan(
        restores or effort.restores,
        max(least, min(most, int(MEASURE.variant_ns / (calls * max(call_ns, 1.0))))),
        calls,
        2 if calls > MEASURE.least_calls + 1 else 1,
        cold_calls=cold_calls(max(call_ns, 1.0), flushed),
        clock=clock,
        canary=canary,
        patience_ns=effort.patience_ns,
        enough=MEASURE.enough_calls if calls == MEASURE.most_calls else 0,
        most_calls=most_calls(effort, calls, call_ns),
        hopeless=effort.hopeless,
        finalists=effort.finalists,
        cold_restores=effort.cold_restores,
        seconds=seconds[0],
        memory=beyond and call_ns >= MEASURE.memory_ns,
    )
    again = max(MEASURE.fewest_again, first.restores - effort.fewer)
    return first, replace(first, restores=again, around=True, seconds=seconds[1], fewest=MEASURE.fewest_again - 1)


def most_calls(effort: Effort, calls: int, call_ns: float) -> int:
    """To how many calls a block may go on that has ``calls`` of them: 0 where they take as long as it may go on by
    themselves."""
    most = min(effort.most_calls, int(MEASURE.settle_ns / max(call_ns, 1.0)))
    return most if most > calls else 0


SHORT_S = 10.0
"""So long any run of the program in a trial may take, as far as there is time for it."""


@dataclass(frozen=True, slots=True)
class TrialTime:
    """How long a trial in the running program may take, by ``own_time``: it is over at ``until``, and no runs beyond the
    fewest are begun after ``enough``. ``alone``: the seconds that the program takes by itself."""

    until: float
    enough: float
    alone: float

    def of_run(self, now: float, needed: float, known: float | None) -> float:
        """The seconds that a run begun ``now`` may take, where as long as so many such runs is still needed, it included (0:
        none is, it is one more), and an ordinary one took ``known``."""
        usual = max(MEASURE.live_slower * known, SHORT_S) if known is not None else self.until - now
        return min(usual, (self.until - now) / needed) if needed else usual

    def times_alone(self, seconds: float) -> str:
        """So many seconds of a run as a multiple of what the program takes by itself, in words."""
        times = seconds / max(self.alone, 1e-3)
        return f"{times:.{0 if times >= 10 else 1}f} times as long as by itself"


def trial_time(begun: float, over: float, alone: float, now: float, *, again: bool) -> TrialTime:
    """The time of one trial of those that began at ``begun`` and are over at ``over``; one that was made before (``again``)
    has some of its own where that is past, as what is advised hangs on it."""
    until = trials_end(now, over, over - begun) if again else over
    return TrialTime(until, now + MEASURE.live_part * (over - begun), alone)


def trials_end(now: float, until: float, seconds: float, least: float = MEASURE.live_rest) -> float:
    """When the trials of a region are over that begin ``now``: its ``seconds`` for measuring and trials are spent at
    ``until``, and trials have at ``least`` this part of them."""
    return max(until, now + least * seconds, now + MEASURE.live_s)
