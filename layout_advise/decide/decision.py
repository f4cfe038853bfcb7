"""A decision: the measurements, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.measured import Measured, pick
from layout_advise.measure.mode import Mode
from layout_advise.measure.setup import Entrant
from layout_advise.mockup.timing.ratios import identity_of, places_of
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, ORIGINAL, Variant
from layout_advise.reports.model.hotspot import Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """Both measurements and what follows from them."""

    first: Timings
    again: Timings | None
    mode: Mode | None
    verdict: Verdict
    winner: Variant | None
    snapshot: Literal["criu", "fork"]
    ablation: Timings | None = None
    """The best candidate and the unchanged layout, with and without vector instructions; None where there are none."""
    ablated: Variant | None = None
    """Which candidate that is."""
    in_situ_ns: float | None = None
    """A call in the running program, timed again where the first times did not agree with the snapshot."""
    results: tuple[Measured, ...] = ()
    """What was measured of each candidate, with its doubts; of the winner as it was measured again."""
    peers: tuple[Measured, ...] = ()
    """Other layouts that would do as well as the winner: not shown to be slower."""
    faster: frozenset[str] = frozenset()
    """Ids of the ``peers`` that are shown to be faster than the winner, which is simpler to write."""
    alike: bool = True
    """Whether the original takes as long in the snapshot as in the running program."""
    kinds: tuple[KindTimes, ...] = ()
    """Where calls differ: of each kind that was measured, the one of the fields above first."""
    trials: Mapping[Variant, LiveTrial] = field(default_factory=dict)
    """What came out where a candidate was to be tried in the running program."""
    rivals: Mapping[Variant, Timings] = field(default_factory=dict)
    """The second times of others that were measured again."""
    code: Timings | None = None
    """The times of the original's machine code on other layouts, where the answer was open."""


@dataclass(frozen=True, slots=True)
class KindTimes:
    """The calls of one kind, with ``share`` of the hotspot's time, as they were measured. Layouts of memory that these calls
    do not touch are ``unaffected``. ``in_situ_ns`` is that of one call."""

    text: str
    share: float
    first: Timings
    mode: Mode | None
    again: Timings | None = None
    unaffected: frozenset[Variant] = frozenset()
    in_situ_ns: float | None = None

    def ratios(self, name: Variant, again: bool) -> tuple[Ratio | None, Ratio | None]:
        """Speedup and over-identity of one variant."""
        if name in self.unaffected:
            return Ratio(1.0, 1.0, 1.0, 0), Ratio(1.0, 1.0, 1.0, 0)
        timings = self.again if again and self.again is not None else self.first
        return pick(timings, name, self.mode or "steady")


def measured(entrant: Entrant, timings: Timings, mode: Mode, net_ns: float | None) -> Measured:
    """Returns what the verdict needs of one candidate. ``net_ns`` is the cost of converting around a call, for temporary
    layouts; where calls were timed with the conversion around them, these count."""
    speedup, over = pick(timings, entrant.variant, mode)
    net = timings.net(entrant.variant, mode) if net_ns is not None else None
    original = timings.nanoseconds(ORIGINAL, mode)
    if net is None and net_ns is not None and speedup is not None and original:
        share = net_ns / original
        median, lo, hi = (1 / (1 / r + share) for r in (speedup.median, speedup.lo, speedup.hi))
        net = Ratio(median, lo, hi, speedup.restores)
    form = identity_of(timings, entrant.variant)
    return Measured(
        entrant.variant,
        entrant.evidence,
        speedup,
        over,
        net,
        entrant.title,
        blocked=entrant.blocked,
        places=len(places_of(timings, entrant.variant)),
        form=form if form != IDENTITY else None,
        structures=entrant.structures,
        translated=entrant.translated,
        words=entrant.words,
        vectorised=entrant.vectorised,
        packed=entrant.packed,
    )


def as_fast(results: Sequence[Measured], winner: Variant, first: Timings, bound: float, mode: Mode) -> tuple[Measured, ...]:
    """Of the other layouts that gain, those that are not shown to gain less than the winner; of each its fastest variant,
    the fastest layout first."""
    found: dict[str, Measured] = {}
    for result in sorted(results, key=lambda r: -r.middle()):
        lead = first.ratio(result.name, winner, mode)
        if result.layout != winner.layout and result.floor() > bound and lead is not None and lead.lo <= 1.0:
            found.setdefault(result.layout, result)
    return tuple(found.values())


def shown_faster(peers: Sequence[Measured], winner: Variant, first: Timings, mode: Mode) -> frozenset[str]:
    """The ids of those of ``peers`` that ran faster than the winner beside it, even at the end of the interval."""
    leads = {peer.id: first.ratio(peer.name, winner, mode) for peer in peers}
    return frozenset(name for name, lead in leads.items() if lead is not None and lead.hi < 1.0)


def unrolled_nearer(timings: Timings, mode: Mode) -> bool:
    """Tells whether the identity that was not rerolled is nearer to the original."""
    ratios = [timings.ratio(name, ORIGINAL, mode) for name in (IDENTITY, IDENTITY_UNROLLED)]
    rolled, unrolled = (abs(math.log(r.median)) if r is not None else math.inf for r in ratios)
    return unrolled < rolled


def leading(decision: Decision, variants: Collection[Variant], mode: Mode) -> Variant | None:
    """The winner, else the fastest of the candidates ``variants``; None where none was measured."""
    if decision.winner is not None:
        return decision.winner
    first = decision.first
    ratios = {v: r for v in variants if (r := first.ratio(ORIGINAL, v, mode)) and v not in first.failed}
    return max(sorted(ratios, key=str), key=lambda v: ratios[v].median, default=None)
