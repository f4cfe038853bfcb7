"""How many short calls make a batch, and at which of them it begins, from given times and recorded calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from layout_advise.choose.by_time import Window, agree
from layout_advise.choose.policy import CHOOSE
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.snapshot.recorded_calls import Calls


def size_and_start(
    times: Sequence[float], calls: int, wanted: int | None, least: int = 1, begin: int = 1
) -> tuple[int, int]:
    """How many calls make a batch, at ``least`` so many (0: there is none that can be timed), and at which call the first
    begins.

    ``times`` are those of the calls from ``begin`` on in ns. One batch goes before the first, where there are that many
    calls: it brings the caches into the state that they have later on. Where the calls after it are known to be too quick
    to be timed, the batch begins at later ones that take as long as all do on average.
    """
    if not times:
        return 0, 1
    mean = typical_call(times)
    first = wanted if wanted is not None else begin
    room = (calls - first + 1) // (CHOOSE.verified_calls if wanted is not None else CHOOSE.verified_calls + 1)
    most = CHOOSE.batch_calls if CHOOSE.batch_calls * mean >= 2 * CHOOSE.short_call_ns else MAX_TIMED
    size = min(most, max(least, math.ceil(CHOOSE.batch_ns / mean)), room)
    if size < 2 or size * mean < CHOOSE.short_call_ns:
        return 0, first
    if wanted is not None:
        return size, first
    return size, begin + _long_enough(times, size, mean, calls - begin + 1 - CHOOSE.verified_calls * size)


def better_place(known: Window, there: Window, size: int) -> Window:
    """Of ``known`` and the calls ``there``, where a batch of ``size`` calls was to begin and of which nothing was known when
    that was planned, those at whose first call it begins: there, unless these calls cannot be timed together or take quite
    another time than the known ones, and those at the start of ``known`` can."""
    planned, first = there.part(there.first, size), known.part(known.first, size)
    if not first or sum(first) < CHOOSE.short_call_ns:
        return there
    alike = bool(planned) and agree(typical_call(known.ns), typical_call(planned))
    return there if alike and sum(planned) >= CHOOSE.short_call_ns else known


def _long_enough(times: Sequence[float], size: int, mean: float, last: int) -> int:
    """The place in ``times``, between ``size`` and ``last``, from which on ``size`` calls can be timed together."""
    sums = np.convolve(times, np.ones(size), "valid")[size : last + 1] if len(times) >= 2 * size else np.zeros(0)
    if not sums.size or sums[0] >= CHOOSE.short_call_ns or sums.max() < CHOOSE.short_call_ns:
        return size
    far = np.where(sums >= CHOOSE.short_call_ns, np.abs(sums - size * mean), np.inf)
    return size + int(np.argmin(far))


def typical_call(times: Sequence[float]) -> float:
    """The ns that a call takes on average, of which many make a batch: most of the time can be in a few of many calls, and
    the median of all be nothing at all. The median, where each call takes another time."""
    return max(Window(1, tuple(times)).mean or float(np.median(times)), 1.0)


def ways_of(calls: Calls, size: int, enough: float) -> list[tuple[Calls, int]]:
    """The batches that may be made of ``calls``, the best known ones first, each longer than those before it."""
    found: list[tuple[Calls, int]] = []
    for part, length in (with_known_gaps(calls, size, enough), (replace(calls, between=None), size)):
        for one, count in (at_one_depth(part, length, enough), (part, length)):
            if not found or count > found[-1][1]:
                found.append((one, count))
    return found


def at_one_depth(calls: Calls, size: int, enough: float) -> tuple[Calls, int]:
    """``calls`` in batches of ``size``, or fewer of them that come from one depth of the stack, where these are at least
    three times ``enough``."""
    offset, length = calls.at_one_depth()
    if calls.from_one_depth or length // CHOOSE.verified_calls < max(2, enough):
        return calls, size
    size = length // CHOOSE.verified_calls
    return calls.part(calls.first + offset, CHOOSE.verified_calls * size), size


def with_known_gaps(calls: Calls, size: int, enough: float) -> tuple[Calls, int]:
    """``calls`` in batches of ``size``, or of fewer, where it is known between at least three times ``enough`` of them only
    what the program writes; without what is known where these are fewer."""
    known = calls.between.gaps if calls.between is not None else 0
    if known >= len(calls):
        return calls, size
    shorter = known // CHOOSE.verified_calls
    if shorter >= max(2, enough):
        return calls.part(calls.first, CHOOSE.verified_calls * shorter), shorter
    return replace(calls, between=None), size
