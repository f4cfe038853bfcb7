"""Figures for the HTML report, as inline SVG made by matplotlib (imported only when a figure is drawn)."""

from __future__ import annotations

import io
import re

from layout_advise.reports import wording
from layout_advise.reports.model import CandidateReport, HotspotReport

INK = "#5b6470"
GAIN = "#1a7f4b"
PLAIN = "#3a6ea5"
BAND = "#d9dee4"
MOST_ROWS = 16
LONGEST_LABEL = 34


def speedups(hotspot: HotspotReport) -> str:
    """Speedup over the original with its 95 % interval, one row a measured candidate, the noise floor as a band.

    Returns an ``<svg>`` element, or an empty string where nothing was measured.
    """
    rows = [layout.best for layout in wording.layouts(hotspot) if layout.best.speedup is not None][:MOST_ROWS]
    if not rows:
        return ""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(
        {"svg.hashsalt": "layout-advise", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
    ):
        figure, axes = plt.subplots(figsize=(7.6, 0.9 + 0.36 * (len(rows) + 1)))
        if hotspot.noise is not None:
            axes.axvspan(hotspot.noise.lo, hotspot.noise.hi, color=BAND, lw=0)
        axes.axvline(1.0, color=INK, lw=1)
        labels = []
        for position, candidate in enumerate(rows):
            value = candidate.speedup
            assert value is not None
            colour = GAIN if candidate.id == hotspot.verdict.candidate else PLAIN
            axes.plot([value.lo, value.hi], [position, position], color=colour, lw=3, solid_capstyle="round")
            axes.plot([value.median], [position], "o", color=colour, ms=7)
            if candidate.over_identity is not None:
                axes.plot([candidate.over_identity.median], [position], "|", color=INK, ms=12, mew=2)
            labels.append(f"{wording.base_id(candidate)}  {_label(candidate)}")
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("times as fast as the original")
        axes.xaxis.label.set_color(INK)
        axes.tick_params(colors=INK)
        axes.grid(axis="x", color=BAND, lw=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            bbox_inches="tight",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
        plt.close(figure)
    return inline(buffer.getvalue())


def _label(candidate: CandidateReport) -> str:
    text = wording.families(candidate)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def inline(svg: str) -> str:
    """The ``<svg>`` element alone: no XML prologue, no doctype, no metadata (they hold URLs); ink and band follow the page's
    colours, so that a dark page stays dark."""
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor").replace(BAND, "var(--line)")
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
