"""How many processes, rounds and calls a hotspot is measured with: what takes long is called less often.

What disturbs a shared machine comes in phases of 10 ms to a second: many calls, spread over a process' life, let undisturbed
ones show. Quick calls cost nothing but that; with slow ones, mostly on much data, a restored process takes seconds, and they
feel disturbances less (``docs/decisions/0026``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.mockup.timing.plan import TimingPlan

QUICK_NS = 2e6
"""A call that takes less is quick."""
MEMORY_NS = 3e5
"""Calls that take as long may have more data than the caches of a core hold. Looking at the memory would disturb others."""
BLOCK_NS = 45e6
"""A block of calls of the original may take about this long."""
VARIANT_NS = 60e6
"""So long may one variant be called in each process, all rounds together."""
LEAST_CALLS, MOST_CALLS = 4, 40
FEWEST_AGAIN = 5
ENOUGH = 10
"""A block of as many calls as may be ends after so many undisturbed ones."""


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
    seconds: tuple[float, float] | None
    """After so long no further process is begun, the winner's again included; None: there is no such end."""


QUICK = Effort(9, 2, (3, 10), 64, 18_000_000_000, None, None, None, None)
# Slow calls mostly wait for memory: disturbed, their ratios are hardly ever off by 1.5 (docs/decisions/0022).
SLOW = Effort(7, 4, (1, 1), 64, 2_000_000_000, 1.5, 5, 4, (20, 8))


def effort_for(call_ns: float) -> Effort:
    """For a hotspot of which one call takes ``call_ns``."""
    return QUICK if call_ns < QUICK_NS else SLOW


def plans_for(
    call_ns: float, restores: int | None, clock: Literal["thread-cpu", "wall"], canary: int = 0
) -> tuple[TimingPlan, TimingPlan]:
    """The plan for all candidates and the one for measuring the winner again. ``restores``: so many processes, whatever the
    calls take (for the winner somewhat fewer)."""
    effort = effort_for(call_ns)
    calls = max(LEAST_CALLS, min(MOST_CALLS, int(BLOCK_NS / max(call_ns, 1.0))))
    least, most = effort.rounds
    seconds = effort.seconds if effort.seconds and not restores else (None, None)
    first = TimingPlan(
        restores or effort.restores,
        max(least, min(most, int(VARIANT_NS / (calls * max(call_ns, 1.0))))),
        calls,
        2 if calls > LEAST_CALLS + 1 else 1,
        cold_calls=2,
        clock=clock,
        canary=canary,
        patience_ns=effort.patience_ns,
        enough=ENOUGH if calls == MOST_CALLS else 0,
        most_calls=effort.most_calls,
        hopeless=effort.hopeless,
        finalists=effort.finalists,
        cold_restores=effort.cold_restores,
        seconds=seconds[0],
        memory=call_ns >= MEMORY_NS,
    )
    again = max(FEWEST_AGAIN, first.restores - effort.fewer)
    return first, replace(first, restores=again, around=True, seconds=seconds[1], fewest=FEWEST_AGAIN - 1)
