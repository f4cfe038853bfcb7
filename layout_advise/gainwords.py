"""The words in which a verdict tells gains."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.measured import Measured, is_wide
from layout_advise.mockup.statistics import Ratio

ASKED = {
    "plain": "",
    "restrict": ", with its arrays declared `restrict`,",
    "simd": ", with its arrays declared `restrict` and its independent loops written for SIMD,",
}


ALONE = {"plain": "its loops in this form", "restrict": "`restrict`", "simd": "`restrict` and SIMD"}
TOLD = 1.05
"""What a variant gains with the layout unchanged is told from here on."""


def gain_of(winner: Measured) -> str:
    """``store ... : step runs 4.9 times as fast (95 % interval 3.9 to 5.1, 9 processes)``; ``at least 3.7 times as fast``
    where the interval is wide."""
    assert winner.counted is not None
    net = ", conversion before and after each call included" if winner.net is not None else ""
    least = "at least " if is_wide(winner.counted) else ""
    gain = f"{least}{times(winner.claimed)} times as fast ({_interval(winner.counted, winner.places)}{net})"
    return f"{winner.title or winner.id}{ASKED[winner.variant]} runs {gain}{_unchanged(winner)}"


def _unchanged(winner: Measured) -> str:
    """What of the gain does not need the layout: the same variant of the unchanged one over the original."""
    if winner.speedup is None or winner.over_identity is None or winner.net is not None:
        return ""
    alone = winner.speedup.median / winner.over_identity.median
    if alone < TOLD:
        return ""
    own = f"{times(alone)} times with {ALONE[winner.variant]} and the layout unchanged"
    of_that = f"of its median, {times(winner.speedup.median)} times," if is_wide(winner.speedup) else "of that"
    return f", {of_that} {own}, {times(winner.over_identity.median)} times by the layout"


def fell_short(again: Measured) -> str:
    """The lowest of what had to exceed the bound."""
    if again.counted is None:
        return ""
    lowest, what = again.counted, ""
    if again.over_identity is not None and again.over_identity.lo < lowest.lo:
        lowest, what = again.over_identity, " the unchanged mock-up's speed"
    return f", only {lowest.median:.2f} times{what} ({_interval(lowest, again.places)})"


def _interval(ratio: Ratio, places: int) -> str:
    where = f", its code at {places} places in memory" if places > 1 else ""
    return f"95 % interval {times(ratio.lo)} to {times(ratio.hi)}, {ratio.restores} processes{where}"


def times(value: float) -> str:
    """One digit after the point where that says enough, two near 1."""
    return f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def named(candidates: Sequence[Measured]) -> str:
    """Ids without their variants: ``c1, c2 and 3 more``."""
    ids = list(dict.fromkeys(c.layout for c in candidates))
    return ", ".join(ids) if len(ids) <= 3 else f"{', '.join(ids[:3])} and {len(ids) - 3} more"
