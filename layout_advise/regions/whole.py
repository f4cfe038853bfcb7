"""The whole program where single regions are left open: the greatest gain that the layouts measured in them leave possible.

A region whose layouts run 0.9 to 1.08 times as fast is undecided by itself; where it holds a fifth of the program's time,
they gain at most 1.5 % of the program (``docs/decisions/0086``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec

from layout_advise.choose.further_regions import share_beside
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled
from layout_advise.decide.policy import DECIDE
from layout_advise.observe.case import Case
from layout_advise.reasons import Reason
from layout_advise.regions.looked import Looked, profiled_of, row_of
from layout_advise.regions.one import RunContext
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import PassedOver
from layout_advise.reports.model.hotspot import HotspotReport, Verdict
from layout_advise.reports.words.hotspot_words import unsaid
from layout_advise.reports.words.quantities import listing
from layout_advise.tracer.program.binary import ElfBinary

MOST_NAMED = 3
"""So many regions are named in a sentence."""


def alone(regions: Sequence[Profiled], main: ElfBinary) -> list[float]:
    """The part of the samples of each region that no region before it has."""
    held = [share_beside(regions[0], regions[1:number], main) for number in range(1, len(regions) + 1)]
    return [regions[0].share, *(more - less for less, more in pairwise(held))]


def nested(region: Profiled, others: Sequence[Profiled], main: ElfBinary) -> bool:
    """Tells whether so much of the region is in others that its gain could not be told beside theirs."""
    return bool(others) and alone([*others, region], main)[-1] < (1.0 - CHOOSE.most_overlap) * region.share


def without_rules(left_out: Sequence[PassedOver]) -> frozenset[str]:
    """The names of those in which nothing can be rearranged."""
    return frozenset(row.name for row in left_out if row.reason == Reason.NO_RULE_APPLIES)


def tells_more(one: Profiled | Case, beside: Sequence[Profiled], plain: Collection[str], main: ElfBinary) -> bool:
    """Tells whether a region is worth studying beside those with an answer: it is none of ``plain``, in which nothing can be
    rearranged, and not much of it is in the others."""
    region = profiled_of(one)
    return region.name not in plain and not nested(region, beside, main)


@dataclass(frozen=True, slots=True)
class RegionReach:
    """A region with measured layouts, or one in which no rule gives any (then not ``measured``): ``share`` is the part of
    the samples that no other part has, ``gain`` the greatest one that is not excluded, 1 without a layout."""

    name: str
    share: float
    gain: float
    measured: bool = True

    @property
    def saved(self) -> float:
        """The part of the program's time that the layouts may save at most."""
        return self.share * (1.0 - 1.0 / max(self.gain, 1.0))


@dataclass(frozen=True, slots=True)
class Reach:
    """The regions of which it is known what layouts gain. ``changes``: one of them surely gains."""

    parts: tuple[RegionReach, ...]
    least: float
    """The least gain that is advised."""
    changes: bool = False

    @property
    def held(self) -> float:
        """The part of the program's samples in the regions."""
        return sum(part.share for part in self.parts)

    @property
    def program(self) -> float:
        """The greatest speedup of the program that is not excluded, where nothing but the regions measured changes."""
        return 1.0 / (1.0 - sum(part.saved for part in self.parts))

    @property
    def excludes(self) -> bool:
        """Tells whether the program cannot gain as much as is advised, by what is known of most of its time."""
        return (
            any(part.measured for part in self.parts)
            and not self.changes
            and self.held >= 1.0 - CHOOSE.most_passed_over
            and self.program < self.least
        )


def reach(hotspots: Sequence[HotspotReport], shares: Sequence[float]) -> Reach:
    """What is known of the program by its regions, each with the part of the samples that no other one has."""
    parts = tuple(
        RegionReach(one.name or one.symbol, share, one.most_gain or 1.0, one.most_gain is not None)
        for one, share in zip(hotspots, shares, strict=True)
        if is_known(one)
    )
    least = min((DECIDE.smallest_gain(one.snapshot) for one in hotspots), default=1.0)
    return Reach(parts, least, any(one.verdict.action == "change" for one in hotspots))


def is_known(hotspot: HotspotReport) -> bool:
    """Tells whether it is known what layouts of the region gain at most: by measuring them, or as no rule gives any."""
    return hotspot.most_gain is not None or hotspot.verdict.reason == Reason.NO_RULE_APPLIES


def up(gain: float) -> float:
    """An upper end as it is told: at least 1, rounded up to hundredths."""
    return math.ceil(100 * max(gain, 1.0) - 1e-9) / 100


def kept(verdict: Verdict, name: str, known: Reach, passed: Sequence[PassedOver]) -> Verdict:
    """The ``keep`` of a program that ``known`` excludes a gain of; ``verdict`` is that of the region ``name`` alone, and
    ``passed`` are those of which nothing is known."""
    ranked = sorted((part for part in known.parts if part.measured), key=lambda part: -part.saved)
    plain = [f"{p.name} ({p.share:.0%} of the samples)" for p in known.parts if not p.measured]
    most = [f"{p.name} ({p.share:.0%} of the samples) {up(p.gain):.2f} times" for p in ranked[:MOST_NAMED]]
    further = f", and {len(ranked) - MOST_NAMED} others less" if len(ranked) > MOST_NAMED else ""
    text = (
        f"Keep it: the layouts measured gain less than {100 * (known.least - 1):.0f} % of the program. They run "
        f"{', '.join(most)}{further} as fast at most: the program at most {up(known.program):.2f} times."
    )
    if plain:
        text += f" In {listing(plain, MOST_NAMED)} no layout rule applies."
    if (rest := 1.0 - known.held) >= DECIDE.told_accesses:
        hottest = max(passed, key=lambda one: one.share, default=None)
        named = (
            f", of which {hottest.name} is the hottest ({unsaid(hottest.text).rstrip('.')})" if hottest is not None else ""
        )
        text += f" Nothing is known of the other {rest:.0%} of the samples{named}."
    text += f" Of {name} alone: {unsaid(verdict.text)}"
    program = Interval(1.0, 1.0, known.program)
    return Verdict(
        "keep", None, None, Reason.NO_PROGRAM_GAIN, text, interval=verdict.interval, about=verdict.about,
        loop=verdict.loop, program=program,
    )  # fmt: skip


def for_program(start: RunContext, told: Looked, others: Sequence[Looked], passed: Sequence[PassedOver]) -> Looked:
    """``told`` with the verdict on the program where its own leaves that open, and it and the ``others`` exclude a gain of
    it; else as it is. A region that the user names is told by itself."""
    report = told.studied.report
    open_still = report.verdict.action == "undecided" or report.verdict.reason == Reason.NO_RULE_APPLIES
    if start.settings.hotspot is not None or not open_still:
        return told
    both = [told, *others]
    shares = alone([one.case.profiled for one in both], start.main)
    known = reach([one.studied.report for one in both], shares)
    if not known.excludes:
        return told
    unknown = [row_of(one) for one in others if not is_known(one.studied.report)]
    said = {part.name for part in known.parts}
    blind = [one for one in (*passed, *unknown) if one.name not in said]
    verdict = kept(report.verdict, told.case.profiled.name, known, blind)
    return replace(told, studied=replace(told.studied, report=msgspec.structs.replace(report, verdict=verdict)))


def excluded(start: RunContext, looked: Sequence[Looked]) -> bool:
    """Tells whether the regions, as far as they are measured, exclude a gain of the program."""
    if start.settings.hotspot is not None or not looked:
        return False
    shares = alone([one.case.profiled for one in looked], start.main)
    return reach([one.studied.report for one in looked], shares).excludes


def apart(looked: Sequence[Looked], main: ElfBinary) -> list[Looked]:
    """Of regions that may lie in each other those with an answer, or of which is known what layouts gain, the first of each
    nest."""
    found: list[Looked] = []
    for one in looked:
        known = one.answers or is_known(one.studied.report)
        if known and not nested(one.case.profiled, [f.case.profiled for f in found], main):
            found.append(one)
    return found


def with_shares(start: RunContext, looked: Sequence[Looked]) -> list[Looked]:
    """The regions as they are told, each with the part of the samples that none before it has."""
    parts = zip(looked, alone([one.case.profiled for one in looked], start.main), strict=True)
    return [
        replace(one, studied=replace(one.studied, report=msgspec.structs.replace(one.studied.report, alone=round(part, 4))))
        for one, part in parts
    ]
