"""The page's charts as SVG written by hand: small, quick to make, in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import tables
from layout_advise.reports.words import layout_words

MOST_ROWS = 16
LONGEST_LABEL = 34
LEFT, WIDTH, ROW = 270, 700, 26


def ticks_of(low: float, high: float, most: int = 7) -> list[float]:
    """Round values from ``low`` to ``high``, at most so many."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9) / most))
    step = next(s for s in (step, 2 * step, 5 * step, 10 * step) if (high - low) / s <= most)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def speedup_chart(hotspot: HotspotReport) -> Markup:
    """Speedup over the original with its 95 % interval (thick) and what all doubts leave possible (thin), one row a layout,
    the noise floor as a band; empty where nothing was measured."""
    rows = [layout.best for layout in tables.layouts(hotspot) if layout.best.speedup is not None][:MOST_ROWS]
    if not rows:
        return Markup("")
    ends = [end for one in rows for end in _ends(one)]
    low, high = min(1.0, *ends), max(1.0, *ends)
    margin = 0.05 * (high - low) or 0.05  # all may be just 1
    low, high = max(0.0, low - margin), high + margin

    def at(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 10) * (value - low) / (high - low), 1)

    bottom = ROW * len(rows) + 8
    parts = []
    if hotspot.noise is not None:
        left, right = at(max(hotspot.noise.lo, low)), at(min(hotspot.noise.hi, high))
        parts.append(f'<rect class="band" x="{left}" y="0" width="{max(right - left, 1):.1f}" height="{bottom}"/>')
    for value in ticks_of(low, high):
        parts.append(
            f'<path class="grid" d="M{at(value)} 0V{bottom}"/>{text_at(at(value), bottom + 16, f"{value:g}×", "middle")}'
        )
    parts.append(f'<path class="one" d="M{at(1.0)} 0V{bottom}"/>')
    for number, one in enumerate(rows):
        gain, y = one.speedup, ROW * number + 18
        assert gain is not None
        kind = "gain" if one.id == hotspot.verdict.candidate else "plain"
        least, most = min(_ends(one)), max(_ends(one))
        label = f"{one.layout_id}  {_label(one)}"
        parts.append(text_at(LEFT - 12, y + 4, label, "end"))
        parts.append(f'<path class="{kind} thin" d="M{at(least)} {y}H{at(most)}"/>')
        parts.append(f'<path class="{kind} thick" d="M{at(gain.lo)} {y}H{at(gain.hi)}"/>')
        parts.append(f'<circle class="{kind} dot" cx="{at(gain.median)}" cy="{y}" r="4.5"/>')
        if one.over_identity is not None:
            parts.append(f'<path class="one" d="M{at(one.over_identity.median)} {y - 7}v14"/>')
    return chart(parts, bottom + 24, "Speedup over the original, by layout")


def _ends(one: CandidateReport) -> list[float]:
    value = one.speedup
    assert value is not None
    over = [one.over_identity.median] if one.over_identity is not None else []
    return [value.lo, value.hi, *over, *(end for term in one.error_budget for end in (term.lo, term.hi))]


def break_even_chart(hotspot: HotspotReport) -> Markup:
    """Total time by the number of calls: as it is, in the advised layout with one conversion there and back, and with none;
    empty where that was not measured."""
    best = next((c for c in hotspot.candidates if c.id == hotspot.verdict.candidate), None)
    ns = hotspot.original.ns_in_situ or hotspot.original.ns_steady
    costs, gain = (best.conversion, best.speedup) if best is not None else (None, None)
    if costs is None or gain is None or not ns or gain.median <= 1 or not costs.break_even_calls:
        return Markup("")
    calls, once = 2.5 * costs.break_even_calls, costs.in_ms + costs.out_ms
    own, new = calls * ns / 1e6, calls * ns / 1e6 / gain.median
    most, height, left, right = 1.05 * max(own, once + new), 170, 60, WIDTH - 150

    def spot(x: float, y: float) -> str:
        return f"{left + (right - left) * x / calls:.1f} {height - height * y / most:.1f}"

    parts = [f'<path class="grid" d="M{spot(0, y)}L{spot(calls, y)}"/>' for y in ticks_of(0, most, 5)]
    parts += [text_at(left - 8, height - height * y / most + 4, f"{y:g}", "end") for y in ticks_of(0, most, 5)]
    parts += [
        text_at(left + (right - left) * x / calls, height + 18, f"{x:g}", "middle")
        for x in ticks_of(0, calls, 8)
        if x % 1 == 0
    ]
    parts.append(f'<path class="one" d="M{spot(costs.break_even_calls, 0)}L{spot(costs.break_even_calls, most)}"/>')
    lines = (
        ("as it is", 0.0, own, "plain"),
        ("converted once", once, once + new, "gain"),
        ("permanent", 0.0, new, "gain dotted"),
    )
    for label, start, end, kind in lines:
        parts.append(f'<path class="{kind} line" d="M{spot(0, start)}L{spot(calls, end)}"/>')
        parts.append(text_at(right + 6, height - height * end / most + 4, label, "start"))
    parts.append(text_at((left + right) / 2, height + 36, "calls in a row; milliseconds in all", "middle"))
    return chart(parts, height + 42, "Total time by the number of calls")


def threads_chart(hotspot: HotspotReport) -> Markup:
    """Wall time of a parallel region by its number of threads, original and candidate, with 95 % intervals; empty where
    fewer than two numbers were measured."""
    found = hotspot.by_threads
    counts = [c for c in found.counts if c.original is not None] if found is not None else []
    if found is None or len(counts) < 2:
        return Markup("")
    series = [("original", "plain", [(c.threads, c.original) for c in counts])]
    if found.candidate is not None:
        series.append((found.candidate, "gain", [(c.threads, c.candidate) for c in counts]))
    few, many = min(c.threads for c in counts), max(c.threads for c in counts)
    most = 1.05 * max(value.hi for _, _, points in series for _, value in points if value is not None) / 1e3
    height, left, right = 170, 60, WIDTH - 150

    def spot(threads: int, ns: float) -> tuple[float, float]:
        return left + (right - left) * (threads - few) / max(many - few, 1), height - height * ns / 1e3 / most

    parts = [f'<path class="grid" d="M{left} {height - height * y / most:.1f}H{right}"/>' for y in ticks_of(0, most, 5)]
    parts += [text_at(left - 8, height - height * y / most + 4, f"{y:g}", "end") for y in ticks_of(0, most, 5)]
    parts += [text_at(spot(c.threads, 0)[0], height + 18, str(c.threads), "middle") for c in counts]
    for label, kind, points in series:
        known = [(threads, value) for threads, value in points if value is not None]
        spots = [spot(threads, value.ns) for threads, value in known]
        if not spots:
            continue
        parts.append(f'<path class="{kind} line" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in spots)}"/>')
        for (x, y), (threads, value) in zip(spots, known, strict=True):
            low, high = (spot(threads, end)[1] for end in (value.lo, value.hi))
            parts.append(f'<path class="{kind} thin" d="M{x:.1f} {low:.1f}V{high:.1f}"/>')
            parts.append(f'<circle class="{kind} dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(text_at(right + 6, spots[-1][1] + 4, label, "start"))
    parts.append(text_at((left + right) / 2, height + 36, "threads; µs a call", "middle"))
    return chart(parts, height + 42, "Time of a call by the number of threads")


def text_at(x: float, y: float, text: str, anchor: str) -> str:
    """A text of a chart, beginning, ending or centred there."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def chart(parts: Sequence[str], height: int, title: str, about: str = "") -> Markup:
    """The chart with a name, and where there is one a description, for who does not see it."""
    head = f'<svg class="chart wide" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{escape(title)}">'
    told = f"<title>{escape(title)}</title><desc>{escape(about)}</desc>" if about else ""
    return Markup(f"{head}{told}{''.join(parts)}</svg>")


def _label(candidate: CandidateReport) -> str:
    text = layout_words.families(candidate)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
