"""One layout for all kinds of calls: a candidate's gain over the mixture of calls that the program makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from layout_advise.decide.gain_words import times
from layout_advise.decide.policy import DECIDE
from layout_advise.measure.measured import Doubt, Measured, TermName
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model.hotspot import Verdict


@dataclass(frozen=True, slots=True)
class Portion:
    """Calls of one kind, with ``share`` of the hotspot's time; ``speedup`` is None where they were not measured."""

    text: str
    share: float
    speedup: Ratio | None


def together(parts: Sequence[tuple[float, Ratio | None]]) -> Ratio | None:
    """The ratio of times over all kinds, from (share of the time, ratio) of each; None where no kind has one.

    What has no ratio, and the rest of the time, counts as unchanged. The ends of the interval are those that come out where
    all kinds are at their lower or all at their upper ends at once: wider than a 95 % interval, never narrower.
    """
    known = [(share, ratio) for share, ratio in parts if ratio is not None]
    if not known:
        return None
    rest = max(0.0, 1.0 - sum(share for share, _ in known))

    def over(values: Sequence[float]) -> float:
        return 1.0 / (rest + sum(share / value for (share, _), value in zip(known, values, strict=True)))

    median, lo, hi = (over([getattr(r, end) for _, r in known]) for end in ("median", "lo", "hi"))
    counted = [r.restores for _, r in known if r.restores]  # nothing was timed where the layout does not matter
    return Ratio(median, lo, hi, min(counted, default=0))


def mixed(shares: Sequence[float], kinds: Sequence[Measured]) -> Measured:
    """The gain of a candidate over all kinds, from its gain at each; not measured where some kind is not."""
    first = kinds[0]
    missing = next((k for k in kinds if k.speedup is None), None)
    if missing is not None:
        return Measured(
            first.name, missing.evidence, None, None, title=first.title, reason=missing.reason, words=first.words
        )
    speedup = together([(s, k.speedup) for s, k in zip(shares, kinds, strict=True)])
    over = together([(s, k.over_identity) for s, k in zip(shares, kinds, strict=True)])
    net = together([(s, k.net or k.speedup) for s, k in zip(shares, kinds, strict=True)])
    whole = replace(first, speedup=speedup, over_identity=over, net=net if any(k.net for k in kinds) else None)
    return replace(whole, doubts=_doubts(shares, kinds))


def _doubts(shares: Sequence[float], kinds: Sequence[Measured]) -> tuple[Doubt, ...]:
    """The doubts at any kind, each over all of them: at the others the gain is as it was measured."""
    found: dict[TermName, Doubt] = {}
    for name, how in {d.name: d.how for k in kinds for d in k.doubts}.items():
        parts = []
        for share, one in zip(shares, kinds, strict=True):
            counted = one.counted
            ends = [d for d in one.doubts if d.name == name]
            if counted is not None:
                lo, hi = min([counted.lo, *(d.lo for d in ends)]), max([counted.hi, *(d.hi for d in ends)])
                parts.append((share, Ratio(counted.median, lo, hi, counted.restores)))
        whole = together(parts)
        if whole is not None:
            found[name] = Doubt(name, whole.lo, whole.hi, how)
    return tuple(found.values())


def harms(kinds: Sequence[Measured]) -> bool:
    """Tells whether the candidate makes the calls of some kind slower."""
    return any(k.counted is not None and k.counted.median < DECIDE.slowest_kind for k in kinds)


def sentence(portions: Sequence[Portion], whole: Ratio | None = None) -> str:
    """``odd calls, 46 % of the hotspot's time: 1.80 times as fast; even calls, 54 %: 0.70 times; together 1.05 times``."""
    said = []
    for number, portion in enumerate(portions):
        of = "" if number else " of the hotspot's time"
        what = f"{portion.text}, {portion.share:.0%}{of}"
        if portion.speedup is None:
            said.append(f"{what}: not measured, counted as unchanged")
        else:
            said.append(f"{what}: {times(portion.speedup.median)} times{'' if number else ' as fast'}")
    if whole is not None:
        said.append(f"together {times(whole.median)} times")
    return "; ".join(said)


def with_kinds(verdict: Verdict, text: str) -> Verdict:
    """``verdict`` with a sentence about the kinds of calls."""
    return msgspec.structs.replace(verdict, text=f"{verdict.text} {text}")
