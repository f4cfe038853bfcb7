"""The first line of a report: one sentence of at most 25 words, from the report's data.

It names the data, the change and the gain; of ``keep`` the best that others reached, of ``undecided`` what is left open.
"""

from __future__ import annotations

import math
import re
from pathlib import PurePath

from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.structure import StructureReport
from layout_advise.reports.words import hotspot_words
from layout_advise.reports.words.layout_words import brief
from layout_advise.reports.words.quantities import is_cpu_time, listing
from layout_advise.reports.words.reason_words import DOUBT_NAMES, REASONS

TOO_WIDE = 4.0
"""Of an interval whose ends differ by that factor nothing is said of a layout: it would say nothing."""
MOST_WORDS = 25
FEWEST_OF_LAYOUT = 4
"""Words that a layout takes: ``as SoA of vx``."""


def headline(hotspot: HotspotReport) -> str:
    """The verdict in a sentence; where the data say too little, the first sentence of its text."""
    verdict = hotspot.verdict
    said = {"change": _change, "keep": _keep, "undecided": _undecided}[verdict.action](hotspot)
    return cut_words(said or hotspot_words.headline(verdict.text)[0])


def cut_words(text: str) -> str:
    """``text`` with at most 25 words."""
    words = text.split()
    return text if len(words) <= MOST_WORDS else f"{' '.join(words[:MOST_WORDS]).rstrip(',;:')} …"


def candidate_of(hotspot: HotspotReport, name: str | None) -> CandidateReport | None:
    """The candidate with that id."""
    return next((c for c in hotspot.candidates if c.id == name), None)


def factor(value: float) -> str:
    """``4.6×``, two digits after the point below 2."""
    return f"{value:.1f}×" if value >= 2 else f"{value:.2f}×"


def span(value: Interval) -> str:
    """``4.0–5.2``."""
    return f"{factor(value.lo)[:-1]}–{factor(value.hi)[:-1]}"


def data_name(structure: StructureReport) -> str:
    """The type of a record in backticks, else the variable's name, as of rows of an array that stand for records."""
    record = len(structure.fields) + len(structure.cold_fields) > 1
    kind = re.sub(r"^(struct|class|union) |.*\]$", "", structure.type or "")
    return f"`{kind if record and kind else structure.name}`"


def data_names(hotspot: HotspotReport, candidate: CandidateReport, room: int = MOST_WORDS) -> str:
    """The data that a candidate re-lays: of several structures of one type its name once; of names that are longer than
    ``room`` words the first, or how many there are."""
    found = [s for s in hotspot.structures if s.id in candidate.structures]
    names = list(dict.fromkeys(data_name(s) for s in found))
    if len(names) < 2:
        return listing(names, 3) or "the data"
    shorter = (listing(names, 3), f"{names[0]} and {len(names) - 1} more")
    return next((said for said in shorter if len(said.split()) <= room), f"{len(names)} structures")


def program_gain(hotspot: HotspotReport) -> float | None:
    """The estimated speedup of the whole program (Amdahl's law with the share of samples), rounded down to hundredths."""
    gain, whole = hotspot.verdict.gain, hotspot.verdict.program
    if whole is not None:
        return math.floor(100 * whole.lo) / 100
    return math.floor(100 / (1 - hotspot.share + hotspot.share / gain)) / 100 if gain else None


def _change(hotspot: HotspotReport) -> str:
    verdict = hotspot.verdict
    advised = candidate_of(hotspot, verdict.candidate)
    if advised is None or verdict.gain is None:
        return ""
    interval = verdict.interval or advised.speedup
    least = "at least " if interval is not None and verdict.gain < interval.median else ""
    doubts = " with every doubt" if advised.speedup is not None and hotspot_words.wider(verdict, advised.speedup) else ""
    around = f" ({span(interval)}{doubts})" if interval is not None else ""
    whole = program_gain(hotspot)
    part = "the program's CPU time" if is_cpu_time(hotspot.waits, hotspot.processors) else "the program"
    program = f", {part} {factor(whole)}" if whole is not None else ""
    gain = f"{_of(hotspot)} {least}{factor(verdict.gain)} faster{around}{program}."
    return f"Store {_laid_out(hotspot, advised, gain)}: {gain}"


def _laid_out(hotspot: HotspotReport, candidate: CandidateReport, rest: str) -> str:
    """The data and their layout, in as many words as ``rest`` and one in front leave."""
    room = MOST_WORDS - len(rest.split()) - 1
    names = data_names(hotspot, candidate, room - FEWEST_OF_LAYOUT)
    return f"{names} {brief(candidate, room - len(names.split()))}"


def _of(hotspot: HotspotReport) -> str:
    return hotspot_words.name(hotspot).replace("loop in ", "the loop in ", 1)


def _loop(hotspot: HotspotReport, rest: str) -> str:
    """The advice about the loop, where there is one."""
    advice = hotspot.verdict.loop
    if advice is None:
        return ""
    how = advice.text.split(" (")[0]
    return f"{rest} {_of(hotspot)}: {how}, {factor(advice.gain.median)} faster ({span(advice.gain)})."


def _keep(hotspot: HotspotReport) -> str:
    verdict = hotspot.verdict
    if said := _loop(hotspot, "Keep the layout; change"):
        return said
    if verdict.reason == "advised-layout" and (said := _after_change(hotspot)):
        return f"Keep it: {said}"
    if verdict.reason == "no-rule-applies":
        return f"Keep the layout: no layout rule applies to what {_of(hotspot)} touches."
    if verdict.reason == "no-program-gain" and verdict.program is not None:
        return f"Keep the layouts: by those measured the program runs at most {factor(verdict.program.hi)} as fast."
    best = candidate_of(hotspot, verdict.about)
    if best is None or verdict.interval is None:
        return ""
    tried = len({c.layout_id for c in hotspot.candidates if c.speedup is not None})
    others = f"the best of {tried} other layouts" if tried > 1 else "the other layout"
    rest = f"as it is: {others} runs {_of(hotspot)} at most {factor(verdict.interval.hi)} as fast."
    return f"Keep {data_names(hotspot, best, MOST_WORDS - len(rest.split()) - 1)} {rest}"


def _after_change(hotspot: HotspotReport) -> str:
    """A region of a changed program against the run before, where it has a layout that was tried there."""
    known = hotspot.baseline
    if known is None or known.candidate is None or known.speedup is None or not hotspot.structures:
        return ""
    layout = "advised" if known.advised else f"tried ({known.candidate})"
    left = f"; the best there gained {factor(known.left.median)} more" if known.left is not None else ""
    gain = f"{_of(hotspot)} {factor(known.speedup.median)} as fast as in {known.run} ({span(known.speedup)}){left}"
    return f"{data_name(hotspot.structures[0])} has the {layout} layout; {gain}."


def _undecided(hotspot: HotspotReport) -> str:
    verdict = hotspot.verdict
    if said := _loop(hotspot, "Layout undecided; change"):
        return said
    if verdict.reason == "nothing-measured" and (said := _after_change(hotspot)):
        return f"Undecided: {said}"
    best = candidate_of(hotspot, verdict.about)
    if best is not None and verdict.interval is not None:
        doubt = f"; left open by {DOUBT_NAMES[verdict.doubt]}" if verdict.doubt in DOUBT_NAMES else ""
        if verdict.interval.hi >= TOO_WIDE * verdict.interval.lo:
            return (
                f"Undecided: what was measured of {_of(hotspot)} tells no layouts apart ({span(verdict.interval)}×){doubt}."
            )
        gain = f"runs {_of(hotspot)} {span(verdict.interval)}× as fast{doubt}."
        return f"Undecided: {_laid_out(hotspot, best, gain)} {gain}"
    if verdict.reason == "not-lifted" and hotspot.not_lifted:
        first = hotspot.not_lifted[0]
        where = f"{PurePath(first.file).name}:{first.line}" if first.file else first.address
        return f"Undecided for {_of(hotspot)}: `{first.instruction.split(' ')[0]}` at {where} could not be turned into C."
    if verdict.reason in REASONS:
        return f"Undecided for {_of(hotspot)}: {REASONS[verdict.reason][0]}."
    return ""
