"""Figures made by matplotlib (imported only when a figure is drawn): speedups as a file, threads as inline SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import tables
from layout_advise.reports.words import layout_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#5b6470"
GAIN = "#1a7f4b"
PLAIN = "#3a6ea5"
BAND = "#d9dee4"
MOST_ROWS = 16
LONGEST_LABEL = 34


SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "layout-advise",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
}
METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": {"Software": None},
}
"""What would differ from run to run and between versions of matplotlib, by the format's name."""
Kind = Literal["svg", "pdf", "png"]


def speedup_file(hotspot: HotspotReport, kind: Kind) -> bytes:
    """Speedup over the original with its 95 % interval (thick) and what all doubts leave possible (thin), one row a measured
    candidate, the noise floor as a band: a file of that kind, the same bytes each time. Empty where nothing was measured."""
    rows = [layout.best for layout in tables.layouts(hotspot) if layout.best.speedup is not None][:MOST_ROWS]
    if not rows:
        return b""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(7.6, 0.9 + 0.36 * (len(rows) + 1)))
        if hotspot.noise is not None:
            axes.axvspan(hotspot.noise.lo, hotspot.noise.hi, color=BAND, lw=0)
        axes.axvline(1.0, color=INK, lw=1)
        for position, candidate in enumerate(rows):
            _speedup_row(axes, position, candidate, GAIN if candidate.id == hotspot.verdict.candidate else PLAIN)
        axes.set_yticks(range(len(rows)), [f"{tables.base_id(one)}  {_label(one)}" for one in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("times as fast as the original")
        return _drawn(figure, axes, "x", ("top", "right", "left"), kind)


def _speedup_row(axes: Axes, position: int, candidate: CandidateReport, colour: str) -> None:
    value = candidate.speedup
    assert value is not None
    ends = [value.lo, value.hi, *(end for term in candidate.error_budget for end in (term.lo, term.hi))]
    axes.plot([min(ends), max(ends)], [position, position], color=colour, lw=1)
    axes.plot([value.lo, value.hi], [position, position], color=colour, lw=3, solid_capstyle="round")
    axes.plot([value.median], [position], "o", color=colour, ms=7)
    if candidate.over_identity is not None:
        axes.plot([candidate.over_identity.median], [position], "|", color=INK, ms=12, mew=2)


def by_threads(hotspot: HotspotReport) -> str:
    """Wall time of a parallel region by its number of threads, original and candidate, with 95 % intervals; an ``<svg>``
    element, or an empty string where fewer than two numbers were measured."""
    found = hotspot.by_threads
    counts = [c for c in found.counts if c.original is not None] if found is not None else []
    if found is None or len(counts) < 2:
        return ""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    series = [("original", PLAIN, [(c.threads, c.original) for c in counts])]
    if found.candidate is not None:
        series.append((found.candidate, GAIN, [(c.threads, c.candidate) for c in counts]))
    with mpl.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(7.6, 2.6))
        for name, colour, points in series:
            known = [(threads, time) for threads, time in points if time is not None]
            if not known:
                continue
            axes.plot([t for t, _ in known], [v.ns / 1e3 for _, v in known], "o-", color=colour, ms=6, label=name)
            for threads, value in known:
                axes.plot([threads, threads], [value.lo / 1e3, value.hi / 1e3], color=colour, lw=2)
        axes.set_ylim(bottom=0)
        axes.set_xticks([c.threads for c in counts])
        axes.set_xlabel("threads")
        axes.set_ylabel("µs a call")
        axes.legend(frameon=False, labelcolor=INK)
        return inline(_drawn(figure, axes, "y", ("top", "right"), "svg").decode())


def _drawn(figure: Figure, axes: Axes, grid: Literal["x", "y"], bare: Sequence[str], kind: Kind) -> bytes:
    """The figure as a file, its lines in the page's colours; ``bare`` sides have no frame."""
    from matplotlib import pyplot as plt

    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.tick_params(colors=INK)
    axes.grid(axis=grid, color=BAND, lw=0.6)
    axes.set_axisbelow(True)
    for side in bare:
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    metadata: dict[str, Any] = dict(METADATA[kind])
    figure.savefig(buffer, format=kind, bbox_inches="tight", transparent=kind == "svg", metadata=metadata, dpi=200)
    plt.close(figure)
    return buffer.getvalue()


def _label(candidate: CandidateReport) -> str:
    text = layout_words.families(candidate)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def inline(svg: str) -> str:
    """The ``<svg>`` element alone: no XML prologue, no doctype, no metadata (they hold URLs); ink and band follow the page's
    colours, so that a dark page stays dark."""
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor").replace(BAND, "var(--line)")
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
