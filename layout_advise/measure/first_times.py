"""The first times of everything that takes part, and the winner's times again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from layout_advise.measure.mode import Mode, mode_of
from layout_advise.measure.policy import MEASURE
from layout_advise.measure.setup import Bench, Contest
from layout_advise.mockup.timing.branch_training import as_in_program, unknown_part
from layout_advise.mockup.timing.plan import Timed
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, ORIGINAL, Variant
from layout_advise.tracer.process.stopped_program import Mode as TimedMode


@dataclass(frozen=True, slots=True)
class FirstTimes:
    """Everything timed once, at the calls of one kind. ``bench`` says how all further times are measured."""

    contest: Contest
    bench: Bench
    timings: Timings


def look_at_original(bench: Bench, in_situ_ns: float | None) -> tuple[Bench, bool]:
    """Times the original alone in a few processes: how much of its branches is not known in the running program, and whether
    it then takes as long in the snapshot as there."""
    look = bench.with_unknown(1.0) if bench.forgets else bench
    alone = look.measure((), "timing the original", MEASURE.look_restores)
    alone = alone.origin or alone
    unknown = unknown_part(alone, in_situ_ns, MEASURE.in_situ_tolerance) or 0.0
    bench = bench.with_unknown(unknown)
    return bench, mode_of(as_in_program(alone, unknown), bench.between_ns, in_situ_ns) is not None


def first_times(contest: Contest, bench: Bench, left_out: Mapping[Variant, str] = MappingProxyType({})) -> FirstTimes:
    """Times everything once but what is ``left_out``."""
    timings = bench.measure(contest.timed(), "measuring", left_out=left_out)
    return FirstTimes(contest, bench, replace(timings, lesser=bench.lesser))


def times_again(bench: Bench, built: Sequence[Timed], unrolled: bool, first: Timings, mode: Mode) -> Timings:
    """Times the winner and what it is compared with, built anew, in new restores; with the conversion around each call too.
    ``unrolled``: the identity that was not rerolled counts as the identity."""
    plan = bench.again if mode == "cold" or first.lesser else replace(bench.again, cold_calls=0)
    second = replace(bench, plan=plan).measure(built, "measuring the winner again", drop=False)
    known: dict[tuple[Variant, TimedMode], float] = {}
    for name in (ORIGINAL, IDENTITY):
        known |= {(name, mode): ns} if (ns := first.nanoseconds(name, mode)) else {}
    second = replace(second, lesser=first.lesser, between=first.between, known=known)
    return second.exchanged(IDENTITY, IDENTITY_UNROLLED) if unrolled else second
