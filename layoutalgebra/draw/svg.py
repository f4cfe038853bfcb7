"""Pieces of the drawings: colours, sizes, a line of text, the document around."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d", "#ff9da6", "#5f6f8c")
UNUSED = "#e4e4e4"
WIDTH, MARGIN, HEIGHT = 700, 10, 26
"""Of a drawing, around it, and of a row of memory; in pixels."""


def label(x: float, y: float, text: str, size: int, colour: str = "#333", anchor: str = "start") -> str:
    """A line of text at ``x``, ``y``."""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def drawing(parts: Iterable[str], height: float, title: str) -> str:
    """One ``<svg>`` element, :data:`WIDTH` wide, without links."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'style="max-width:100%;height:auto" role="img" font-family="sans-serif"><title>{escape(title)}</title>'
        + "".join(parts)
        + "</svg>"
    )
