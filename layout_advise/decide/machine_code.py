"""The gain of a layout by the original's machine code, which no compiler made anew: only addresses are re-indexed.

Its time holds what working out addresses takes, which a source in the layout need not do: the gain over the original is the
least that the layout gives. With that work done twice it takes longer by about what the work takes once; and the unchanged
layout in memory of its own does as much. The gain without it is at most what either leaves.
Beside the original stands its code with nothing moved, at other places: what it gains by these is not the layout's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from layout_advise.decide.budget import Circumstances, with_doubts
from layout_advise.decide.live import but_for_program
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import VerdictContext, reaching
from layout_advise.measure.measured import Doubt, Measured
from layout_advise.mockup.timing.ratios import over_all_places, places_of
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    MACHINE_CODE,
    ORIGINAL,
    machine_code,
    machine_code_moved,
    machine_code_twice,
)


def worth_a_look(results: Iterable[Measured], context: VerdictContext) -> tuple[str, ...]:
    """The layouts that may gain, those first that may gain most: not those that only the running program can tell of, nor
    what is packed, of which machine code says nothing."""
    able = [c for c in results if not c.packed and c.net is None and c.code is None]
    near = [c for c in reaching(able, context) if reaching([but_for_program(c)], context)]
    ordered = sorted(near, key=lambda c: -(c.ceiling() or 0.0))
    return tuple(dict.fromkeys(c.layout for c in ordered))[: DECIDE.most_machine_code]


def with_code(results: Sequence[Measured], code: Timings | None, around: Circumstances) -> tuple[Measured, ...]:
    """``results``, each with its layout's machine code, where that was timed."""
    if code is None:
        return tuple(results)
    return tuple(replace(one, code=_measured(one, code, around)) for one in results)


def may_tell(one: Measured) -> bool:
    """Tells whether machine code leaves less open of a layout than its mock-up does, as far as noise does not decide it."""
    code, own = one.code, replace(one, code=None)
    most, top = own.ceiling(), code.likely_ceiling() if code is not None else None
    if code is None or code.speedup is None or one.packed or not most or not top:
        return False
    return own.floor() <= 0 or top / code.speedup.median < most / own.floor()


def _measured(one: Measured, code: Timings, around: Circumstances) -> Measured | None:
    name, mode = machine_code(one.layout), around.mode
    mine, doubled = places_of(code, name), places_of(code, machine_code_twice(one.layout))
    gains = [over_all_places(code, over, mine, mode) for over in ([ORIGINAL], places_of(code, MACHINE_CODE))]
    longer, known = over_all_places(code, doubled, mine, mode), [r for r in gains if r is not None]
    if len(known) < len(gains) or longer is None:
        return None
    least = Ratio(
        min(r.median for r in known), min(r.lo for r in known), max(r.hi for r in known), min(r.restores for r in known)
    )
    found = Measured(
        name, one.evidence, least, None, title=one.title, words=one.words, blocked=one.blocked, places=len(mine)
    )
    how = (
        "the same instructions, only at other addresses, against the original where it is and elsewhere, and without "
        f"what making addresses takes: done twice, {max(0.0, longer.median - 1):.0%} more; {least.restores} processes"
    )
    hi, middle = _without(least.hi, longer.hi), _without(least.median, longer.median)
    moved = over_all_places(code, places_of(code, machine_code_moved(one.structures)), mine, mode)
    if moved is not None and moved.hi > hi:
        how = f"{how}; against the unchanged layout whose addresses are made in the same way"
        hi, middle = moved.hi, max(middle, moved.median)
    own = Doubt("machine", least.lo, hi, how, middle)
    (found,) = with_doubts([found], code, around)
    return replace(found, doubts=(own, *found.doubts))


def _without(speedup: float, longer: float) -> float:
    """The gain without work that, done twice, makes the time ``longer`` by this factor."""
    rest = 2.0 - max(1.0, longer)
    return speedup * min(1 / rest, DECIDE.most_without) if rest > 0 else speedup * DECIDE.most_without
