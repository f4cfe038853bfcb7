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
    low, high = max(0.0, low - 0.05 * (high - low)), high + 0.05 * (high - low)

    def at(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 10) * (value - low) / (high - low), 1)

    bottom = ROW * len(rows) + 8
    parts = []
    if hotspot.noise is not None:
        left, right = at(max(hotspot.noise.lo, low)), at(min(hotspot.noise.hi, high))
        parts.append(f'<rect class="band" x="{left}" y="0" width="{max(right - left, 1):.1f}" height="{bottom}"/>')
    for value in ticks_of(low, high):
        parts.append(
            f'<path class="grid" d="M{at(value)} 0V{bottom}"/>{_text(at(value), bottom + 16, f"{value:g}×", "middle")}'
        )
    parts.append(f'<path class="one" d="M{at(1.0)} 0V{bottom}"/>')
    for number, one in enumerate(rows):
        gain, y = one.speedup, ROW * number + 18
        assert gain is not None
        kind = "gain" if one.id == hotspot.verdict.candidate else "plain"
        least, most = min(_ends(one)), max(_ends(one))
        label = f"{tables.base_id(one)}  {_label(one)}"
        parts.append(_text(LEFT - 12, y + 4, label, "end"))
        parts.append(f'<path class="{kind} thin" d="M{at(least)} {y}H{at(most)}"/>')
        parts.append(f'<path class="{kind} thick" d="M{at(gain.lo)} {y}H{at(gain.hi)}"/>')
        parts.append(f'<circle class="{kind} dot" cx="{at(gain.median)}" cy="{y}" r="4.5"/>')
        if one.over_identity is not None:
            parts.append(f'<path class="one" d="M{at(one.over_identity.median)} {y - 7}v14"/>')
    return _svg(parts, bottom + 24, "Speedup over the original, by layout")


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
    parts += [_text(left - 8, height - height * y / most + 4, f"{y:g}", "end") for y in ticks_of(0, most, 5)]
    parts += [
        _text(left + (right - left) * x / calls, height + 18, f"{x:g}", "middle")
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
        parts.append(_text(right + 6, height - height * end / most + 4, label, "start"))
    parts.append(_text((left + right) / 2, height + 36, "calls in a row; milliseconds in all", "middle"))
    return _svg(parts, height + 42, "Total time by the number of calls")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Sequence[str], height: int, title: str) -> Markup:
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{escape(title)}">'
    return Markup(f"{head}{''.join(parts)}</svg>")


def _label(candidate: CandidateReport) -> str:
    text = layout_words.families(candidate)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
