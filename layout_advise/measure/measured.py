"""The measurements of a candidate layout, as the verdict and its sentences need it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from layout_advise.measure.mode import Mode
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.ratios import summarise
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import WRITTEN, Promise, Variant
from layout_advise.reports.model.candidate import Evidence

TermName = Literal[
    "processes",
    "live",
    "form",
    "rebuild",
    "placement",
    "caches",
    "program",
    "apart",
    "promises",
    "vectors",
    "indices",
    "put-back",
    "counting",
    "machine",
]
"""The doubts that an interval carries: statistics over processes, or over runs of the program itself; the mock-up's form of
the code; the gain over the unchanged mock-up instead of the original; where code lies; warm or flushed caches; the running
program against the snapshot; what the compiler is promised; vector instructions; tests of addresses and pointers made
indices, which a source in the new layout need not have; what is put back between the calls of a batch; what counting a
loop's iterations takes; the original's machine code on the layout, with the time that making addresses takes in it."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt about a gain as the interval that was measured for it (ratios), and how. Only ``lo`` below the gain's own
    interval or ``hi`` above it widens the claim."""

    name: TermName
    lo: float
    hi: float
    how: str
    middle: float | None = None
    """The median of the measured ratio that ``hi`` is the upper end of: further processes narrow what lies between them."""


PROMISES: tuple[Promise, ...] = ("plain", "restrict", "lanes", "simd")
"""In the order of what they ask of the user."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a candidate; ratios of the mode that was chosen. ``net`` is the speedup with
    the conversion of a temporary layout taken in (None for permanent ones); ``reason``: why there are no ratios."""

    name: Variant
    evidence: Evidence
    speedup: Ratio | None
    over_identity: Ratio | None
    net: Ratio | None = None
    title: str = ""
    reason: str = ""
    blocked: bool = False
    """Whether the layout is one of blocks (AoSoA): every index becomes two."""
    places: int = 1
    """At how many places in memory its code was timed."""
    form: Variant | None = None
    """The build of the unchanged layout that ``over_identity`` compares with, its fastest one; None: as the original."""
    structures: frozenset[str] = frozenset()
    """The structures (ids) that its layout is of."""
    translated: frozenset[str] = frozenset()
    """Of which structures the unchanged layout is reached as this one (:class:`~layout_advise.measure.setup.Entrant`)."""
    words: str = ""
    """The layout as the ranking calls it: ``AoSoA×4, compact``."""
    vectorised: bool = False
    """Whether its loops have the vector arithmetic that those of the unchanged mock-up have."""
    doubts: tuple[Doubt, ...] = ()
    """What else was measured of the gain's uncertainty; the interval that is claimed holds all of it."""
    live: str = ""
    """How it was timed in the running program itself, where ``speedup`` is from there."""
    packed: bool = False
    """As in :class:`~layout_advise.measure.setup.Entrant`."""
    code: Measured | None = None
    """The original's machine code on the same layout, where that was timed."""

    @property
    def told_by(self) -> Measured:
        """The measurements that tell the layout's gain: its own, or those of its machine code, as far as they leave what its
        own do, where they leave less and both agree. What a compiler made of several elements at once, machine code of one
        says nothing of."""
        code = self.code
        if code is None or self.packed or self.net is not None or (top := code.ceiling()) is None:
            return self
        own = replace(self, code=None)
        most, least = own.ceiling(), own.floor()
        if most is None or (top >= most and code.floor() <= least):
            return self
        lo, hi = max(least, code.floor()), min(most, top)
        return code.within(lo, hi) if lo <= hi else self

    def within(self, lo: float, hi: float) -> Measured:
        """The same with all its intervals cut to that from ``lo`` to ``hi``."""
        doubts = tuple(
            replace(
                d, lo=_cut(d.lo, lo, hi), hi=_cut(d.hi, lo, hi), middle=None if d.middle is None else _cut(d.middle, lo, hi)
            )
            for d in self.doubts
        )
        r = self.speedup
        speedup = r and Ratio(_cut(r.median, lo, hi), _cut(r.lo, lo, hi), _cut(r.hi, lo, hi), r.restores)
        return replace(self, speedup=speedup, doubts=doubts)

    def at_most(self, gain: float, likely: float, names: Collection[TermName]) -> Measured:
        """The same with the gain over the original, and the doubts called so, cut to ``gain``, and what these come to with
        ever more processes to ``likely``; but not below its own median."""
        r = self.speedup
        least = r.median if r is not None else 0.0
        most, middle = max(gain, least), max(likely, least)

        def cut(d: Doubt) -> Doubt:
            return replace(d, hi=min(d.hi, most), middle=None if d.middle is None else min(d.middle, middle))

        doubts = tuple(cut(d) if d.name in names else d for d in self.doubts)
        return replace(self, speedup=r and replace(r, hi=min(r.hi, most)), doubts=doubts)

    @property
    def id(self) -> str:
        """As the report calls it: ``c1-restrict``."""
        return str(self.name)

    @property
    def layout(self) -> str:
        """The id without the variant: ``c1`` of ``c1-restrict``."""
        return self.name.layout

    @property
    def known(self) -> str:
        """Its name in a sentence: ``c1-restrict (AoSoA×4, compact)``."""
        return f"{self.id} ({self.words})" if self.words else self.id

    @property
    def counted(self) -> Ratio | None:
        """The gain that is claimed: net of the conversion for a temporary layout."""
        return self.net or self.speedup

    @property
    def claim(self) -> Ratio | None:
        """The gain with the interval that carries every doubt: the hull of what each of them leaves possible."""
        if (by := self.told_by) is not self:
            return by.claim
        counted, terms = self.counted, self.budget
        if counted is None:
            return None
        return Ratio(counted.median, min(t.lo for t in terms), max(t.hi for t in terms), counted.restores)

    @property
    def budget(self) -> tuple[Doubt, ...]:
        """All terms of the interval, each with what it leaves possible by itself."""
        if (by := self.told_by) is not self:
            return by.budget
        counted = self.counted
        if counted is None:
            return ()
        if self.name.form == "machine":
            return self.doubts
        processes = Doubt("processes", counted.lo, counted.hi, f"bootstrap over {counted.restores} processes")
        processes = Doubt("live", counted.lo, counted.hi, self.live) if self.live else processes
        over = self.over_identity
        if over is None or self.net is not None:
            return (processes, *self.doubts)
        # a faster form that can be written in the source is advice of its own; another one is the mock-up's doing
        lo = counted.median if self.form in WRITTEN else min(counted.median, over.median)
        how = "against the original, and against the unchanged mock-up"
        form = Doubt("form", lo, max(counted.median, over.median), how)
        least, most = counted.median if self.form in WRITTEN else over.lo, self._most(over.hi)
        where = f", {self.places} places of the code" if self.places > 1 else ""
        how = f"over the unchanged mock-up in its fastest build, bootstrap over {over.restores} processes{where}"
        return (processes, form, Doubt("rebuild", least, max(least, most), how), *self.doubts)

    @property
    def widest(self) -> Doubt | None:
        """The term that leaves most open."""
        return max(self.budget, key=lambda d: d.hi / d.lo if d.lo > 0 else math.inf, default=None)

    def opening(self, bound: float) -> Doubt | None:
        """The term that leaves open whether it gains as much as ``bound``: where its medians do, the one that reaches
        furthest down; else the one that reaches furthest up, of those that reach the bound with ever more processes, as
        :meth:`likely_ceiling` has it, where there are any (``docs/decisions/0124``). None without any."""
        if (by := self.told_by) is not self:
            return by.opening(bound)
        if self.counted is None or self.middle() >= bound:
            return min(self.budget, key=lambda d: d.lo, default=None)
        own = {d.name: d for d in self.budget[: len(self.budget) - len(self.doubts)]}
        first = next(iter(own.values()), None)
        over = min((r for r in (self.over_identity, self.net) if r is not None), key=lambda r: r.hi, default=self.counted)
        factor = min(1.0, over.median / self.counted.median)
        likely = [(over.lo, own.get("form", first))]  # the form's doing where it surely is
        likely += [((d.hi if d.middle is None else d.middle) * factor, d) for d in self.doubts]
        factor = min(1.0, over.hi / self.counted.hi)
        most = [(self._most(over.hi), own.get("rebuild", first)), *((d.hi * factor, d) for d in self.doubts)]
        lasting = [one for one in likely if one[0] >= bound]
        return max(lasting or most, key=lambda one: one[0])[1] or self.widest

    @property
    def claimed(self) -> float:
        """The gain as it is told: the lower end where the interval is wide."""
        claim = self.claim
        assert claim is not None
        return claim.lo if is_wide(claim) else claim.median

    def floor(self) -> float:
        """The least gain that is not excluded: that over the original, and over the unchanged layout's fastest form, with
        all doubts. A change must have it above the least gain. 0 where nothing was measured."""
        if self.counted is None or self.speedup is None:
            return 0.0
        if (by := self.told_by) is not self:
            return by.floor()
        own = min(r.lo for r in (self.speedup, self.over_identity, self.net) if r is not None)
        return min([own, *(d.lo * min(1.0, own / self.counted.lo) for d in self.doubts if self.counted.lo > 0)])

    def middle(self) -> float:
        """The smallest of the medians."""
        if (by := self.told_by) is not self:
            return by.middle()
        return min((r.median for r in (self.speedup, self.over_identity, self.net) if r is not None), default=0.0)

    def ceiling(self) -> float | None:
        """The greatest gain of the layout that is not excluded, over the unchanged layout's fastest form (of a temporary
        layout, with its conversion), with all doubts. Below the least gain the candidate is out. None when it was not
        measured.

        Doubts are about the gain over the original: where the unchanged layout is faster in another form, they count for
        that much less; where the mock-up's form is slow, that is a doubt of its own, and both are not multiplied."""
        if self.counted is None or self.speedup is None:
            return None
        if (by := self.told_by) is not self:
            return by.ceiling()
        own = min((r.hi for r in (self.over_identity, self.net) if r is not None), default=self.speedup.hi)
        return max([self._most(own), *(d.hi * min(1.0, own / self.counted.hi) for d in self.doubts)])

    def _most(self, gain: float) -> float:
        """``gain`` over the unchanged mock-up, of the original's time where that is less; as it is of a temporary layout,
        and where the layout is surely faster than the original: its gain is that, then."""
        over, counted = self.over_identity, self.counted
        if over is None or counted is None or self.net is not None or counted.lo > 1.0:
            return gain
        return saved(gain, over.median / counted.median)

    def likely_ceiling(self) -> float | None:
        """What :meth:`ceiling` comes to with ever more processes: medians in the place of upper ends, as far as noise keeps
        these apart."""
        if self.counted is None or self.speedup is None:
            return None
        if (by := self.told_by) is not self:
            return by.likely_ceiling()
        own = min((r.median for r in (self.over_identity, self.net) if r is not None), default=self.speedup.median)
        factor = min(1.0, own / self.counted.median)
        return max([self._most(own), *((d.hi if d.middle is None else d.middle) * factor for d in self.doubts)])


def saved(gain: float, longer: float) -> float:
    """The gain where as much time is saved of a loop that is ``longer`` times as fast as the one that ``gain`` was measured
    of: what a layout saves of waiting for memory it saves of both (``docs/decisions/0127``); but no more than the gain times
    that. As it is where nothing is gained or the loop is slower."""
    if gain <= 1.0 or longer <= 1.0:
        return gain
    left = 1.0 - longer * (1.0 - 1.0 / gain)
    return 1.0 / max(left, 1.0 / (gain * longer))


def _cut(value: float, lo: float, hi: float) -> float:
    return min(max(value, lo), hi)


def is_wide(ratio: Ratio) -> bool:
    """Tells whether the machine was too noisy for the median to say much."""
    return ratio.hi >= MEASURE.wide * ratio.lo


def pick(timings: Timings, name: Variant, mode: Mode) -> tuple[Ratio | None, Ratio | None]:
    """Speedup and over-identity of one variant in the mode that counts."""
    ratios = summarise(timings, name)
    if ratios is None:
        return None, None
    if mode == "steady":
        return ratios.steady, ratios.steady_over_identity
    return ratios.cold, ratios.cold_over_identity
