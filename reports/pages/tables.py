"""The rows of the reports' tables: the layouts in order, the ablation, a parallel region by its number of threads."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.words.layout_words import families
from layout_advise.reports.words.quantities import interval, listing, number, shares, spent


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout with its variants folded: ``best`` is shown, ``others`` are its further variants, each followed by the
    names of those with the same machine code. ``same`` are those of ``best``."""

    id: str
    best: CandidateReport
    others: tuple[tuple[CandidateReport, tuple[str, ...]], ...]
    same: tuple[str, ...] = ()


def layouts(hotspot: HotspotReport) -> list[Layout]:
    """The layouts in the order of :func:`ranked`, one entry for all variants of a layout."""
    found: dict[str, list[CandidateReport]] = {}
    for candidate in ranked(hotspot):
        found.setdefault(candidate.layout_id, []).append(candidate)
    return [_folded(name, variants) for name, variants in found.items()]


def _folded(name: str, variants: list[CandidateReport]) -> Layout:
    """``variants`` of one layout, the best first, those with the same machine code as one."""
    codes: dict[str, list[CandidateReport]] = {}
    for variant in variants:
        codes.setdefault(variant.same_code_as or variant.id, []).append(variant)
    (best, same), *others = [(first, tuple(v.variant for v in more)) for first, *more in codes.values()]
    return Layout(name, best, tuple(others), same)


def ranked(hotspot: HotspotReport) -> list[CandidateReport]:
    """Candidates, the winner first, then by evidence and by the lower end of their speedup."""
    order = {"live": 0, "verified": 0, "close": 1, "replayed": 2, "modelled": 3, "rejected": 4}

    def key(candidate: CandidateReport) -> tuple[int, int, float, float, str]:
        lines = candidate.traffic.lines_after if candidate.traffic else 1 << 60
        return (
            0 if candidate.id == hotspot.verdict.candidate else 1,
            order[candidate.evidence],
            -(shown.median if (shown := candidate.speedup or candidate.replay) else 0.0),
            lines,
            candidate.id,
        )

    return sorted(hotspot.candidates, key=key)


def ablation(hotspot: HotspotReport) -> list[tuple[str, str, str]]:
    """Rows (layout, without SIMD, with SIMD) of speedups over the original; empty where there is nothing to tell apart."""
    found = hotspot.ablation
    if found is None:
        return []
    candidate = next((c for c in hotspot.candidates if c.id == found.candidate), None)
    name = f"{candidate.layout_id} {families(candidate)}" if candidate else found.candidate
    return [
        ("as it is", interval(found.neither), interval(found.simd)),
        (name, interval(found.layout), interval(found.both)),
        *_by_form(hotspot),
    ]


def factors(hotspot: HotspotReport) -> list[tuple[str, Interval]]:
    """The parts of the gain, whose medians multiply to it: of the loop, the layout and SIMD. The interval of a part is that
    of its two builds in the same rounds, and holds the quotient of their speedups. Empty where one of them was not timed."""
    found = hotspot.ablation
    if found is None or found.neither is None or found.layout is None or found.both is None:
        return []
    layout = _part(found.layout, found.neither, found.layout_alone)
    return [("loop", found.neither), ("layout", layout), ("SIMD", _part(found.both, found.layout, found.simd_alone))]


def _part(after: Interval, before: Interval, timed: Interval | None) -> Interval:
    """``after`` over ``before``; without a ratio of the same rounds the interval is that of any two times."""
    quotient = after.median / before.median
    low, high = (timed.lo, timed.hi) if timed is not None else (after.lo / before.hi, after.hi / before.lo)
    return Interval(quotient, min(low, quotient), max(high, quotient), timed.restores if timed is not None else None)


def factors_line(hotspot: HotspotReport) -> str:
    """``3.75× = 0.25× loop [0.24, 0.26] × …``; empty where there is nothing to tell apart."""
    parts = factors(hotspot)
    whole = hotspot.ablation.both if hotspot.ablation is not None else None
    if whole is None or not parts:
        return ""
    told = (f"{part.median:.2f} {name} [{part.lo:.2f}, {part.hi:.2f}]" for name, part in parts)
    return f"{whole.median:.2f}× = {' × '.join(told)}"


def _by_form(hotspot: HotspotReport) -> list[tuple[str, str, str]]:
    """The rows for a layout in blocks in plain C and with vector types: of the first layout of which both were timed, empty
    where there is none."""
    forms: dict[str, dict[str, Interval]] = {}
    for candidate in ranked(hotspot):
        if candidate.speedup is not None:
            forms.setdefault(candidate.layout_id, {})[candidate.variant] = candidate.speedup
    for layout in layouts(hotspot):
        found = forms.get(layout.id, {})
        if {"lanes", "simd"} <= set(found):
            name = f"{layout.id} {families(layout.best)}"
            return [
                (f"{name} in plain C (lanes)", "", interval(found["lanes"])),
                (f"{name} in vector types (simd)", "", interval(found["simd"])),
            ]
    return []


def by_threads(hotspot: HotspotReport) -> list[tuple[str, ...]]:
    """Rows (threads, original, over one thread, layout, speedup of the layout, time in the body) of a parallel region by its
    number of threads; empty for others."""
    if hotspot.by_threads is None:
        return []
    return [
        (
            number(c.threads) + ("*" if c.threads == hotspot.by_threads.own else ""),
            spent(c.original),
            interval(c.scaling),
            spent(c.candidate),
            interval(c.speedup),
            shares(c.shares),
        )
        for c in hotspot.by_threads.counts
    ]


def by_threads_heads(hotspot: HotspotReport) -> tuple[str, ...]:
    """The heads of the columns of :func:`by_threads`."""
    name = hotspot.by_threads.candidate if hotspot.by_threads else None
    return "threads", "original", "over 1 thread", name or "layout", "over the original", "a thread's share"


def by_threads_notes(hotspot: HotspotReport) -> list[str]:
    """Notes below the table: the program's own number of threads, the refused numbers, and why no scaling is claimed."""
    found = hotspot.by_threads
    if found is None:
        return []
    lines = [f"*: the program's own number is {found.own}; times are wall times of the region, in restored processes"]
    other = [number(c.threads) for c in found.counts if c.same_result is False]
    if other:
        text = (
            f"with {listing(other)} the region leaves other bytes than with {found.own} (its data depends on their number)"
        )
        lines.append(f"{text}: each layout was compared with the original of as many threads, and no scaling is claimed")
    for count in found.counts:
        threads = "1 thread" if count.threads == 1 else f"{count.threads} threads"
        lines += [f"{threads} refused: {count.reason}"] if count.reason else []
        lines += [f"{found.candidate} refused with {threads}: {count.candidate_reason}"] if count.candidate_reason else []
    return lines
