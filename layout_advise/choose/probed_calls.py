"""The times of the hotspot's calls in the running program, and the call to stop at."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from layout_advise.choose.calls import ChosenCall, choose_call, preferred, undisturbed_calls
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.mockup.timing.canary import usual_ticks
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import median_of
from layout_advise.tracer.process.stopped_program import Calm
from layout_advise.tracer.sampling.probe import Probe, probe

IN_SITU_PROCESSES = (2, 16)
"""At least and at most so many further processes are timed, those after the first while ``CHOOSE.in_situ_seconds`` last."""
PATIENCE_NS = 1_000_000_000
"""So long each of them may wait before the calls that are timed for the processor not to be slowed."""


def probe_calls(settings: Settings, profiled: Profiled, stdin: Path | None) -> tuple[Probe, ChosenCall]:
    """Run again, count and time the calls of the hotspot, and choose the one to stop at.

    Its time in the running program is taken in further processes too, which end right after: what disturbs one of them does
    not disturb all. Programs that take long to get there are started less often, and so are those whose calls are far too
    short to be timed one by one: nothing is decided by such times.
    """
    seen = probe(settings.command, profiled.entry, stdin_path=stdin, timeout=settings.timeout)
    times = call_times(profiled, seen)
    chosen = choose_call(times, seen.calls, settings.call)
    short = is_far_too_short(times)
    if settings.call is None and not short and chosen.call != preferred(seen.calls) and len(times) > 1:
        # either the program's calls differ, or a disturbed phase lay over the first ones: a second look tells
        times = [*_first_calls(settings, profiled, stdin, times), *times[CHOOSE.latest_call :]]
        chosen = choose_call(times[: CHOOSE.latest_call], seen.calls, None)
    if not times:
        return seen, chosen
    last = chosen.call + CHOOSE.in_situ_calls - 1
    canary = usual_ticks([s.canary for s in seen.times])
    beside = tuple(s.canary for s in seen.times[chosen.call - 1 : last])
    window = tuple(times[chosen.call - 1 : last])
    between = [s.between_ns for s in seen.times if s.between_ns]
    chosen = replace(
        chosen,
        windows=(window,) if window else (),  # none: the call comes after those that are timed when all are counted
        canaries=(beside,) if window else (),
        canary=canary,
        between_ns=median_of(between) if between else None,
    )
    return seen, look_again(settings, profiled, stdin, chosen, 0.0 if short else CHOOSE.in_situ_seconds)


def is_far_too_short(times: Sequence[float]) -> bool:
    """Tells whether calls of these ns are too short to be timed one by one, whatever a second look would find."""
    return bool(times) and median_of(times) * CHOOSE.far < CHOOSE.short_call_ns


def _first_calls(settings: Settings, profiled: Profiled, stdin: Path | None, times: list[float]) -> list[float]:
    """The first calls as undisturbed as in two further processes."""
    processes = [times[: CHOOSE.latest_call]]
    for _ in range(2):
        again = probe(
            settings.command,
            profiled.entry,
            stdin_path=stdin,
            timeout=settings.timeout,
            timed=CHOOSE.latest_call,
            max_calls=CHOOSE.latest_call,
        )
        processes.append(call_times(profiled, again))
    return undisturbed_calls(processes)


def look_again(
    settings: Settings, profiled: Profiled, stdin: Path | None, chosen: ChosenCall, seconds: float = CHOOSE.in_situ_seconds
) -> ChosenCall:
    """Time the calls in the running program again, in further processes, together with those that were timed before."""
    windows, canaries, canary = list(chosen.windows), list(chosen.canaries), chosen.canary
    last = chosen.call + chosen.timed_calls - 1
    begun, known = time.monotonic(), len(windows)
    while len(windows) < known + IN_SITU_PROCESSES[0] or (
        len(windows) < known + IN_SITU_PROCESSES[1] and time.monotonic() - begun < seconds
    ):
        again = probe(
            settings.command,
            profiled.entry,
            stdin_path=stdin,
            timeout=settings.timeout,
            first=chosen.call,
            timed=chosen.timed_calls,
            max_calls=last,
            calm=Calm(int(TIMING.calm * canary), PATIENCE_NS),
        )
        if len(again.times) < (len(windows[0]) if windows else 1):
            break
        windows.append(tuple(call_times(profiled, again)))
        canaries.append(tuple(s.canary for s in again.times))
        canary = min((c for c in (canary, usual_ticks([c for one in canaries for c in one])) if c), default=0)
    return replace(chosen, canary=canary).timed(windows, canaries)


def call_times(profiled: Profiled, seen: Probe) -> list[float]:
    """ns of the calls: CPU time of the thread, wall time where there is a team of them."""
    return [sample.wall_ns if profiled.threaded else sample.cpu_ns for sample in seen.times]
