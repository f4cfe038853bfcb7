"""What is studied of a hotspot with short calls: many of them as a batch, or one that is long enough, where the time is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from layout_advise.choose.batches import CallBatch, first_calls, plan_batch, too_quick
from layout_advise.choose.by_time import (
    Window,
    agree,
    mean_by_samples,
    nearest,
    share_from,
    typical_calls,
    typical_ns,
    windows_of,
)
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import look_again
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.sampling.probe import Probe


def plan_short_calls(
    settings: Settings, profiled: Profiled, stdin: Path | None, seen: Probe, chosen: ChosenCall
) -> tuple[ChosenCall, CallBatch | str | None]:
    """The call to stop at and the batch that begins there, or why there is none, as a sentence's end. Where the first calls
    are not those in which the samples fell, the whole run is looked at: None for a call of it that is long enough to be
    timed by itself, where half of the time is in such calls, else a batch of calls that take as long as all on average.

    Where as many calls as can be timed together are too quick on average, the run is not gone through for others: with half
    of the time in long ones, fewer than one in two windows would hold one of these."""
    mean = mean_by_samples(profiled, seen.calls)
    if settings.call is None and mean * MAX_TIMED < CHOOSE.short_call_ns:
        return chosen, too_quick(min(seen.calls, MAX_TIMED))
    window = first_calls(settings, profiled, stdin, seen)
    if settings.call is None and window.ns and not agree(window.mean, mean):
        windows = windows_of(settings, profiled, stdin, seen.calls, window, mean)
        if typical_ns(windows) >= CHOOSE.short_call_ns:
            one = _long_call(settings, profiled, stdin, chosen, windows)
            if one is not None:
                return one, None
        chosen = replace(chosen, looked=windows)
        window = nearest(windows, mean)
    return plan_batch(settings, profiled, stdin, seen, chosen, window)


def long_call(
    settings: Settings, profiled: Profiled, stdin: Path | None, seen: Probe, chosen: ChosenCall
) -> ChosenCall | None:
    """A call that is long enough to be timed by itself, of those that are; None where they have too little of the time."""
    if settings.call is not None:
        return None
    windows = chosen.looked
    if not windows:
        windows = windows_of(settings, profiled, stdin, seen.calls, first_calls(settings, profiled, stdin, seen))
    if share_from(windows, CHOOSE.short_call_ns) < CHOOSE.least_kind_share:
        return None
    return _long_call(settings, profiled, stdin, chosen, windows)


def _long_call(
    settings: Settings, profiled: Profiled, stdin: Path | None, chosen: ChosenCall, windows: tuple[Window, ...]
) -> ChosenCall | None:
    """The typical one among the calls that can be timed by themselves, timed; None where it takes less time after all."""
    found = typical_calls(windows, CHOOSE.short_call_ns, CHOOSE.nearby, CHOOSE.verified_calls)
    if not found:
        return None
    fresh = replace(chosen, call=found[0], alike=found, windows=(), canaries=(), between_ns=None)
    timed = look_again(settings, profiled, stdin, fresh)
    return timed if timed.windows and (timed.in_situ_ns or 0.0) >= CHOOSE.short_call_ns else None
