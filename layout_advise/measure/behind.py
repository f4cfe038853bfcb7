"""What a build leaves open beside one that surely takes less time (``docs/decisions/0117``, 149).

Builds that are dropped have the times of few processes, and one of these that others disturbed leaves a gain open of which
all of them say that the other build has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.measure.measured import Doubt, Measured, TermName
from layout_advise.measure.mode import Mode
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.ratios import places_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import Variant

_OF_TIMES: tuple[TermName, ...] = ("caches", "program", "apart", "counting", "put-back", "promises")
"""Doubts about a build's own times, which another build's bound where that was faster each time."""


def cut_by_faster(one: Measured, others: Sequence[Measured], timings: Timings, modes: Sequence[Mode]) -> Measured:
    """``one`` with upper ends that are no higher than those of the builds that are faster with the caches of each of
    ``modes``: over the same unchanged build each by itself, of times all together."""
    if one.ceiling() is None or one.net is not None:
        return one
    faster = [o for o in others if o.net is None and o.ceiling() is not None and _is_behind(one, o, timings, modes)]
    cut = _over_unchanged(one, [o for o in faster if _is_behind_anywhere(one, o, timings, modes)])
    own = cut.ceiling()
    lower = [(top, o) for o in faster if (top := o.ceiling()) is not None and own is not None and top < own]
    if not lower:
        return cut
    top, best = min(lower, key=lambda pair: pair[0])
    return cut.at_most(top, best.likely_ceiling() or top, _OF_TIMES)


def _is_behind(one: Measured, other: Measured, timings: Timings, modes: Sequence[Mode]) -> bool:
    return all(takes_longer(one.name, other.name, timings, mode) for mode in modes)


def takes_longer(one: Variant, other: Variant, timings: Timings, mode: Mode, fewest: int = TIMING.drop_after) -> bool:
    """Tells whether ``one`` took longer in each process that timed both, of at least so many; or in most, by the interval of
    its times over the other's: of many processes some are disturbed."""
    each = timings.per_restore(one, other, mode)
    if len(each) < fewest:
        return False
    gain = timings.in_mode(other, one, mode) if len(each) >= TIMING.fewest_pairs else None
    return min(each) > 1.0 or (gain is not None and gain.hi < 1.0)


def _is_behind_anywhere(one: Measured, other: Measured, timings: Timings, modes: Sequence[Mode]) -> bool:
    """Tells whether it takes longer at each place of its code than the other one moved as far: gains over the unchanged
    layout hold all of them."""
    places = list(zip(places_of(timings, one.name), places_of(timings, other.name), strict=False))
    each = [takes_longer(mine, its, timings, mode, 1) for mine, its in places for mode in modes]
    return one.places <= other.places and all(each)


def _over_unchanged(one: Measured, faster: Sequence[Measured]) -> Measured:
    """``one`` with what it may gain over a build of the unchanged layout cut to what those may that are held against the
    same build."""
    over = one.over_identity
    ends = [o.over_identity.hi for o in faster if o.over_identity is not None and o.form == one.form]
    if over is not None and ends:
        over = replace(over, hi=max(over.median, min(over.hi, *ends)))
    alike = [_reached(o) for o in faster if o.translated == one.translated]
    doubts = tuple(_cut(doubt, min(alike)) if doubt.name == "indices" and alike else doubt for doubt in one.doubts)
    return replace(one, over_identity=over, doubts=doubts)


def _reached(one: Measured) -> float:
    """The greatest gain over the unchanged layout that is reached in the same way."""
    return max(d.hi for d in one.budget if d.name in ("processes", "live", "indices"))


def _cut(doubt: Doubt, most: float) -> Doubt:
    return replace(doubt, hi=max(min(doubt.hi, most), doubt.lo, doubt.middle or 0.0))
