"""A hotspot in words: what it is called, where it is, how it was traced, and what its verdict asks of the user."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import PassedOver
from layout_advise.reports.model.hotspot import HotspotReport, KindReport, Verdict
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.words.brief_names import brief
from layout_advise.reports.words.layout_words import families, view
from layout_advise.reports.words.quantities import listing, nanoseconds, number
from layout_advise.reports.words.reason_words import DOUBT_NAMES

ROUNDED = 0.005
"""Part by which two printed ratios may differ and be the same."""


def name(hotspot: HotspotReport) -> str:
    """The hotspot's name to print; reports of older versions have the linker's name only."""
    function = hotspot.name or hotspot.symbol
    return f"loop in {function}" if hotspot.region == "loop" else function


def short_name(hotspot: HotspotReport) -> str:
    """The name for a sentence or a table, where whole reports are not at hand to make it short."""
    function = brief(hotspot.name or hotspot.symbol)
    return f"loop in {function}" if hotspot.region == "loop" else function


def place(hotspot: HotspotReport) -> str:
    """``file:line`` of the hotspot without folders, or an empty string."""
    if hotspot.file is None:
        return ""
    name = PurePath(hotspot.file).name
    return name if hotspot.line is None else f"{name}:{hotspot.line}"


def kept_calls(hotspot: HotspotReport) -> str:
    """``calls that stay calls: malloc, free``, or nothing."""
    names = dict.fromkeys(call.function or "a function known at run time only" for call in hotspot.kept_calls)
    return f"calls that stay calls: {', '.join(names)}" if names else ""


def passed_over(one: PassedOver) -> str:
    """``no answer from pop (17% of the samples): ...``."""
    return f"no answer from {one.name} ({one.share:.0%} of the samples): {unsaid(one.text)}"


def unsaid(text: str) -> str:
    """The sentence of a verdict without ``Undecided:`` before it, to stand in another one."""
    return text.removeprefix("Undecided: ")


def ended_ways(hotspot: HotspotReport) -> str:
    """How many ways no compared call took that the mock-ups leave out, and where the first begins; or nothing."""
    ways = hotspot.ended_ways
    if not ways:
        return ""
    first = ways[0]
    where = f"{PurePath(first.file).name}:{first.line}" if first.file else first.address
    many = "1 way is" if len(ways) == 1 else f"{len(ways)} ways are"
    more = f"; {len(ways) - 1} more in report.json" if len(ways) > 1 else ""
    them = "it" if len(ways) == 1 else "them"
    return f"{many} not in the mock-ups, as no compared call took {them}: {where}{more}"


def calls(hotspot: HotspotReport) -> str:
    """``50 calls of 1.2 ms``, or that most of them are shorter than the one studied; of a loop in chunks of iterations
    these; of a function that calls itself its entries are all that is counted, and the time is that of a whole one."""
    many, ns = number(hotspot.calls), nanoseconds(hotspot.original.ns_in_situ)
    if hotspot.verdict.reason == "recursive":
        return f"entered {many} times, by itself too; a call with those in it takes {ns}"
    if hotspot.chunk:
        return f"{many} chunks of {number(hotspot.chunk)} iterations, {ns} each"
    return (
        f"{many} calls, most of them short, of which one of {ns} stands for the long ones"
        if hotspot.alike
        else f"{many} calls of {ns}"
    )


def stopped_at(hotspot: HotspotReport) -> str:
    """``traced at call 5``, or how many short calls were taken together from which one on, and how much they differ."""
    batch = hotspot.batch
    if batch is None:
        return f"traced at call {number(hotspot.call)}"
    return (
        f"traced {number(batch.calls)} calls together from call {number(hotspot.call)} on, of "
        f"{nanoseconds(batch.ns_low)} to {nanoseconds(batch.ns_high)} (10th to 90th percentile)"
    )


def kind(value: KindReport) -> str:
    """``odd calls: about 150 of 1.2 ms, 46 % of the hotspot's time``; of those not measured why."""
    about = f"{value.text}: about {number(value.calls)} of {nanoseconds(value.ns_in_situ)}, {value.share:.0%} of its time"
    return f"{about}; not measured ({value.reason})" if value.reason else f"{about}; call {value.call} was stopped at"


def kind_speedups(candidate: CandidateReport, hotspot: HotspotReport) -> str:
    """``odd calls 1.80×, even calls 0.97×``; empty where calls are alike or it was not measured."""
    known = [(hotspot.kinds[k.kind].text, k.speedup) for k in candidate.kinds if k.speedup is not None]
    return ", ".join(f"{text} {speedup.median:.2f}×" for text, speedup in known)


def noise(hotspot: HotspotReport) -> str:
    """The noise band, or an empty string."""
    if hotspot.noise is None:
        return ""
    return f"the original against itself: {hotspot.noise.lo:.2f} to {hotspot.noise.hi:.2f}"


def claimed(hotspot: HotspotReport) -> str:
    """Why the verdict tells less than the winner's median; empty where it tells the median."""
    gain = hotspot.verdict.gain
    winner = next((c for c in hotspot.candidates if c.id == hotspot.verdict.candidate), None)
    if winner is None or winner.speedup is None or gain != winner.speedup.lo or gain >= winner.speedup.median:
        return ""
    layout = winner.id.partition("-")[0]
    return f"the interval of {layout} is wide: what is claimed is its lower end, {gain:.2f}×, not its median"


def layout_name(candidate: CandidateReport) -> str:
    """``c4 (SoA, compact)``."""
    return f"{candidate.id.removesuffix(f'-{candidate.variant}')} ({families(candidate)})"


def hull(hotspot: HotspotReport) -> str:
    """The doubts at the ends of the headline's interval, where it is wider than that of the advised speedup; else empty."""
    verdict = hotspot.verdict
    winner = next((c for c in hotspot.candidates if c.id == verdict.candidate), None)
    claimed = verdict.interval
    if winner is None or winner.speedup is None or claimed is None or not wider(verdict, winner.speedup):
        return ""
    ends = [(term.lo, term.hi, DOUBT_NAMES.get(term.term, term.term)) for term in winner.error_budget]
    ends.append((winner.speedup.lo, winner.speedup.hi, DOUBT_NAMES["processes"]))
    low, high = min(ends), max(ends, key=lambda end: end[1])
    if not (math.isclose(low[0], claimed.lo, rel_tol=ROUNDED) and math.isclose(high[1], claimed.hi, rel_tol=ROUNDED)):
        return ""  # made of more than this region
    first = f"{low[0]:.2f}×" if low[2] == high[2] else f"{low[0]:.2f}× ({low[2]})"
    return (
        f"The interval in the headline holds every doubt measured of {winner.id.partition('-')[0]}, from {first} to "
        f"{high[1]:.2f}× ({high[2]})."
    )


def wider(verdict: Verdict, speedup: Interval) -> bool:
    """True where the verdict's interval reaches beyond that over processes."""
    claimed = verdict.interval
    return claimed is not None and (claimed.lo < speedup.lo or claimed.hi > speedup.hi)


def tied(hotspot: HotspotReport) -> str:
    """``c3 (AoSoA×8) and 2 more are statistically tied with it.``, the fastest first; empty where nothing is."""
    verdict = hotspot.verdict
    found = [c for c in hotspot.candidates if c.id in verdict.peers and c.id not in verdict.faster]
    found.sort(key=lambda c: -c.speedup.median if c.speedup is not None else 0.0)
    names = list(dict.fromkeys(layout_name(c) for c in found))
    if not names:
        return ""
    return f"{listing(names, 2)} {'is' if len(names) == 1 else 'are'} statistically tied with it."


def faster(hotspot: HotspotReport) -> str:
    """``c4 (AoSoA×8) is faster (3.8×), but harder to write.``, the fastest of those; empty where none is."""
    found = [c for c in hotspot.candidates if c.id in hotspot.verdict.faster and c.speedup is not None]
    best = max(found, key=lambda c: c.speedup.median if c.speedup is not None else 0.0, default=None)
    if best is None or best.speedup is None:
        return ""
    return f"{layout_name(best)} is faster ({best.speedup.median:.1f}×), but harder to write."


def placed(hotspot: HotspotReport) -> str:
    """At how many addresses the layouts were timed; empty where that is one."""
    places = max((c.places for c in hotspot.candidates), default=1)
    if places == 1:
        return ""
    return (
        f"layouts were timed with their code at {places} addresses, as how fast short loops are fetched and how well "
        "branches on data are predicted hang on it: the speedup is over the mean time, the interval holds all of them"
    )


def learnt(hotspot: HotspotReport) -> str:
    """Why speedups are not those of calls repeated; empty where they are."""
    original = hotspot.original
    if original.unknown is None:
        return ""
    return (
        f"the way of a call hangs on its data: repeated it takes {nanoseconds(original.ns_steady)}, as the processor learns "
        f"its branches, {nanoseconds(original.ns_fresh)} where it knows none, {nanoseconds(original.ns_in_situ)} in the "
        f"program: speedups are of times with {original.unknown:.0%} of what is learnt unknown"
    )


def compiled(hotspot: HotspotReport) -> str:
    """How the mock-ups were compiled, and how to have that more like the program; empty where there are none."""
    by = hotspot.compiled
    if by is None:
        return ""
    text = f"mock-ups were compiled by {by.compiler} {' '.join(by.flags)}"
    if by.note:
        return f"{text} ({by.note})"
    if by.recorded:
        return f"{text}, as the program was"
    how = "-grecord-command-line" if "clang" in by.compiler else "-g"
    return (
        f"{text}: the program does not record its flags, so these are -O2 and what its instructions show (compiled with "
        f"{how} it would record them)"
    )


def headline(text: str) -> tuple[str, str]:
    """A verdict's first sentence, and what follows it."""
    found = re.search(r"\. (?=[A-Z])", text)
    return (text[: found.start() + 1], text[found.end() :]) if found else (text, "")


def permanence(candidate: CandidateReport, hotspot: HotspotReport) -> str:
    """The sentence on changes in the rest of the program that the layout needs."""
    names = listing([f"`{s.name}`" for s in hotspot.structures if s.id in candidate.structures])
    if candidate.temporary:
        return (
            f"The layout is temporary: {names} is converted before the hotspot and back after it, which the gain includes."
        )
    rest = (
        f"The layout is permanent: all code that uses {names} has to change with it, and nothing is converted at run time "
        f"({_others(candidate, hotspot)})."
    )
    if "permute" in candidate.families:
        rest += " Where the hotspot's loops can be exchanged instead, try that first: it needs no new layout."
    copied = view(candidate)
    return f"{rest} A temporary one: {copied}." if hotspot.verdict.use == "temporary" and copied else rest


def _others(candidate: CandidateReport, hotspot: HotspotReport) -> str:
    """The sentence that names other code that used the structures."""
    concerned = [s for s in hotspot.structures if s.id in candidate.structures]
    names = dict.fromkeys(f"`{user.symbol}`" for s in concerned for user in s.users)
    from_call = f"what runs before call {number(hotspot.call)} was not watched"
    if names:
        return f"seen to use {_it(concerned)} besides the hotspot: {listing(tuple(names))}; {from_call}"
    if any(s.placement is None for s in concerned):
        return f"which other functions use {_it(concerned)} is not known"
    return f"nothing but the hotspot was seen to use {_it(concerned)} while it was watched; {from_call}"


def _it(concerned: Sequence[StructureReport]) -> str:
    return "it" if len(concerned) == 1 else "them"


def proposers(hotspot: HotspotReport) -> str:
    """The ways that found the advised layout, and how many layouts each found; empty where all were found by the rules."""
    layouts = {c.id.partition("-")[0]: c.proposers for c in hotspot.candidates}
    ways = list(dict.fromkeys(name for names in layouts.values() for name in names))
    if not set(ways) - {"rules"}:
        return ""
    counts = ", ".join(f"{way} {sum(way in names for names in layouts.values())}" for way in ways)
    best = (hotspot.verdict.candidate or "").partition("-")[0]
    found = f"{best} by {', '.join(layouts[best])}; " if layouts.get(best) else ""
    return f"proposed: {found}layouts by {counts}"
