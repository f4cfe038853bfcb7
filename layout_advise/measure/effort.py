"""How many processes, rounds and calls a hotspot is measured with: what takes long is called less often.

What disturbs a shared machine comes in phases of 10 ms to a second: many calls, spread over a process' life, let undisturbed
ones show. Quick calls cost nothing but that; with slow ones, mostly on much data, a restored process takes seconds, and they
feel disturbances less (``docs/decisions/0026``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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


def effort_for(call_ns: float) -> Effort:
    """For a hotspot of which one call takes ``call_ns``."""
    return QUICK if call_ns < MEASURE.quick_ns else SLOW


def plans_for(
    call_ns: float,
    restores: int | None,
    clock: Literal["thread-cpu", "wall"],
    canary: int = 0,
    budget: float = MEASURE.budget_s,
) -> tuple[TimingPlan, TimingPlan]:
    """The plan for all candidates and the one for measuring the winner again. ``restores``: so many processes, whatever the
    calls take (for the winner somewhat fewer). ``budget``: seconds for both."""
    effort = effort_for(call_ns)
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
        cold_calls=2,
        clock=clock,
        canary=canary,
        patience_ns=effort.patience_ns,
        enough=MEASURE.enough_calls if calls == MEASURE.most_calls else 0,
        most_calls=effort.most_calls,
        hopeless=effort.hopeless,
        finalists=effort.finalists,
        cold_restores=effort.cold_restores,
        seconds=seconds[0],
        memory=call_ns >= MEASURE.memory_ns,
    )
    again = max(MEASURE.fewest_again, first.restores - effort.fewer)
    return first, replace(first, restores=again, around=True, seconds=seconds[1], fewest=MEASURE.fewest_again - 1)
