"""The kind of change that pays: a permanent layout, one that is converted to for many calls, or one for each call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from layout_advise.decide.decision import Decision
from layout_advise.decide.gain_words import times
from layout_advise.decide.policy import DECIDE
from layout_advise.mockup.timing.ratios import noise_floor
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.quantities import listing

UseKind = Literal["permanent", "temporary"]


@dataclass(frozen=True, slots=True)
class Use:
    """``net`` is the speedup with the data converted before each call and back after it, as timed; ``break_even`` after how
    many calls one conversion there and back is paid back; ``calls`` how often the run calls the hotspot. ``others``: the
    functions that were seen to use the data between calls; empty where there are none, None where that is not known."""

    net: Ratio | None
    break_even: Ratio | None
    calls: int
    bound: float
    others: tuple[str, ...] | None = None

    @property
    def kind(self) -> UseKind | None:
        """``temporary`` where converting around each call still is a gain; None where that was not measured."""
        if self.net is None:
            return None
        return "temporary" if self.net.lo > self.bound else "permanent"

    @property
    def pays_from(self) -> int | None:
        """Calls in a row from which on one conversion there and back pays; None: never, or not known."""
        return None if self.break_even is None else max(1, math.ceil(self.break_even.median))


def with_use(verdict: Verdict, use: Use) -> Verdict:
    """``verdict``, where it is for a change, with the kind of change that pays and a sentence about it."""
    if verdict.action != "change" or use.kind is None or use.net is None:
        return verdict
    return msgspec.structs.replace(verdict, use=use.kind, text=f"{verdict.text} {sentence(use)}{_rest(use)}")


def sentence(use: Use) -> str:
    """``Make it permanent: ...`` or ``A temporary view is enough: ...``."""
    assert use.net is not None
    around = f"converted before each call and back after it, the hotspot runs {times(use.net.median)} times as fast as now"
    if use.kind == "temporary":
        least = f"(at least {times(use.net.lo)})"
        return f"A temporary copy pays too: {around} {least}, which leaves the rest of the program as it is."
    if use.net.hi >= 1.0:
        span = f"({times(use.net.lo)} to {times(use.net.hi)})"
        return f"Converting around each call is not shown to pay: {around} {span}. {_once(use)}"
    return f"Do not convert around each call: {around}. {_once(use)}"


def _rest(use: Use) -> str:
    """A sentence on the rest of the program: whether calls follow each other without a use in between."""
    if use.others is None:
        return ""
    if not use.others:
        return (
            " Nothing else was seen to touch the data between calls (its ends, which share a page with other data, cannot "
            "be watched); where that is so, one conversion lasts over many."
        )
    return (
        f" Between calls the data is also used by {listing(use.others)}: that changes with it, or needs it converted back."
    )


def _once(use: Use) -> str:
    """The advice instead."""
    start = use.pays_from
    if start is None:
        return "Store it so for good."
    if start == 1:
        return "Store it so for good."
    many = f"a conversion there and back pays from {start} calls in a row on"
    return f"Store it so for good, or convert once for many calls: {many}{_enough(start, use.calls)}."


def _enough(start: int, calls: int) -> str:
    return f", more than the {calls} of this run" if calls < start else ""


def use_of(decision: Decision, calls: int, others: tuple[str, ...] | None) -> Use:
    """Returns what is known of converting to the winner's layout instead of changing the program, which calls the hotspot
    so often. ``others`` are the functions that use the data between calls, where that is known."""
    timings, name = decision.again, decision.winner
    if timings is None or name is None:
        return Use(None, None, calls, 1.0)
    mode = decision.mode or "steady"
    bound = max(noise_floor(timings, mode)[1], DECIDE.smallest_gain(decision.snapshot))
    return Use(timings.net(name, mode), timings.break_even(name, mode), calls, bound, others)
