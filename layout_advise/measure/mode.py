"""The choice whether steady or cold times stand for the calls in the running program."""

from __future__ import annotations

import math
from typing import Literal, get_args

from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.ratios import noise_floor
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import ORIGINAL
from layout_advise.tracer.process.stopped_program import Mode as TimedMode

Mode = Literal["steady", "cold"]


def choose_mode(
    in_situ: float | None, steady: float | None, cold: float | None, between: float | None = None, noise: float = 1.0
) -> Mode | None:
    """Whichever of steady and cold is nearer to the running program; None when neither is within 15 %.

    A hotspot whose data no cache holds takes the same time in both, but one with less data does not: what passes
    ``between`` two calls in the program decides, if that is known (``docs/decisions/0034``): steady, where nothing does and
    it is near; cold, where both are near and alike. They are near where ``noise``, the original's time over its own, makes
    no difference of it.
    """
    if not in_situ:
        return None
    errors: dict[Mode, float] = {}
    if steady:
        errors["steady"] = abs(steady / in_situ - 1)
    if cold:
        errors["cold"] = abs(cold / in_situ - 1)
    if not errors:
        return None
    near = max(MEASURE.in_situ_tolerance, min(noise - 1, MEASURE.noisy_tolerance))
    if between is not None and errors.get("steady", math.inf) <= near:
        if between <= MEASURE.back_to_back * in_situ:
            return "steady"
        if steady and cold and errors["cold"] <= near and abs(cold / steady - 1) <= MEASURE.alike:
            return "cold"
    best = min(errors, key=lambda mode: errors[mode])
    return best if errors[best] <= MEASURE.in_situ_tolerance else None


def mode_of(timings: Timings, between_ns: float | None, in_situ_ns: float | None) -> Mode | None:
    """The mode in which the original's times agree with the running program's; None where none does. The calls of a batch
    also agree where they take as long there as they do one by one, or less: they are timed one by one in the program."""
    times = timings.nanoseconds(ORIGINAL), timings.nanoseconds(ORIGINAL, "cold")
    found = choose_mode(in_situ_ns, *times, between_ns, noise_floor(timings)[1])
    return "steady" if found is None and is_apart(timings, in_situ_ns) else found


def is_apart(timings: Timings, in_situ_ns: float | None) -> bool:
    """Tells whether a batch takes longer in the running program than repeated, and up to as long as its calls do one by one
    (``docs/decisions/0125``)."""
    repeated = timings.origin or timings  # how far calls overlap is open also where branches explain the time
    steady, apart = repeated.nanoseconds(ORIGINAL), repeated.nanoseconds(ORIGINAL, "apart")
    if not steady or not apart or not in_situ_ns or in_situ_ns <= (1 + MEASURE.in_situ_tolerance) * steady:
        return False
    return in_situ_ns <= (1 + MEASURE.in_situ_tolerance) * apart


def times_of_original(timings: Timings | None) -> list[float]:
    """The original's ns in the snapshot, with warm and with flushed caches, and with a batch's calls one by one, as far as
    that was timed."""
    modes: tuple[TimedMode, ...] = (*get_args(Mode), "apart")
    return [ns for mode in modes if timings and (ns := timings.nanoseconds(ORIGINAL, mode))]


def lies_between(timings: Timings, in_situ_ns: float | None) -> bool:
    """Tells whether a call in the running program takes longer than with warm caches and less than with flushed ones."""
    steady, cold = timings.nanoseconds(ORIGINAL), timings.nanoseconds(ORIGINAL, "cold")
    return bool(steady and cold and in_situ_ns and steady < in_situ_ns < cold)
