"""The lines that a check prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layout_advise.guard.again import Again
from layout_advise.guard.check import MovedMember
from layout_advise.guard.guard_file import Guard
from layout_advise.mockup.timing.statistics import undisturbed
from layout_advise.reports.words.quantities import nanoseconds


def check_lines(guard: Guard, program: str, moves: Sequence[MovedMember]) -> Iterator[str]:
    """The outcome for the layout: one line, or one a difference and what rests on it."""
    if not moves:
        yield f"{program} has the guarded layout: {guard.names}"
        return
    for one in moves:
        yield f"{one.what} {one.how}"
    for region in guard.region:
        gain = "" if region.gain is None else f", {region.gain[0]:.3g} times as fast as {region.over}"
        yield f"  {region.name} rests on it{gain}: {'; '.join(region.uses)}"


def again_lines(found: Sequence[Again]) -> Iterator[str]:
    """One line a region that was timed."""
    for one in found:
        if one.slower is not None:
            ratio = f"{one.slower.median:.2f} ({one.slower.lo:.2f}–{one.slower.hi:.2f})"
            verdict = "slower" if one.alarm else "not slower"
            yield f"{one.region}: {nanoseconds(undisturbed(one.ns))} a call, {ratio} times the guard's: {verdict}"
        elif one.ns:
            yield f"{one.region}: {nanoseconds(undisturbed(one.ns))} a call; not compared: {one.why}"
        else:
            yield f"{one.region}: not timed: {one.why}"
