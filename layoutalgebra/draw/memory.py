"""The first bytes of a structure's memory as inline SVG, before and after: fields in colour, unused bytes grey."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from layout_advise.layoutalgebra.derive.chosen_elements import first_index
from layout_advise.layoutalgebra.derive.structure import Relayout, Structure
from layout_advise.layoutalgebra.draw.svg import COLOURS, HEIGHT, MARGIN, UNUSED, WIDTH, drawing, label

LINE, ROWS = 64, 8
"""Bytes of a cache line; buffers drawn at most."""


@dataclass(frozen=True, slots=True)
class _MemoryCell:
    start: int
    bytes: int
    field: int
    element: str


def draw(structure: Structure) -> str:
    """The first elements as they lie in memory, with a tick at every 64-byte line. One ``<svg>`` element, 700 px wide."""
    shown = min(max(256, 2 * structure.element_bytes), structure.element_bytes * structure.dims[-1].count, 1024)
    cells = [
        _MemoryCell(k * structure.element_bytes + f.offset, f.bytes, number, str(k))
        for k in range(-(-shown // structure.element_bytes))
        for number, f in enumerate(structure.fields)
    ]
    return _svg(structure, [(structure.name, cells, shown, structure.bytes)], structure.base % LINE)


def draw_relayout(relayout: Relayout) -> str:
    """The first bytes of every buffer of the new layout (at most eight buffers). One ``<svg>`` element, 700 px wide."""
    strips = []
    for number, buffer in enumerate(relayout.buffers[:ROWS]):
        shown = min(256, buffer.bytes)
        strips.append((buffer.name, _cells(relayout, number, shown), shown, buffer.bytes))
    more = len(relayout.buffers) - ROWS
    return _svg(relayout.structure, strips, 0, f"and {more} more buffers like these" if more > 0 else "")


def _cells(relayout: Relayout, buffer: int, shown: int) -> list[_MemoryCell]:
    """The fields in the first ``shown`` bytes of a buffer.

    Each dimension is walked alone from the first element, which reaches all of them.
    """
    structure = relayout.structure
    origin = first_index(relayout)
    found: dict[int, _MemoryCell] = {}
    for field in relayout.fields:
        if field.buffer != buffer:
            continue
        for dim, size in enumerate(structure.dims):
            for value in range(min(size.count, 1024)):
                index = tuple(value if k == dim else origin[k] for k in range(len(structure.dims)))
                if not relayout.holds(index):
                    continue
                start = field.place(index)
                if start < shown:
                    element = ",".join(map(str, index))
                    found.setdefault(start, _MemoryCell(start, structure.fields[field.field].bytes, field.field, element))
    return sorted(found.values(), key=lambda c: c.start)


def _svg(structure: Structure, strips: list[tuple[str, list[_MemoryCell], int, int]], phase: int, note: str = "") -> str:
    parts: list[str] = []
    top = 8
    for name, cells, shown, total in strips:
        parts.append(label(MARGIN, top + 12, f"{name}: first {shown} of {total:,} bytes", 12))
        parts.extend(_strip(structure, cells, shown, top + 20, phase))
        top += HEIGHT + 48
    legend, top = _legend(structure, top + 4)
    parts.extend(legend)
    if note:
        parts.append(label(MARGIN, top + 6, note, 12, "#555"))
        top += 16
    names = ", ".join(f.name for f in structure.fields)
    return drawing(parts, top + 6, f"memory of {structure.name}: {names}")


def _strip(structure: Structure, cells: list[_MemoryCell], shown: int, top: int, phase: int) -> list[str]:
    """One row of memory: unused background, cells, line ticks below."""
    scale = (WIDTH - 2 * MARGIN) / shown
    parts = [f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{HEIGHT}" fill="{UNUSED}"/>']
    for cell in cells:
        width = (min(cell.start + cell.bytes, shown) - cell.start) * scale
        if width <= 0:
            continue
        x = MARGIN + cell.start * scale
        name = structure.fields[cell.field].name
        title = escape(f"{name} of element {cell.element}, byte {cell.start}")
        colour = COLOURS[cell.field % len(COLOURS)]
        parts.append(
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" fill="{colour}" stroke="#fff" '
            f'stroke-width="1"><title>{title}</title></rect>'
        )
        if width >= 7 * len(cell.element) + 4:
            parts.append(label(x + width / 2, top + 17, cell.element, 11, "#fff", "middle"))
    for tick in range(-phase % LINE, shown + 1, LINE):
        x = MARGIN + tick * scale
        parts.append(f'<path d="M{x:.1f} {top - 3}V{top + HEIGHT + 6}" stroke="#222" stroke-width="1.5"/>')
        if tick + LINE <= shown:
            parts.append(label(x + 4, top + HEIGHT + 14, "64-byte line", 10, "#666"))
    return parts


def _legend(structure: Structure, top: int) -> tuple[list[str], int]:
    """Coloured squares with the fields' names, wrapped; then the unused bytes."""
    parts, x = [], MARGIN
    entries = [(f.name, COLOURS[n % len(COLOURS)]) for n, f in enumerate(structure.fields[:24])]
    for name, colour in [*entries, ("unused", UNUSED)]:
        width = 26 + 7 * len(name)
        if x + width > WIDTH - MARGIN:
            x, top = MARGIN, top + 18
        parts.append(f'<rect x="{x}" y="{top}" width="12" height="12" fill="{colour}" stroke="#999" stroke-width="0.5"/>')
        parts.append(label(x + 16, top + 10, name, 12))
        x += width
    return parts, top + 20
