"""Advice about the loop: what the unchanged layout gains when it is built or written in another way.

It stands beside the verdict about the layout, with its own interval: a user who can have 4 times for a pragma is told so,
whatever layouts add to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from layout_advise.decide.decision import Decision
from layout_advise.decide.gain_words import times
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    IDENTITY_BLOCKS,
    IDENTITY_RESTRICT,
    IDENTITY_SIMD,
    ORIGINAL,
    SCALAR,
    WRITTEN,
    Variant,
)
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import LoopAdvice, Verdict

HOW = {
    SCALAR: "compile it without vector instructions (-fno-tree-vectorize)",
    IDENTITY_BLOCKS: "cut its loop into blocks",
    IDENTITY_SIMD: "write its independent loops for SIMD (`#pragma omp simd`; gcc: -fopenmp-simd)",
    IDENTITY_RESTRICT: "declare its pointers `restrict`",
}


def loop_advice(decision: Decision, bound: float) -> LoopAdvice | None:
    """The form of the unchanged layout that gains most over the original, where it gains more than ``bound`` in all times
    there are; None where none does."""
    measured = [t for t in (decision.first, decision.again or decision.ablation) if t is not None]
    found = {form: ratio for form in WRITTEN if (ratio := _everywhere(measured, form, decision)) is not None}
    best = max(found, key=lambda form: found[form].median, default=None)
    if best is None or found[best].lo <= bound:
        return None
    gain = found[best]
    return LoopAdvice(str(best), Interval(gain.median, gain.lo, gain.hi, gain.restores), HOW[best])


def _everywhere(measured: Sequence[Timings], form: Variant, decision: Decision) -> Ratio | None:
    """The gain of a form: the hull of all times of it."""
    ratios = [r for t in measured if (r := t.ratio(ORIGINAL, form, decision.mode or "steady")) is not None]
    if not ratios:
        return None
    first = ratios[0]
    return Ratio(first.median, min(r.lo for r in ratios), max(r.hi for r in ratios), first.restores)


def with_loop(verdict: Verdict, advice: LoopAdvice | None, where: str) -> Verdict:
    """``verdict`` with the advice about the loop at ``where``; its sentence first, unless a change of layout is advised,
    whose gain already tells which part is the loop's."""
    if advice is None:
        return verdict
    gain = advice.gain
    said = f"{where}: {advice.text}, {times(gain.median)} times as fast ({times(gain.lo)} to {times(gain.hi)})."
    if verdict.action == "change":
        return msgspec.structs.replace(verdict, loop=advice)
    head = "Keep the layout; change the loop" if verdict.action == "keep" else "Change the loop"
    rest = verdict.text if verdict.action == "undecided" else verdict.text.removeprefix("Keep it: ")
    rest = rest.replace("Undecided:", "The layout on top of that is undecided:", 1)
    rest = rest if verdict.action == "undecided" else f"Of layouts on top of that, {rest}"
    return msgspec.structs.replace(verdict, text=f"{head} in {said} {rest}", loop=advice)
