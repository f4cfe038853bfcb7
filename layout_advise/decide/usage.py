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
    span = f"({times(use.net.lo)} to {times(use.net.hi)})"
    if use.kind == "temporary":
        gain = f"{times(use.net.median)} times as fast {span}"
        return f"A temporary copy pays too: converting around every call, {gain}. The rest of the program stays as it is."
    if use.net.hi >= 1.0:
        gain = f"{times(use.net.median)} times as fast {span}"
        return f"Converting around every call is not shown to pay: {gain}. {_once(use)}"
    return f"Converting around every call makes it {times(1 / use.net.median)} times slower. {_once(use)}"


def _rest(use: Use) -> str:
    """A sentence on the rest of the program: whether calls follow each other without a use in between."""
    if use.others is None:
        return ""
    if not use.others:
        return " No other accesses were observed between calls (partial end pages unmonitored)."
    return f" Between calls {listing(use.others)} also used the data: change that too, or convert back for it."


def _once(use: Use) -> str:
    """The advice instead."""
    start = use.pays_from
    if start is None:
        return "Change it permanently."
    if start == 1:
        return "Change it permanently."
    many = f"that pays off after {start} consecutive calls"
    return f"Change it permanently, or convert once: {many}{_enough(start, use.calls)}."


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
