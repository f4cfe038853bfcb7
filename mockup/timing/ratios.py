"""What follows from the times: each variant's speedup, which unchanged layout it is held against, and the noise.

An interval holds what comes out at any place at which code was timed (``docs/decisions/0037``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import Ratio, greatest_mean, mean_at_most
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    CONTROLS,
    IDENTITY,
    IDENTITY_BLOCKS,
    IDENTITY_RESTRICT,
    IDENTITY_SIMD,
    IDENTITY_UNROLLED,
    ORIGINAL,
    PLACED,
    SCALAR,
    SHADOW,
    Variant,
)
from layout_advise.tracer.process.stopped_program import Mode


@dataclass(frozen=True, slots=True)
class Ratios:
    """Per variant, against the original and against the identity mock-up, one value per restore."""

    steady: Ratio
    steady_over_identity: Ratio
    cold: Ratio | None
    cold_over_identity: Ratio | None


def summarise(timings: Timings, name: Variant) -> Ratios | None:
    """All ratios of one variant; None when it was never timed. Where it and the identity were timed with their code at
    several places, the middle is that of the mean times, and intervals hold what comes out at any place; but over the
    identity no more than the layout gains over all of them (:func:`over_all_places`)."""
    places = [name] if name in CONTROLS else places_of(timings, name)
    own = identity_of(timings, name)
    unchanged = places_of(timings, own) if len(places) > 1 else [own]
    steady, over = wherever(timings, [ORIGINAL], places, "steady"), over_all_places(timings, unchanged, places, "steady")
    if steady is None or over is None:
        return None
    cold, over_cold = wherever(timings, [ORIGINAL], places, "cold"), over_all_places(timings, unchanged, places, "cold")
    return Ratios(steady, over, cold, over_cold)


def places_of(timings: Timings, name: Variant) -> list[Variant]:
    """``name``, and what it is called at the other places that its code was timed at."""
    return [name, *(n for n in name.elsewhere if timings.restores(n))]


def gain(timings: Timings, name: Variant) -> Ratio | None:
    """Speedup of a candidate over the original, wherever its code lies; None where nothing was measured."""
    return wherever(timings, [ORIGINAL], places_of(timings, name), "steady")


def wherever(timings: Timings, over: Sequence[Variant], under: Sequence[Variant], mode: Mode) -> Ratio | None:
    """Time of one build over another's at any of their places, the own ones first; None where nothing was measured."""
    own = timings.ratio(over[0], under[0], mode)
    above, below = timings.at_places(over, mode), timings.at_places(under, mode)
    if own is not None and above is not None and below is not None and above.sure and below.sure:
        factor = above.mean / below.mean
        lo, hi = own.lo * above.least / below.most, own.hi * above.most / below.least
        return Ratio(own.median * factor, lo, hi, own.restores)
    rows = [[r for a in over if (r := timings.ratio(a, b, mode)) is not None] for b in under]
    found = [r for row in rows for r in row]
    if not found:
        return None
    # each row's mean is the mean time above over one time below
    middle = fmean(1 / fmean(r.median for r in row) for row in rows if row) ** -1
    return Ratio(middle, min(r.lo for r in found), max(r.hi for r in found), max(r.restores for r in found))


def over_all_places(timings: Timings, over: Sequence[Variant], under: Sequence[Variant], mode: Mode) -> Ratio | None:
    """Time of one build over another's at any of their places (:func:`wherever`), with an upper end no higher than the gain
    over all places is with 95 %: what one build gains at a lucky place over another at an unlucky one is no layout's doing,
    and nobody can choose it (``docs/decisions/0126``). It is that of the gains in each process, of both builds moved as far
    (``docs/decisions/0153``)."""
    hull = wherever(timings, over, under, mode)
    if hull is None:
        return None
    ends = (_over_sure_places(timings, over, under, mode), greatest_mean(_in_each(timings, over, under, mode)))
    return replace(hull, hi=max(hull.median, min([hull.hi, *(end for end in ends if end is not None)])))


def _over_sure_places(timings: Timings, over: Sequence[Variant], under: Sequence[Variant], mode: Mode) -> float | None:
    """The upper end at the own place with what the gains at the others differ, where enough processes timed both there, and
    each at three places or more. Their mean has the error of so few (Student's t)."""
    own = timings.ratio(over[0], under[0], mode)
    above, below = timings.at_places(over, mode), timings.at_places(under, mode)
    if own is None or above is None or below is None or not (above.sure and below.sure) or len(over) < 3:
        return None
    if not len(over) == len(above.factors) == len(under) == len(below.factors):
        return None
    each = [math.log(a / b) for a, b in zip(above.factors, below.factors, strict=True)]
    return own.hi * mean_at_most(each)


def _in_each(
    timings: Timings, over: Sequence[Variant], under: Sequence[Variant], mode: Mode
) -> dict[tuple[int, int], float]:
    """By place and process the gain of both builds moved as far; one place is held against each of the other."""
    places = zip(over if len(over) > 1 else [*over] * len(under), under, strict=False)
    return {
        (place, process): a / b
        for place, pair in enumerate(places)
        for process, (a, b) in enumerate(zip(*(timings.processes(one, mode) for one in pair), strict=True))
        if a and b
    }


_OWN = {"simd": IDENTITY_SIMD, "lanes": IDENTITY_RESTRICT, "restrict": IDENTITY_RESTRICT}


def identity_of(timings: Timings, name: Variant) -> Variant:
    """The identity mock-up that the variant ``name`` is compared with: that of its own kind where it was timed.

    Candidates are made of another form of the loops (rerolled, written out) than the original's. Where the unchanged layout
    gains by that form alone, the gain is not the layout's: the faster form is what candidates are held against. So it is
    with blocks of elements, of which a compiler makes vector instructions, or a branch for each place in a block, by
    itself: what these gain with the layout unchanged is the loop's. And where vector instructions make the unchanged layout
    slower (``docs/decisions/0039``), leaving them away is what a layout must beat. What runs over the elements of blocks in
    plain C, ``lanes``, has no like without blocks: the identity that is promised the same counts, or that in vector types
    where it is faster. Nor is a layout held against a form that makes the unchanged one slower: nobody writes that.
    """
    own = _OWN.get(name.promise, IDENTITY)
    if not timings.restores(own):
        own = IDENTITY
    for form in (IDENTITY, IDENTITY_UNROLLED):
        if _is_faster(timings, form, own):
            own = form
    for form in (IDENTITY_SIMD, IDENTITY_BLOCKS) if name in timings.blocked else ():
        if _is_faster(timings, form, own):
            own = form
    return SCALAR if _is_faster(timings, SCALAR, own, TIMING.clearly_faster) else own


def _is_faster(timings: Timings, name: Variant, other: Variant, limit: float = 1.0) -> bool:
    ratio = timings.ratio(name, other) if name != other else None
    return ratio is not None and ratio.hi < limit


def identity_ratio(timings: Timings, mode: Mode = "steady") -> Ratio | None:
    """Time of the unchanged mock-up over the original's, with aligned loops, placed as in the original or at other places:
    the nearest one."""
    found = [r for name in (IDENTITY, PLACED, *IDENTITY.elsewhere) if (r := timings.ratio(name, ORIGINAL, mode)) is not None]
    return min(found, key=lambda r: abs(math.log(r.median)), default=None)


def noise_floor(timings: Timings, mode: Mode = "steady") -> tuple[float, float]:
    """Range over the restores of original over original, always around 1."""
    values = timings.per_restore(ORIGINAL, SHADOW, mode)
    if not values:
        return (1.0, 1.0)
    both = [*values, *(1 / v for v in values)]
    return (min(both), max(both))


def withheld(timings: Timings) -> float | None:
    """The greatest part of a speedup seen with the same data again and again that is not told, as it does not hold with
    flushed caches; None where calls use the same data (``lesser``)."""
    if not timings.lesser:
        return None
    names = {name for restore in timings.steady for name in restore} - {ORIGINAL, SHADOW, *CONTROLS}
    pairs = [(timings.ratio(ORIGINAL, name), timings.in_mode(ORIGINAL, name, "steady")) for name in names]
    return max((1 - told.median / seen.median for told, seen in pairs if told and seen and seen.median > 1), default=0.0)


def greatest(timings: Timings, name: Variant, in_situ_ns: float | None = None) -> tuple[float, float]:
    """The greatest median and upper end of a candidate's speedup, with warm or with flushed caches; 0 where nothing was
    measured. A call that takes ``in_situ_ns`` in the program gains no more than that over what the new layout takes with
    warm caches."""
    warm, cold = timings.in_mode(ORIGINAL, name, "steady"), timings.in_mode(ORIGINAL, name, "cold")
    repeated = timings.nanoseconds(ORIGINAL)
    longer = max(1.0, in_situ_ns / repeated) if warm and in_situ_ns and repeated else math.inf
    found = [(r.median, r.hi) for r in (warm, cold) if r is not None]
    most = (longer * warm.median, longer * warm.hi) if warm else (math.inf, math.inf)
    middle, hi = (max((one[k] for one in found), default=0.0) for k in (0, 1))
    return min(middle, most[0]), min(hi, most[1])
