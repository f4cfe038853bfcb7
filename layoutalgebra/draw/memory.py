"""The first bytes of a structure's memory as inline SVG, before and after: fields in colour, unused bytes grey."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from layout_advise.layoutalgebra.derive.chosen_elements import first_index
from layout_advise.layoutalgebra.derive.structure import Relayout, Structure

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d", "#ff9da6", "#5f6f8c")
UNUSED = "#e4e4e4"
WIDTH, MARGIN, HEIGHT, LINE, ROWS = 700, 10, 26, 64, 8


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
                    label = ",".join(map(str, index))
                    found.setdefault(start, _MemoryCell(start, structure.fields[field.field].bytes, field.field, label))
    return sorted(found.values(), key=lambda c: c.start)


def _svg(structure: Structure, strips: list[tuple[str, list[_MemoryCell], int, int]], phase: int, note: str = "") -> str:
    parts: list[str] = []
    top = 8
    for name, cells, shown, total in strips:
        parts.append(_text(MARGIN, top + 12, f"{name}: first {shown} of {total:,} bytes", "#333", 12))
        parts.extend(_strip(structure, cells, shown, top + 20, phase))
        top += HEIGHT + 48
    legend, top = _legend(structure, top + 4)
    parts.extend(legend)
    if note:
        parts.append(_text(MARGIN, top + 6, note, "#555", 12))
        top += 16
    names = ", ".join(f.name for f in structure.fields)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 6}" width="{WIDTH}" '
        f'style="max-width:100%;height:auto" role="img" font-family="sans-serif">'
        f"<title>{escape(f'memory of {structure.name}: {names}')}</title>"
    )
    return head + "".join(parts) + "</svg>"


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
            parts.append(_text(x + width / 2, top + 17, cell.element, "#fff", 11, "middle"))
    for tick in range(-phase % LINE, shown + 1, LINE):
        x = MARGIN + tick * scale
        parts.append(f'<path d="M{x:.1f} {top - 3}V{top + HEIGHT + 6}" stroke="#222" stroke-width="1.5"/>')
        if tick + LINE <= shown:
            parts.append(_text(x + 4, top + HEIGHT + 14, "64-byte line", "#666", 10))
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
        parts.append(_text(x + 16, top + 10, name, "#333", 12))
        x += width
    return parts, top + 20


def _text(x: float, y: float, text: str, colour: str, size: int, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def draw_ascii(structure: Structure, width: int = 72) -> str:
    """One element in text: a letter for each unit of a field, ``.`` for unused bytes, ``|`` at element ends."""
    unit = min((f.bytes for f in structure.fields), default=structure.element_bytes)
    row = ["."] * max(1, structure.element_bytes // unit)
    for number, f in enumerate(structure.fields):
        for k in range(f.offset // unit, min(len(row), (f.offset + f.bytes) // unit)):
            row[k] = chr(ord("A") + number % 26)
    text = "|" + "".join(row) + "|"
    copies = max(1, min(structure.dims[-1].count, (width - 4) // max(1, len(row) + 1)))
    line = text + (text[1:] * (copies - 1))
    names = "  ".join(f"{chr(ord('A') + n % 26)} = {f.name}" for n, f in enumerate(structure.fields))
    return f"{line[: width - 4]} ...\n{names}"
