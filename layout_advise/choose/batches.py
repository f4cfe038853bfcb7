"""Calls too short to be timed one by one: many consecutive ones are recorded, replayed, compared and timed as a batch.

A batch replays the calls with the registers they had in the running program, on the snapshot's memory as the calls before
left it and as the program itself changes it between them (``docs/decisions/0068``). Where the batch takes another time
than the same calls in the running program, that is a doubt of what is measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from layout_advise.choose.batch_sizes import better_place, size_and_start, typical_call, ways_of
from layout_advise.choose.by_time import Window, window_at
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import IN_SITU_PROCESSES, PATIENCE_NS
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.errors import ProgramError
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.timing.canary import usual_ticks
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import undisturbed
from layout_advise.reports.model.hotspot import Original
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.process.stopped_program import Calm
from layout_advise.tracer.sampling.probe import Probe, probe
from layout_advise.tracer.snapshot.between import Room
from layout_advise.tracer.snapshot.recorded_calls import Calls, record_calls

NOT_ALONE = "some of them make calls of their own"
NOT_ALIKE = "the calls could not be recorded: they are not the same in each run"


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The ns of each call of a batch in one process, and the slowest of the canaries beside the first and the last of them
    (0: not known)."""

    ns: tuple[float, ...]
    canary: int = 0


@dataclass(frozen=True, slots=True)
class CallBatch:
    """``size`` calls are one batch; ``calls`` are those of all batches that are compared, the first of which is timed.
    ``each_ns`` are the undisturbed times of its calls in the running program."""

    size: int
    calls: Calls
    each_ns: tuple[float, ...]
    runs: tuple[TimedRun, ...] = ()
    """The times of these calls in each of the processes."""
    unknown: str = ""
    """Why it is not known what the program writes between the calls, or between further ones; empty where it is."""

    @property
    def firsts(self) -> tuple[int, ...]:
        """At which calls the batches begin, as many as there are whole ones, at most three."""
        count = min(CHOOSE.verified_calls, len(self.calls) // self.size)
        return tuple(self.calls.first + k * self.size for k in range(count))

    def at(self, call: int) -> Calls:
        """The calls of the batch that begins at ``call``."""
        return self.calls.part(call, self.size)

    def shortened(self) -> CallBatch | None:
        """The same with a quarter of the calls; None where these are too few, or too short to be timed."""
        size = self.size // 4
        if size < 2 or sum(self.each_ns[:size]) < CHOOSE.short_call_ns:
            return None
        calls = self.calls.part(self.calls.first, CHOOSE.verified_calls * size)
        runs = tuple(replace(run, ns=run.ns[:size]) for run in self.runs)
        return replace(self, size=size, calls=calls, each_ns=self.each_ns[:size], runs=runs)

    def outweighs(self, words: int) -> bool:
        """Tells whether to put so many words back between the calls would take about as long as the calls do, where these
        are long enough to be timed one by one instead."""
        return words > CHOOSE.most_put_words * sum(self.each_ns) and self.spread[1] >= CHOOSE.alone_call_ns

    @property
    def spread(self) -> tuple[float, float, float]:
        """10th percentile, median and 90th percentile of the calls' times in ns."""
        low, middle, high = np.percentile(self.each_ns, (10, 50, 90))
        return float(low), float(middle), float(high)


def too_short(profiled: Profiled, seen: Probe, chosen: ChosenCall) -> bool:
    """Tells whether the calls are to be timed as batches: short ones of one thread that make no calls of their own."""
    short = chosen.in_situ_ns is not None and chosen.in_situ_ns < CHOOSE.short_call_ns
    return short and can_be_batched(profiled, seen)


def can_be_batched(profiled: Profiled, seen: Probe) -> bool:
    """Tells whether the hotspot is a function that one thread calls often enough, and that does not call itself."""
    plain = profiled.nest is None and not profiled.threaded and not seen.recursive and seen.threads <= 1
    return plain and seen.calls >= 2 * CHOOSE.verified_calls


def may_be_learnt(original: Original) -> bool:
    """Tells whether the same call again and again is quicker than the program's calls: the processor learns which way the
    data makes its branches go (``docs/decisions/0035``)."""
    steady, in_situ = original.ns_steady, original.ns_in_situ
    return steady is not None and in_situ is not None and steady < in_situ <= CHOOSE.learnt_ns


def first_calls(settings: Settings, profiled: Profiled, stdin: Path | None, seen: Probe) -> Window:
    """The times of the first calls."""
    return window_at(settings, profiled, stdin, 1, seen.calls)


def plan_batch(
    settings: Settings,
    profiled: Profiled,
    stdin: Path | None,
    seen: Probe,
    chosen: ChosenCall,
    window: Window,
    least: int = 1,
) -> tuple[ChosenCall, CallBatch | str]:
    """The batches of a hotspot with short calls (of ``least`` calls) in ``window``, and ``chosen`` with the first of them:
    its ``in_situ_ns`` is then that of a whole batch. Instead of a batch the reason why there is none, as the end of a
    sentence."""
    if settings.backend not in ("auto", "clone"):
        return chosen, f"calls under {CHOOSE.short_call_ns / 1000:.0f} µs can be traced by the clone only"
    if settings.temporary:
        return chosen, "what converting around so short a call costs is not timed"
    typical = typical_call(window.ns) if window.ns else math.inf
    if least == 1 and typical < CHOOSE.short_call_ns:  # a call stopped at takes longer than it is short
        chosen = replace(chosen, in_situ_ns=typical)
    size, start = size_and_start(window.ns, seen.calls, settings.call, least, window.first)
    if size == 0:
        return chosen, too_quick(min(seen.calls, MAX_TIMED)) if window.ns else "no call of it was timed"
    try:
        if settings.call is None and not window.part(start, size):
            there = window_at(settings, profiled, stdin, start, seen.calls)
            window = better_place(window, there, size)
            start = window.first
        enough = max(least, CHOOSE.short_call_ns / typical)
        return _recorded(settings, profiled, stdin, chosen, size, start, enough, window, nested=seen.nested > 0)
    except ProgramError as error:
        return chosen, f"they could not be recorded: {error.line()}"


def _recorded(
    settings: Settings,
    profiled: Profiled,
    stdin: Path | None,
    chosen: ChosenCall,
    size: int,
    start: int,
    enough: float,
    window: Window,
    *,
    nested: bool = False,
) -> tuple[ChosenCall, CallBatch | str]:
    """The batches of ``size`` calls from call ``start`` on, recorded and timed; of fewer, where at least ``enough`` in a row
    come from one depth of the stack (what their callers keep there is then the program's own), or it is known between so
    many of them only what the program writes. Where these turn out too quick, longer ones without that. Where some make
    calls of their own (``nested``), only those from one depth, of which none is within another."""
    calls = record_calls(
        settings.command, profiled.entry, start, CHOOSE.verified_calls * size, stdin_path=stdin, timeout=settings.timeout,
        room=Room(CHOOSE.between_bytes, CHOOSE.between_seconds),
    )  # fmt: skip
    found: CallBatch | str = NOT_ALONE
    for part, length in ways_of(calls, size, enough):
        if nested and not part.from_one_depth:
            continue
        found = _timed(settings, profiled, stdin, part, length, window)
        if isinstance(found, CallBatch):
            unknown = calls.between.why if calls.between is not None else ""
            return _at(chosen, found), replace(found, unknown=unknown)
        if found == NOT_ALIKE:
            break
    return chosen, found


def _at(chosen: ChosenCall, batch: CallBatch) -> ChosenCall:
    """``chosen`` with the first call of the batch, and the time of a whole one."""
    times = batch.each_ns
    parts = [float(sum(part)) for part in np.array_split(times, CHOOSE.batch_parts)]
    spread = (max(parts) - min(parts)) / 2 / (sum(parts) / CHOOSE.batch_parts)
    return replace(chosen, call=batch.calls.first, in_situ_ns=sum(times), spread=spread)


def _timed(
    settings: Settings, profiled: Profiled, stdin: Path | None, calls: Calls, size: int, window: Window
) -> CallBatch | str:
    """Batches of these calls, timed; or why they are none."""
    runs = in_situ_runs(settings, profiled, stdin, calls.first, size, window)
    times = undisturbed_each(runs)
    if len(times) < size or len(calls) < size:
        return NOT_ALIKE
    return CallBatch(size, calls, times, runs) if sum(times) >= CHOOSE.short_call_ns else too_quick(size)


def too_quick(calls: int) -> str:
    """Why so many calls are no batch, as the end of a sentence."""
    return f"{calls:,} of its calls in a row take less than {CHOOSE.short_call_ns / 1000:.0f} µs"


def undisturbed_each(runs: Sequence[TimedRun], canary: int = 0) -> tuple[float, ...]:
    """Of each call the undisturbed time over the processes: over those that were not slowed, held against the fastest canary
    beside them and ``canary`` (0: not known), where these are several."""
    limit = TIMING.calm * fastest_of(runs, canary)
    calm = [run.ns for run in runs if run.canary <= limit]
    kept = calm if len(calm) >= CHOOSE.fewest_calm else [run.ns for run in runs]
    return tuple(undisturbed(list(times)) for times in zip(*kept, strict=True))


def fastest_of(runs: Sequence[TimedRun], canary: int = 0) -> int:
    """The fastest usual canary beside the runs, or ``canary`` where that is faster; 0 where none is known."""
    return min((c for c in (canary, usual_ticks([run.canary for run in runs])) if c), default=0)


def look_again(settings: Settings, profiled: Profiled, stdin: Path | None, batch: CallBatch, canary: int = 0) -> float:
    """The time of the batch in the running program, from further processes too, which wait for a processor that is as fast
    as where ``canary`` was measured."""
    first = batch.calls.first
    again = _further_runs(settings, profiled, stdin, first, batch.size, batch.runs, canary, CHOOSE.second_look_seconds)
    return sum(undisturbed_each((*batch.runs, *again), canary))


def in_situ_runs(
    settings: Settings, profiled: Profiled, stdin: Path | None, first: int, size: int, known: Window | None = None
) -> tuple[TimedRun, ...]:
    """The time in ns of each call of the batch in the running program, in several processes; empty where it has fewer. The
    process that ``known`` is of is one of them, where it has all of these calls."""
    seen = known.part(first, size) if known is not None else ()
    runs = (TimedRun(seen),) if seen else ()
    again = _further_runs(settings, profiled, stdin, first, size, runs, 0, CHOOSE.in_situ_seconds)
    return (*runs, *again) if again else ()


def _further_runs(
    settings: Settings,
    profiled: Profiled,
    stdin: Path | None,
    first: int,
    size: int,
    known: tuple[TimedRun, ...],
    canary: int,
    seconds: float,
) -> tuple[TimedRun, ...]:
    """Further processes beside those known, each of which may wait for a calm processor; empty where one has fewer calls."""
    least, most = max(1, IN_SITU_PROCESSES[0] - len(known)), IN_SITU_PROCESSES[1]
    runs: list[TimedRun] = []
    begun = time.monotonic()
    while len(runs) < least or (len(runs) < most and time.monotonic() - begun < seconds):
        calm = Calm(int(TIMING.calm * fastest_of((*known, *runs), canary)), PATIENCE_NS)
        again = probe(
            settings.command, profiled.entry, stdin_path=stdin, timeout=settings.timeout, first=first, timed=size,
            max_calls=first + size - 1, quick=True, calm=calm,
        )  # fmt: skip
        if len(again.quick_ns) < size:
            return ()
        runs.append(TimedRun(again.quick_ns, again.canary))
    return tuple(runs)


def obstacle(lifted: Lifted) -> str | None:
    """The argument or result of the lifted code that is not recorded with the calls, or None."""
    for live in lifted.live_ins:
        place = live.location
        if isinstance(place, Lane) and place.number <= 7 and place.index > 3:  # beyond the eighth there are no arguments
            return f"the calls take an argument in vector register {place.number}, of 64 bytes, that is not recorded"
    for out in lifted.live_outs:
        place = out.location
        if (isinstance(place, Gpr) and place.number not in (0, 2)) or (
            isinstance(place, Lane) and (place.number > 1 or place.index > 1)
        ):
            return "the calls return something in a register that is not compared"
    return None
