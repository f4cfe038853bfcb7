"""Which call to stop at, from the times of the first calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.errors import ProgramError, UsageError
from layout_advise.mockup.statistics import median_of

PREFERRED_CALL = 5
VERIFIED_CALLS = 3
IN_SITU_CALLS = 5
LATEST_CALL = 40
NEAR = 0.25


@dataclass(frozen=True, slots=True)
class ChosenCall:
    """``call`` counts from 1. ``in_situ_ns`` is the median of calls N to N+4 in the running program, ``spread`` the
    half range of these divided by their median."""

    call: int
    calls: int
    in_situ_ns: float | None
    spread: float


def latest(calls: int) -> int:
    """The last call that leaves room for the two further calls to verify at."""
    return max(1, calls - (VERIFIED_CALLS - 1))


def choose_call(times: Sequence[float], calls: int, wanted: int | None) -> ChosenCall:
    """The call to stop at: the wanted one, else one whose time is near the median of all but the first call, the fifth
    before all others.

    ``times`` are the ns of the first calls, ``calls`` how many there were in all. Raises ProgramError when the hotspot
    was never reached, UsageError when there are fewer calls than wanted.
    """
    if calls == 0:
        raise ProgramError("the hotspot is never called", "", "choose another one with --hotspot")
    if wanted is not None:
        if wanted > calls:
            raise UsageError(f"--call {wanted}: the hotspot is called {calls} times only")
        return _chosen(wanted, times, calls)
    steady = list(times[1:]) or list(times)
    if not steady:
        return _chosen(min(PREFERRED_CALL, latest(calls)), times, calls)
    middle = median_of(steady)
    preferred = min(PREFERRED_CALL, latest(calls))
    last = min(latest(calls), LATEST_CALL, len(times))
    order = [preferred, *(n for n in range(2, last + 1) if n != preferred)]
    for number in order:
        if number <= len(times) and abs(times[number - 1] / middle - 1) <= NEAR:
            return _chosen(number, times, calls)
    return _chosen(preferred, times, calls)


def _chosen(call: int, times: Sequence[float], calls: int) -> ChosenCall:
    window = list(times[call - 1 : call - 1 + IN_SITU_CALLS])
    if not window:
        return ChosenCall(call, calls, None, 0.0)
    middle = median_of(window)
    return ChosenCall(call, calls, middle, (max(window) - min(window)) / 2 / middle if middle else 0.0)
