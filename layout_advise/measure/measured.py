"""The measurements of a candidate layout, as the verdict and its sentences need it."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.measure.mode import Mode
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.ratios import summarise
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import Promise, Variant
from layout_advise.reports.model.candidate import Evidence

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
    words: str = ""
    """The layout as the ranking calls it: ``AoSoA×4, compact``."""

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
    def claimed(self) -> float:
        """The gain as it is told: the lower end where the interval is wide."""
        assert self.counted is not None
        return self.counted.lo if is_wide(self.counted) else self.counted.median

    def floor(self) -> float:
        """The smallest of the lower bounds that a change must have above the bound."""
        bounds = [r.lo for r in (self.speedup, self.over_identity, self.net) if r is not None]
        return min(bounds) if self.speedup and self.over_identity else 0.0

    def middle(self) -> float:
        """The smallest of the medians."""
        return min((r.median for r in (self.speedup, self.over_identity, self.net) if r is not None), default=0.0)

    def ceiling(self) -> float | None:
        """The smallest of the upper bounds: below the bound the candidate is out. None when it was not measured."""
        bounds = [r.hi for r in (self.speedup, self.over_identity, self.net) if r is not None]
        return min(bounds) if self.speedup and self.over_identity else None


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
