"""Speedups as a file, drawn by matplotlib, which is imported only then (``pip install layout-advise[figures]``)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

from layout_advise.errors import MachineError
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
    candidate, the noise floor as a band: a file of that kind, the same bytes each time. Empty where nothing was measured.
    Raises :class:`MachineError` without matplotlib."""
    rows = [layout.best for layout in tables.layouts(hotspot) if layout.best.speedup is not None][:MOST_ROWS]
    if not rows:
        return b""
    try:
        import matplotlib as mpl
    except ImportError as error:
        hint = "pip install 'layout-advise[figures]'"
        raise MachineError("cannot draw a figure", "matplotlib is not installed", hint) from error

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(7.6, 0.9 + 0.36 * (len(rows) + 1)))
        if hotspot.noise is not None:
            axes.axvspan(hotspot.noise.lo, hotspot.noise.hi, color=BAND, lw=0)
        axes.axvline(1.0, color=INK, lw=1)
        for position, candidate in enumerate(rows):
            _speedup_row(axes, position, candidate, GAIN if candidate.id == hotspot.verdict.candidate else PLAIN)
        axes.set_yticks(range(len(rows)), [f"{one.layout_id}  {_label(one)}" for one in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("times as fast as the original")
        return _drawn(figure, axes, kind)


def _speedup_row(axes: Axes, position: int, candidate: CandidateReport, colour: str) -> None:
    value = candidate.speedup
    assert value is not None
    ends = [value.lo, value.hi, *(end for term in candidate.error_budget for end in (term.lo, term.hi))]
    axes.plot([min(ends), max(ends)], [position, position], color=colour, lw=1)
    axes.plot([value.lo, value.hi], [position, position], color=colour, lw=3, solid_capstyle="round")
    axes.plot([value.median], [position], "o", color=colour, ms=7)
    if candidate.over_identity is not None:
        axes.plot([candidate.over_identity.median], [position], "|", color=INK, ms=12, mew=2)


def _drawn(figure: Figure, axes: Axes, kind: Kind) -> bytes:
    """The figure as a file, its lines in the page's colours."""
    from matplotlib import pyplot as plt

    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.tick_params(colors=INK)
    axes.grid(axis="x", color=BAND, lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    metadata: dict[str, Any] = dict(METADATA[kind])
    figure.savefig(buffer, format=kind, bbox_inches="tight", transparent=kind == "svg", metadata=metadata, dpi=200)
    plt.close(figure)
    return buffer.getvalue()


def _label(candidate: CandidateReport) -> str:
    text = layout_words.families(candidate)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
