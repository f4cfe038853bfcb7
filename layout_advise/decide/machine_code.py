"""The gain of a layout by the original's machine code, which no compiler made anew: only addresses are re-indexed.

Its time holds what working out addresses takes, which a source in the layout need not do: the gain over the original is the
least that the layout gives. The same code with the layout unchanged shows what that takes; a gain without it is the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.decide.budget import Circumstances, with_doubts
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.requests import CodeTimes
from layout_advise.measure.measured import Doubt, Measured
from layout_advise.mockup.timing.ratios import places_of, wherever
from layout_advise.mockup.timing.variants import ORIGINAL, machine_code


def worth_a_look(candidates: Sequence[Measured]) -> tuple[str, ...]:
    """The layouts of ``candidates``, those first that may gain most; of what is packed machine code says nothing."""
    able = [c for c in candidates if not c.packed and c.net is None and c.code is None]
    ordered = sorted(able, key=lambda c: -(c.ceiling() or 0.0))
    return tuple(dict.fromkeys(c.layout for c in ordered))[: DECIDE.most_machine_code]


def with_code(results: Sequence[Measured], code: CodeTimes | None, around: Circumstances) -> tuple[Measured, ...]:
    """``results``, each with its layout's machine code, where that was timed."""
    if code is None:
        return tuple(results)
    return tuple(replace(one, code=_measured(one, code, around)) for one in results)


def _measured(one: Measured, code: CodeTimes, around: Circumstances) -> Measured | None:
    name, mode, timings = machine_code(one.layout), around.mode, code.timings
    twin = code.twins.get(name)
    if twin is None:
        return None
    mine, its = places_of(timings, name), places_of(timings, twin)
    speedup, over = wherever(timings, [ORIGINAL], mine, mode), wherever(timings, its, mine, mode)
    slow = wherever(timings, its, [ORIGINAL], mode)
    if speedup is None or over is None or slow is None:
        return None
    found = Measured(
        name, one.evidence, speedup, over, title=one.title, words=one.words, blocked=one.blocked, places=len(mine)
    )
    most, middle = (_without(a, b) for a, b in ((speedup.hi, slow.hi), (speedup.median, slow.median)))
    how = (
        "its own machine code with only addresses re-indexed, against the original and against the same with the layout "
        f"unchanged, where making addresses takes {max(0.0, slow.median - 1):.0%}; {speedup.restores} processes"
    )
    ends = max(speedup.hi, over.hi, most), max(speedup.median, over.median, middle)
    own = Doubt("machine", min(speedup.lo, over.lo), ends[0], how, ends[1])
    (found,) = with_doubts([found], timings, around)
    return replace(found, doubts=(own, *found.doubts))


def _without(speedup: float, slow: float) -> float:
    """The gain where both layouts take the time by which the unchanged one is ``slow`` less."""
    rest = 1 / speedup - max(0.0, slow - 1)
    return min(1 / rest, DECIDE.most_without * speedup) if rest > 0 else DECIDE.most_without * speedup
