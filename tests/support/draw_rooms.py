"""Draws the rooms of the house and the imports between them: ``python -m tests.support.draw_rooms`` writes the drawing.

Each top-level folder is a band, each room in it a box. A room stands to the right of all rooms that it imports; arrows that
follow from others are left out. The drawing depends on the code alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

import networkx as nx

from tests.support.house import product_modules, room_graph, top_graph
from tests.support.paths import ROOT

DRAWING = ROOT / "docs" / "architecture.svg"
BOX_WIDTH, BOX_HEIGHT = 96, 28
COLUMN, ROW = 134, 42
MARGIN, HEADER = 16, 36
LEAST_WIDTH = 1000
STYLE = """
  text { font-family: sans-serif; font-size: 12px; fill: #1c2733 }
  .top { font-size: 14px; font-weight: bold }
  .note { font-size: 11px; fill: #5b6875 }
  .band { fill: #f3f6f9; stroke: #c5d0da }
  .room { fill: #ffffff; stroke: #4a6b8a }
  .arrow { fill: none; stroke: #7d93a8; marker-end: url(#tip) }
"""
TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#7d93a8"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Band:
    """One top-level folder: where each of its rooms stands, as (column, row), and the arrows between them."""

    top: str
    places: dict[str, tuple[int, int]]
    arrows: tuple[tuple[str, str], ...]

    @property
    def height(self) -> int:
        """In pixels."""
        return HEADER + ROW * (1 + max((row for _, row in self.places.values()), default=0))

    @property
    def width(self) -> int:
        """In pixels."""
        columns = 1 + max((column for column, _ in self.places.values()), default=0)
        return max(LEAST_WIDTH, COLUMN * (columns - 1) + BOX_WIDTH + 2 * MARGIN)


def bands() -> list[Band]:
    """The top-level folders, the one that imports all others first."""
    order = list(nx.lexicographical_topological_sort(top_graph()))
    return [_band(top) for top in order]


def svg() -> str:
    """The whole drawing."""
    shown = bands()
    width = max(band.width for band in shown)
    full, height = width + 2 * MARGIN, sum(band.height + MARGIN for band in shown) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {height}" width="{full}" height="{height}">',
        f"<style>{STYLE}</style><defs>{TIP}</defs>",
    ]
    y = MARGIN
    for band in shown:
        lines += _drawn(band, y, width)
        y += band.height + MARGIN
    return "\n".join([*lines, "</svg>", ""])


def _band(top: str) -> Band:
    """Rooms in columns by the longest way of imports to a room that imports no other; rooms that import each other share
    a column."""
    graph = room_graph(top)
    groups = nx.condensation(graph)
    members = {node: sorted(groups.nodes[node]["members"]) for node in groups}
    reduced = nx.transitive_reduction(groups)
    depth: dict[int, int] = {}
    for node in reversed(list(nx.topological_sort(groups))):
        depth[node] = 1 + max((depth[below] for below in groups.successors(node)), default=-1)
    places: dict[str, tuple[int, int]] = {}
    rows: Counter[int] = Counter()
    for node in sorted(depth, key=lambda node: members[node]):
        for room in members[node]:
            places[room] = depth[node], rows[depth[node]]
            rows[depth[node]] += 1
    between = [(source, target) for a, b in reduced.edges for source in members[a] for target in members[b]]
    within = [edge for edge in graph.edges if any(set(edge) <= set(group) for group in members.values())]
    arrows = {edge for edge in between if edge in graph.edges} | set(within)
    return Band(top, places, tuple(sorted(arrows)))


def _drawn(band: Band, top: int, width: int) -> list[str]:
    """A band of so many pixels whose upper edge is at ``top``."""
    paths = [module.path for module in product_modules() if module.top == band.top and module.room is None]
    beside = sorted(path.stem for path in paths if not path.stem.startswith("_"))
    below = ", ".join(sorted(top_graph().successors(band.top))) or "nothing"
    note = f"imports {below}" + (f" · {len(beside)} modules beside the rooms" if beside else "")
    lines = [
        f'<rect class="band" x="{MARGIN}" y="{top}" width="{width}" height="{band.height}" rx="6"/>',
        f'<text class="top" x="{2 * MARGIN}" y="{top + 22}">{escape(band.top)}/</text>',
        f'<text class="note" x="{2 * MARGIN + 120}" y="{top + 22}">{escape(note)}</text>',
    ]
    corners = {room: (2 * MARGIN + COLUMN * column, top + HEADER + ROW * row) for room, (column, row) in band.places.items()}
    lines += [_arrow(corners[source], corners[target]) for source, target in band.arrows]
    for room, (x, y) in sorted(corners.items()):
        lines.append(f'<rect class="room" x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4"/>')
        lines.append(f'<text x="{x + 8}" y="{y + 18}">{escape(room)}/</text>')
    return lines


def _arrow(source: tuple[int, int], target: tuple[int, int]) -> str:
    """From the left edge of the room that imports to the right edge of the one that it imports."""
    half = BOX_HEIGHT // 2
    x, y, to_x, to_y = source[0], source[1] + half, target[0] + BOX_WIDTH, target[1] + half
    if source[0] == target[0]:  # rooms that import each other
        to_x = target[0]
        return f'<path class="arrow" d="M{x} {y} C{x - 24} {y} {to_x - 24} {to_y} {to_x} {to_y}"/>'
    bend = (x - to_x) // 2
    return f'<path class="arrow" d="M{x} {y} C{x - bend} {y} {to_x + bend} {to_y} {to_x} {to_y}"/>'


if __name__ == "__main__":
    DRAWING.write_text(svg())
