"""Advice about the loop: what the unchanged layout gains when it is built or written in another way.

It stands beside the verdict about the layout, with its own interval: a user who can have 4 times for a pragma is told so,
whatever layouts add to it. A mock-up has the functions that the region calls in it, and what that gains is told as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from layout_advise.decide.decision import Decision
from layout_advise.decide.gain_words import times
from layout_advise.decide.policy import DECIDE
from layout_advise.mockup.ir.lifted import Lifted, OpaqueCall, everything
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    IDENTITY,
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
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.symbols import bare_name, demangle
from layout_advise.tracer.trace.trace import Trace

NAMED = 3
"""So many of the functions are named."""

HOW = {
    SCALAR: "compile it without vector instructions (-fno-tree-vectorize)",
    IDENTITY_BLOCKS: "cut its loop into blocks",
    IDENTITY_SIMD: "write its independent loops for SIMD (`#pragma omp simd`; gcc: -fopenmp-simd)",
    IDENTITY_RESTRICT: "declare its pointers `restrict`",
}


def compiled_in(region: Region, trace: Trace, lifted: Lifted) -> tuple[str, ...]:
    """The functions that the region calls whose code its mock-ups have, of those that the traced call went through."""
    ran = {reference.pc for reference, stream in zip(trace.references, trace.streams, strict=True) if stream is not None}
    kept = {item.function for item in everything(lifted.body) if isinstance(item, OpaqueCall)}
    called = (one for one in functions_of(region) if one is not region and one.symbol not in kept)
    names = [one.symbol for one in called if any(map(one.contains, ran))]
    readable = demangle(names)
    return tuple(dict.fromkeys(bare_name(readable[name]) for name in names))


def loop_advice(decision: Decision, bound: float, called: Sequence[str] = ()) -> LoopAdvice | None:
    """The form of the unchanged layout that gains most over the original, where it gains more than ``bound`` in all times
    there are, and over the unchanged mock-up, too; None where none does. Where the region makes calls of ``called``, which
    the mock-ups have in them, that is a part of the form, and is advised alone where it gains alone."""
    measured = [t for t in (decision.first, decision.again or decision.ablation) if t is not None]
    plain = _everywhere(measured, ORIGINAL, IDENTITY, decision)
    inlined = bool(called) and plain is not None and plain.lo > DECIDE.least_inlined
    found: dict[Variant, Ratio] = {}
    for form in WRITTEN:
        whole, own = (_everywhere(measured, base, form, decision) for base in (ORIGINAL, IDENTITY))
        if whole is not None and own is not None and min(whole.lo, own.lo) > bound:
            found[form] = whole if inlined or own.median >= whole.median else replace(own, hi=max(own.hi, whole.hi))
    best = max(found, key=lambda form: found[form].median, default=None)
    put = _put(called)
    if best is not None:
        text = f"{HOW[best]}, and {put}" if called else HOW[best]
        return LoopAdvice(str(best), _interval(found[best]), text)
    if inlined and plain is not None:
        return LoopAdvice(str(IDENTITY), _interval(plain), put)
    return None


def _put(called: Sequence[str]) -> str:
    names = [f"`{name}`" for name in called[:NAMED]]
    names += [f"{len(called) - NAMED} more"] if len(called) > NAMED else []
    several = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    return f"compile {several} into it (`static inline`, or -flto where another file has it)"


def _interval(gain: Ratio) -> Interval:
    return Interval(gain.median, gain.lo, gain.hi, gain.restores)


def _everywhere(measured: Sequence[Timings], base: Variant, form: Variant, decision: Decision) -> Ratio | None:
    """The gain of a form over ``base``: the hull of all times of it."""
    ratios = [r for t in measured if (r := t.ratio(base, form, decision.mode or "steady")) is not None]
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
