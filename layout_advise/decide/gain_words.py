"""The words in which a verdict tells gains."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from layout_advise.decide.policy import DECIDE
from layout_advise.measure.measured import Doubt, Measured, is_wide
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import IDENTITY_BLOCKS, IDENTITY_RESTRICT, IDENTITY_SIMD, SCALAR
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.reason_words import DOUBT_NAMES, DOUBT_REMEDIES

ASKED = {
    "plain": "",
    "restrict": ", with its arrays declared `restrict`,",
    "lanes": ", with its arrays declared `restrict` and a loop over each block's elements inside of the others, in plain C,",
    "simd": ", with its arrays declared `restrict` and its independent loops written for SIMD,",
}


FORMS = {
    SCALAR: "without vector instructions (as with -fno-tree-vectorize)",
    IDENTITY_BLOCKS: "with its loop cut into such blocks",
    IDENTITY_SIMD: "with its independent loops written for SIMD",
    IDENTITY_RESTRICT: "with its pointers declared `restrict`",
}
"""How the unchanged layout was built where that is faster than as the original has it."""
ALONE = {"plain": "its loops in this form", "restrict": "`restrict`", "lanes": "`restrict`", "simd": "`restrict` and SIMD"}


def gain_of(winner: Measured) -> str:
    """``store ... : step runs 4.9 times as fast (95 % interval 3.9 to 5.1, 9 processes)``; ``at least 3.7 times as fast``
    where the interval is wide."""
    claim, net = winner.claim, ""
    assert claim is not None
    if winner.net is not None:
        net = ", conversion before and after each call included"
    least = "at least " if is_wide(claim) else ""
    gain = f"{least}{times(winner.claimed)} times as fast ({_interval(claim, winner.places)}{net})"
    return f"{winner.title or winner.id}{ASKED[winner.name.promise]} runs {gain}{_unchanged(winner)}"


def _unchanged(winner: Measured) -> str:
    """Says which part of the gain does not need the layout: the same variant of the unchanged one over the original."""
    if winner.speedup is None or winner.over_identity is None or winner.net is not None:
        return ""
    alone = winner.speedup.median / winner.over_identity.median
    if alone < DECIDE.told_gain:
        return ""
    other = winner.form in (SCALAR, IDENTITY_BLOCKS) or (winner.form == IDENTITY_SIMD and winner.name.promise == "lanes")
    how = FORMS[winner.form] if other and winner.form is not None else f"with {ALONE[winner.name.promise]}"
    own = f"{times(alone)} times {how} and the layout unchanged"
    of_that = f"of its median, {times(winner.speedup.median)} times," if is_wide(winner.speedup) else "of that"
    return f", {of_that} {own}, {times(winner.over_identity.median)} times by the layout"


def form_gains(candidate: Measured) -> str:
    """``c1 ran 1.37 times as fast, but the unchanged layout does 1.41 times without vector instructions (...).``"""
    assert candidate.speedup is not None
    assert candidate.over_identity is not None
    assert candidate.form is not None
    own = candidate.speedup.median / candidate.over_identity.median
    layout = candidate.over_identity
    itself = f"{times(layout.median)} times ({times(layout.lo)} to {times(layout.hi)})"
    return (
        f"{candidate.known} ran {times(candidate.speedup.median)} times as fast, but the unchanged layout did {times(own)} "
        f"times {FORMS[candidate.form]}: the layout itself {itself}."
    )


def doubt_words(doubt: Doubt) -> str:
    """A sentence on a doubt: the interval it leaves by itself, and what narrows it."""
    span = f"{times(doubt.lo)} to {times(doubt.hi)}"
    return f"What leaves it open is {DOUBT_NAMES[doubt.name]}, {span}: {doubt.how}. {DOUBT_REMEDIES[doubt.name]}"


def fell_short(again: Measured) -> str:
    """The lowest of what had to exceed the bound."""
    if again.counted is None:
        return ""
    lowest, what = again.counted, ""
    if again.over_identity is not None and again.over_identity.lo < lowest.lo:
        lowest, what = again.over_identity, " the unchanged mock-up's speed"
    return f", only {lowest.median:.2f} times{what} ({_interval(lowest, again.places)})"


def _interval(ratio: Ratio, places: int) -> str:
    where = f", timed with its code at {places} addresses" if places > 1 else ""
    return f"95 % interval {times(ratio.lo)} to {times(ratio.hi)}, {ratio.restores} processes{where}"


def times(value: float) -> str:
    """One digit after the point where that says enough, two near 1."""
    return f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def named(candidates: Sequence[Measured]) -> str:
    """Layouts without their variants: ``c1 (SoA), c2 (AoSoA×4) and 3 more``."""
    ids = list({c.layout: f"{c.layout} ({c.words})" if c.words else c.layout for c in candidates}.values())
    return ", ".join(ids) if len(ids) <= 3 else f"{', '.join(ids[:2])} and {len(ids) - 2} more"


def with_more(verdict: Verdict, winner: Measured | None, more: Measured | None) -> Verdict:
    """``verdict``, where it is for a change, with the layout that gains ``more`` and is harder to write (decision 80)."""
    told = more is not None and more.id in verdict.peers and more.id not in verdict.faster
    if verdict.action != "change" or winner is None or more is None or told:
        return verdict
    percent = round(100 * (1 / winner.middle() - 1 / more.middle()))
    least = f"{percent} %" if percent else "less than 1 %"
    said = f"{named([more])} saves {least} more of the time: {times(more.middle())} times."
    return msgspec.structs.replace(verdict, text=f"{verdict.text} {said}")


def with_peers(verdict: Verdict, peers: Sequence[Measured], faster: Collection[str] = ()) -> Verdict:
    """``verdict``, where it is for a change, with the layouts that would do as well (``peers``). Those that are ``faster``
    (ids) are not called tied."""
    if verdict.action != "change" or not peers:
        return verdict
    ids = tuple(p.id for p in peers)
    verdict = msgspec.structs.replace(verdict, peers=ids, faster=tuple(name for name in ids if name in faster))
    tied = [p for p in peers if p.id not in faster]
    if not tied:
        return verdict
    gains = [p.speedup.median for p in tied if p.speedup is not None]
    span = " to ".join(dict.fromkeys((times(min(gains)), times(max(gains)))))
    one = len({p.layout for p in tied}) == 1
    fastest = sorted(tied, key=lambda p: -p.speedup.median if p.speedup is not None else 0.0)
    said = f"{named(fastest)} {'is' if one else 'are'} statistically tied ({span} times)."
    return msgspec.structs.replace(verdict, text=f"{verdict.text} {said}")
