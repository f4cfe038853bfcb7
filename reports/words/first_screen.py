"""The first screen of a report: headline, evidence in a few words, the change to paste, and at most three things to know."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import SourceError
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.contract import Check, Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.wanted import chosen
from layout_advise.reports.words import glossary, hotspot_words, live_words, quantities, reason_words
from layout_advise.reports.words.headline import candidate_of, cut_words, data_name, factor, headline, program_gain, span

RUN = "RUN"
"""The word in a command for a run directory that is not named."""
MOST_NOTES = 3
"""Things to know on the first screen; the others are below it."""

IN_CXX = (".cc", ".cpp", ".cxx", ".C", ".c++")
WRITTEN = (".c", *IN_CXX)
"""Ends of the files that ``apply`` writes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A word of evidence with its icon; ``good`` is None where it is neither."""

    icon: str
    text: str
    good: bool | None = None


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """The answer about a region. ``change`` has the lines of a diff, ``notes`` what the user has to know, most important
    first, the first three of which are shown at once."""

    headline: str
    evidence: tuple[Mark, ...]
    change: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApplyCommand:
    """The shell's ``command``, and what it writes: ``layout`` is ``it`` for what is advised, maybe with the loop as it is,
    else the layout's name, and why it is another one. Its gain stands there where that is not more than what is claimed: it
    was measured once."""

    command: str
    layout: str


def first_screen(report: Report, hotspot: HotspotReport) -> FirstScreen:
    """What to show of ``hotspot`` before everything else."""
    advised = candidate_of(hotspot, hotspot.verdict.candidate)
    change = tuple(advised.change.splitlines()) if advised is not None else ()
    notes = tuple(dict.fromkeys(_notes(report, hotspot, advised)))
    return FirstScreen(headline(hotspot), tuple(_evidence(report, hotspot, advised)), change, notes)


def apply_command(hotspot: HotspotReport, run: str = RUN) -> ApplyCommand | None:
    """The command that writes the advised layout into the source, of the run in directory ``run``, or the best layout that
    can be written. None where none is advised or can be, or the source is neither C nor C++."""
    if hotspot.verdict.action != "change" or not (hotspot.file or "").endswith(WRITTEN):
        return None
    try:
        found = chosen(hotspot)
    except SourceError:
        return None
    if found is None:
        return None
    candidate, advised = found.candidate, candidate_of(hotspot, hotspot.verdict.candidate)
    it = advised is not None and candidate.id == advised.id
    named = () if it else ("--candidate", candidate.id)
    patch = f"{run.removesuffix('.layout')}.patch"
    own = candidate.speedup
    gain = factor(own.median) if own is not None and own.median <= (hotspot.verdict.gain or 0.0) else ""
    other = ", ".join(filter(None, (hotspot_words.layout_name(candidate), gain, found.instead)))
    layout = "it" if it else other
    if not it and advised is not None and candidate.layout_id == advised.layout_id:
        form = ", not for SIMD" if advised.variant in ("simd", "lanes") else ""
        layout = f"it (the loop as it is{form}{f'; {gain}' if gain else ''})"
    return ApplyCommand(shlex.join(("layout-advise", "apply", run, *named, "-o", patch, "--build", "make")), layout)


def views_command(hotspot: HotspotReport, run: str = RUN) -> str | None:
    """The command that annotates the loops of a region of C++ for a temporary layout; None where none is advised."""
    advised = candidate_of(hotspot, hotspot.verdict.candidate)
    pays = advised is not None and hotspot.verdict.action == "change"
    if not pays or not (hotspot.file or "").endswith(IN_CXX):
        return None
    if hotspot.verdict.use != "temporary" and not (advised is not None and advised.temporary):
        return None
    source = Path(hotspot.file or "")
    output = f"{source.stem}_annotated{source.suffix}"
    return shlex.join(("layout-advise", "views", "--from", run, str(source), "-o", output))


def _evidence(report: Report, hotspot: HotspotReport, advised: CandidateReport | None) -> Iterator[Mark]:
    """``verified · 9 processes · original varies by 2 % · 63 % of the samples · 8/9 checks``."""
    tried = [c for c in hotspot.candidates if c.speedup is not None or c.live is not None]
    if advised is not None:
        good = advised.evidence in ("live", "verified", "close")
        yield Mark("✓" if good else "!", advised.evidence, good)
    elif tried:
        many = len({c.layout_id for c in tried})
        yield Mark("✓", f"{many} layout{'s' if many > 1 else ''} measured", True)
    else:
        yield Mark("!", "not measured", False)
    counted = advised or max(tried, key=lambda c: c.speedup.restores or 0 if c.speedup else 0, default=None)
    if counted is not None and counted.speedup is not None and counted.speedup.restores:
        yield Mark("↻", f"{counted.speedup.restores} processes")
    if hotspot.noise is not None and tried:
        floor = max(hotspot.noise.hi, 1 / hotspot.noise.lo if hotspot.noise.lo > 0 else 1.0) - 1
        yield Mark("≈", f"original varies by {floor:.1%}".replace("%", " %"))
    waiting = f", waits {hotspot.waits:.0%} of its time" if quantities.waits_much(hotspot.waits) else ""
    yield Mark("◔", f"{hotspot.share:.0%} of samples{waiting}".replace("%", " %"))
    checks = report.quality.checks
    failed = [check for check in checks if not check.ok]
    if failed:
        effects = {effect_of(check, report) for check in failed}
        known = effects <= set(reason_words.NO_MATTER) and len(effects) == 1
        some = f"{len(failed)} of {len(checks)} checks"
        if effects == {reason_words.IN_THE_INTERVAL}:
            held = reason_words.HELD.get(failed[0].id) if len(failed) == 1 else None
            yield Mark("±", f"the interval holds {held} ({some})" if held else f"the interval holds what {some} found")
        else:
            yield Mark("!", f"{some} failed, {effects.pop()}" if known else f"{some} failed", None if known else False)


def _notes(report: Report, hotspot: HotspotReport, advised: CandidateReport | None) -> Iterator[str]:
    failed = [check for check in report.quality.checks if not check.ok]
    if text := live_words.tried(advised or candidate_of(hotspot, hotspot.verdict.about)):
        yield text
    if hotspot.baseline is not None:
        yield from _parts(hotspot.baseline.text)
    if advised is not None and hotspot.verdict.action == "change":
        yield from _promise(advised)
        yield from _use(hotspot, advised)
        yield from (
            check_effect(check, report) for check in failed if effect_of(check, report) not in reason_words.NO_MATTER
        )
        yield from _shares(hotspot, advised)
    elif hotspot.verdict.action == "undecided":
        yield from _doubts(hotspot)
    else:
        yield from _best(hotspot)
    for part in _parts(hotspot_words.headline(hotspot.verdict.text)[1]) if hotspot.verdict.action != "change" else ():
        if part not in reason_words.DOUBT_REMEDIES.values() and not part.startswith("Most of that is"):
            yield part
    if hotspot.verdict.action == "keep":
        yield from _nothing_to_arrange(hotspot)
    if hotspot.verdict.action != "change" and hotspot.verdict.interval is not None:
        yield from (check_effect(check, report) for check in failed)


def _parts(text: str) -> Iterator[str]:
    """The parts of a text that stand for themselves."""
    while text:
        first, text = hotspot_words.headline(text)
        yield first


def _nothing_to_arrange(hotspot: HotspotReport) -> Iterator[str]:
    """Why no rule applies to the largest structures, where none does to any."""
    if hotspot.verdict.reason == "no-rule-applies":
        largest = sorted((s for s in hotspot.structures if s.note), key=lambda s: -s.bytes)
        yield from (f"{data_name(s)} ({quantities.size(s.bytes)}): {s.note}." for s in largest[:2])


def _promise(advised: CandidateReport) -> Iterator[str]:
    """What the loop has to be written like beside the layout."""
    if advised.variant == "restrict":
        yield "Declare the new arrays `restrict`: the gain was measured so."
    elif advised.variant == "simd":
        yield "Declare the arrays `restrict` and write the loop for SIMD (`#pragma omp simd`; gcc: -fopenmp-simd)."
    elif advised.variant == "lanes":
        yield "Write the loop over each block's elements inside the others, arrays `restrict`: see the mock-up in C below."


def _use(hotspot: HotspotReport, advised: CandidateReport) -> Iterator[str]:
    """Where the change has to be made: for good or around calls, and who else uses the data."""
    structures = [s for s in hotspot.structures if s.id in advised.structures]
    names = quantities.listing(list(dict.fromkeys(data_name(s) for s in structures)), 3)
    costs = advised.conversion
    calls = costs.break_even_calls if costs is not None else None
    if hotspot.verdict.use == "temporary" and costs is not None and costs.around is not None:
        yield f"A temporary copy pays too: {factor(costs.around.median)} faster converting around every call."
    elif advised.temporary:
        yield "The gain includes converting the data before each call and back after it."
    elif costs is not None and costs.around is not None and costs.around.median < 1 and calls:
        slower = factor(1 / costs.around.median)
        once = f", or convert once: that pays off after {calls} consecutive calls" if calls > 1 else ""
        yield f"Change it permanently{once}. Converting around every call is {slower} slower."
    others = list(dict.fromkeys(f"`{user.symbol}`" for s in structures for user in s.users))
    before = f"Code before call {quantities.number(hotspot.call)} was not monitored."
    places = [s.placement for s in structures if s.placement is not None]
    if others:
        yield f"Update every use of {names}, also in {quantities.listing(others, 3)}. {before}"
    elif len(places) < len(structures) or not places:
        yield f"Update every use of {names}; other functions were not monitored."
    else:
        first, last = min(p.first_call for p in places), max(p.first_call + p.periods for p in places)
        part = "partial end pages unmonitored" if all(p.gapless for p in places) else "monitored in part"
        calls_between = f"between calls {quantities.number(first)} and {quantities.number(last)} ({part})"
        yield f"Update every use of {names}. No other accesses observed {calls_between}. {before}"


def _shares(hotspot: HotspotReport, advised: CandidateReport) -> Iterator[str]:
    """The parts of the gain, and what is as good."""
    if advised.speedup is not None and advised.over_identity is not None:
        alone = advised.speedup.median / advised.over_identity.median
        if alone >= 1.05:
            whole, layout = factor(advised.speedup.median), factor(advised.over_identity.median)
            yield f"{whole} = {factor(alone)} recompiled loop × {layout} layout."
    yield from filter(None, (hotspot_words.faster(hotspot), hotspot_words.tied(hotspot)))
    if hull := hotspot_words.hull(hotspot):
        yield hull
    if program_gain(hotspot):
        share = f"{hotspot.share:.0%}".replace("%", " %")
        yield f"Program speedup {factor(program_gain(hotspot) or 1.0)} is estimated from {share} of the samples."


def _doubts(hotspot: HotspotReport) -> Iterator[str]:
    """What is open, and what narrows it."""
    verdict = hotspot.verdict
    best = candidate_of(hotspot, verdict.about)
    term = next((t for t in best.error_budget if t.term == verdict.doubt), None) if best is not None else None
    if term is not None:
        name = reason_words.DOUBT_NAMES.get(term.term, term.term)
        yield f"{name[0].upper()}{name[1:]} leaves {factor(term.lo)[:-1]}–{factor(term.hi)}: {term.how}."
    for entry in hotspot.not_lifted[:1] if best is None else ():
        at = f"{entry.file}:{entry.line}" if entry.file else entry.address
        yield f"Not lifted: `{entry.instruction}` at {at} ({entry.reason})."
    if verdict.doubt in reason_words.DOUBT_REMEDIES:
        yield reason_words.DOUBT_REMEDIES[verdict.doubt]
    elif verdict.reason in reason_words.REASONS:
        yield reason_words.REASONS[verdict.reason][1]
    yield from _best(hotspot)


def _best(hotspot: HotspotReport) -> Iterator[str]:
    """What the best layout was measured to gain, where none is advised."""
    best = candidate_of(hotspot, hotspot.verdict.about)
    if best is not None and best.speedup is not None:
        measured = f"{hotspot_words.layout_name(best)} was measured at {factor(best.speedup.median)} ({span(best.speedup)})"
        yield f"{measured}{_widest(hotspot, best)}."


def _widest(hotspot: HotspotReport, best: CandidateReport) -> str:
    """``; the form of the mock-up leaves up to 1.05×``, where of a ``keep`` that is more than was measured; what is less is
    over another build; else empty."""
    claimed, measured = hotspot.verdict.interval, best.speedup
    if hotspot.verdict.action != "keep" or claimed is None or measured is None:
        return ""
    if claimed.hi < 0.99 * measured.hi:
        return f" over the original; over the fastest build of the unchanged layout it is at most {factor(claimed.hi)}"
    if claimed.hi < 1.01 * measured.hi:
        return ""
    term = max(best.error_budget, key=lambda one: one.hi, default=None)
    name = reason_words.DOUBT_NAMES.get(term.term, term.term) if term is not None else "every doubt"
    return f"; {name} leaves up to {factor(claimed.hi)}"


def effect_of(check: Check, report: Report) -> str:
    """What a failed check means for the result."""
    effect = reason_words.CHECK_EFFECTS.get(check.id, glossary.CHECK_NOTES.get(check.id, ""))
    timed = any(c.speedup is not None or c.live is not None for h in report.hotspots for c in h.candidates)
    return effect if timed or effect != reason_words.IN_THE_INTERVAL else reason_words.NOTHING_TIMED


def check_effect(check: Check, report: Report) -> str:
    """A failed check in a sentence, with what it means or what to do."""
    effect = effect_of(check, report)
    return f"{check.text[0].upper()}{check.text[1:]}: {effect}." if effect else f"{check.text}."


def short(screen: FirstScreen) -> tuple[str, ...]:
    """The notes of the first screen."""
    return tuple(cut_words(note) if note.count(" ") > 40 else note for note in screen.notes[:MOST_NOTES])
