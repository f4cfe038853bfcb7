"""Drawings of fields that are used together, as SVG: the matrix of affinities and the field graph of memory distances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from layout_advise.reports.model.structure import FieldPair, FieldUse, StructureReport

MOST_FIELDS = 12
"""Fields in a drawing, those with most accesses; the table has all pairs."""
CELL, LABEL, LONGEST = 34, 130, 16
"""Pixels of a cell and of the names beside, characters of a name."""
RADIUS, DOT = 95, 13
DARKEST = 0.48
"""Opacity of a cell of affinity 1: its number stays readable."""
LINE_BYTES, PAGE_BYTES = 64, 4096
"""Up to so many bytes apart fields are near, and not far."""


def drawn_fields(structure: StructureReport) -> list[FieldUse]:
    """The fields that the drawings have, in the order of their offsets."""
    paired = {name for pair in structure.pairs for name in (pair.first, pair.second)}
    used = [field for field in structure.fields if field.name in paired]
    most = sorted(used, key=lambda field: -(field.reads + field.writes))[:MOST_FIELDS]
    return sorted(most, key=lambda field: (field.offset, field.name))


def affinity_matrix(structure: StructureReport) -> Markup:
    """Below the diagonal the affinity of each two fields, the darker the greater; empty without pairs."""
    fields, pairs = drawn_fields(structure), _by_names(structure.pairs)
    if len(fields) < 2:
        return Markup("")
    parts = []
    for row, field in enumerate(fields):
        y = CELL * row
        parts.append(_text(LABEL - 8, y + CELL / 2 + 4, _short(field.name), "end"))
        for column, other in enumerate(fields[:row]):
            pair, x = pairs.get(frozenset((field.name, other.name))), LABEL + CELL * column
            if pair is None:
                continue
            value = pair.affinity
            where = f'x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}"'
            parts.append(f'<rect class="heat" {where} fill-opacity="{DARKEST * value:.2f}"/>')
            parts.append(_text(x + CELL / 2 - 1, y + CELL / 2 + 4, _part(value), "middle"))
        if row < len(fields) - 1:
            parts.append(_text(LABEL + CELL * row + 4, y + CELL / 2 + 4, _short(field.name), "start"))
    size = CELL * len(fields)
    return _svg(parts, (0, 0, LABEL + size + LABEL, size), f"Affinity of the fields of {structure.name}")


def field_graph(structure: StructureReport) -> Markup:
    """The fields in a circle, the larger the more often they are used, joined where the call uses them within a cache line's
    length (thick) or a page's (thin) of accessed bytes; empty without pairs."""
    fields = drawn_fields(structure)
    if len(fields) < 2:
        return Markup("")
    spots = {
        field.name: (
            RADIUS * math.sin(2 * math.pi * k / len(fields)),
            -RADIUS * math.cos(2 * math.pi * k / len(fields)),
        )
        for k, field in enumerate(fields)
    }
    parts = [
        _edge(spots[pair.first], spots[pair.second], pair)
        for pair in structure.pairs
        if pair.first in spots and pair.second in spots and pair.distance <= PAGE_BYTES
    ]
    most = max(field.reads + field.writes for field in fields)
    for field in fields:
        x, y = spots[field.name]
        radius = 3 + (DOT - 3) * math.sqrt((field.reads + field.writes) / max(most, 1))
        side = "middle" if abs(x) < 1 else "start" if x > 0 else "end"
        away = DOT + 5 if side != "middle" else 0
        down = 4 if side != "middle" else (DOT + 16 if y > 0 else -DOT - 6)
        parts.append(f'<circle class="plain dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
        parts.append(_text(x + math.copysign(away, x), y + down, _short(field.name), side))
    left, top = -RADIUS - DOT - LABEL, -RADIUS - DOT - 22
    return _svg(parts, (left, top, -2 * left, -2 * top), f"Field graph of {structure.name}")


def _edge(start: tuple[float, float], end: tuple[float, float], pair: FieldPair) -> str:
    kind = "near" if pair.distance <= LINE_BYTES else "far"
    names = f"{pair.first} and {pair.second}: {pair.distance} bytes"
    line = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
    return f'<path class="plain {kind}" d="{line}"><title>{escape(names)}</title></path>'


def _by_names(pairs: Sequence[FieldPair]) -> Mapping[frozenset[str], FieldPair]:
    return {frozenset((pair.first, pair.second)): pair for pair in pairs}


def _part(value: float) -> str:
    """``1``, ``.25``, ``0``: short enough for a cell; what is not quite 0 or 1 does not look like it."""
    return f"{value:g}" if value in (0.0, 1.0) else f"{min(max(value, 0.01), 0.99):.2f}"[1:]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Sequence[str], box: tuple[float, float, float, float], title: str) -> Markup:
    where = " ".join(f"{value:g}" for value in box)
    head = f'<svg class="chart" viewBox="{where}" width="{box[2]:g}" role="img" aria-label="{escape(title)}">'
    return Markup(f"{head}{''.join(parts)}</svg>")
