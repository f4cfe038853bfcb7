"""A term as a drawing of memory with its nesting: what Jupyter shows for a term (``_repr_svg_``).

Every factor is a row of brackets below the places, so that ``A_256 ⊗ S_{0,1;4}`` reads as 256 groups of 4. A long factor is
drawn with its first indices and its last one and a gap between, so that a term of 1e9 places is as wide as one of 64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as cartesian

from layout_advise.layoutalgebra.draw.svg import COLOURS, HEIGHT, MARGIN, UNUSED, WIDTH, drawing, label
from layout_advise.layoutalgebra.draw.term_stages import member_of
from layout_advise.layoutalgebra.terms.notation import shorten
from layout_advise.layoutalgebra.terms.term import Term, factors_of, terms_of

CELLS = 48
"""Places drawn at most (a few more where there are many factors)."""
LABEL, ROW, GAP = 70, 18, 0.6
"""Width of the row labels, height of a row of brackets, width of a gap in cells."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A drawn place: its index in every factor, and where it stands (in cells from the left)."""

    index: tuple[int, ...]
    left: float


def picture(term: Term) -> str:
    """The term as one ``<svg>`` element, 700 px wide: used places in their member's colour, unused ones grey, brackets."""
    sizes = _sizes(term)
    shown = _shown(sizes)
    cells = _cells(sizes, shown)
    scale = (WIDTH - 2 * MARGIN - LABEL) / (cells[-1].left + 1)
    left = MARGIN + LABEL
    parts = [label(MARGIN, 20, shorten(str(term), 96), 13)]
    parts.extend(_places(term, sizes, cells, left, scale))
    top = 34 + HEIGHT
    for level in range(len(sizes) - 1, -1, -1):
        parts.append(label(MARGIN, top + 13, f"{sizes[level]:,}", 11))
        parts.extend(_brackets(cells, level, left, scale, top))
        top += ROW
    return drawing(parts, top + 8, f"{shorten(str(term), 200)}: {term.size:,} places")


def _sizes(term: Term) -> tuple[int, ...]:
    """The factor sizes that all terms of the ⊕ share, else the whole domain as one factor."""
    shapes = {tuple(f.size for f in factors_of(part)) for part in terms_of(term)}
    return shapes.pop() if len(shapes) == 1 else (term.size,)


def _shown(sizes: Sequence[int]) -> list[list[int]]:
    """The indices drawn of every factor: the fastest factors get the room first."""
    shown: list[list[int]] = []
    room = CELLS
    for place, size in enumerate(reversed(sizes)):
        outside = len(sizes) - 1 - place
        cap = max(2 if room > 1 else 1, min(16, room // (2 if outside else 1)))
        picked = list(range(size)) if size <= cap else [*range(cap - 1), size - 1] if cap > 2 else list(range(cap))
        shown.append(picked)
        room = max(1, room // len(picked))
    return shown[::-1]


def _cells(sizes: Sequence[int], shown: list[list[int]]) -> list[_Cell]:
    cells: list[_Cell] = []
    left = 0.0
    for index in cartesian(*shown):
        if cells and _follows(cells[-1].index, sizes) != index:
            left += GAP
        elif cells and index[-1] == 0:
            left += 0.15  # groups stand apart a little
        cells.append(_Cell(index, left))
        left += 1
    return cells


def _follows(index: tuple[int, ...], sizes: Sequence[int]) -> tuple[int, ...]:
    """The next index in memory order."""
    following = list(index)
    for level in range(len(sizes) - 1, -1, -1):
        following[level] += 1
        if following[level] < sizes[level]:
            break
        following[level] = 0
    return tuple(following)


def _places(term: Term, sizes: Sequence[int], cells: list[_Cell], left: float, scale: float) -> list[str]:
    parts, member = [], member_of(term)
    for before, cell in zip([None, *cells], cells, strict=False):
        offset = 0
        for index, size in zip(cell.index, sizes, strict=True):
            offset = offset * size + index
        used = term(offset) == 1
        colour = COLOURS[member(offset) % len(COLOURS)] if used else UNUSED
        what = f"member {member(offset)}" if used else "unused"
        x = left + cell.left * scale
        parts.append(
            f'<rect x="{x:.1f}" y="28" width="{scale:.1f}" height="{HEIGHT}" fill="{colour}" stroke="#fff">'
            f"<title>offset {offset:,}: {what}</title></rect>"
        )
        if before is not None and cell.left - before.left > 1.5:
            parts.append(label(x - 0.55 * scale, 28 + HEIGHT / 2 + 4, "…", 12))
    if _follows(cells[-1].index, sizes) != (0,) * len(sizes):  # more after the last one
        parts.append(label(left + (cells[-1].left + 1) * scale + 1, 28 + HEIGHT / 2 + 4, "…", 12))
    return parts


def _brackets(cells: list[_Cell], level: int, left: float, scale: float, top: float) -> list[str]:
    """One bracket for each run of cells of one index in the factors up to ``level``; the index below it."""
    groups: dict[tuple[int, ...], list[_Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.index[: level + 1], []).append(cell)
    parts = []
    for index, members in groups.items():
        begin, end = left + members[0].left * scale + 1, left + (members[-1].left + 1) * scale - 1
        parts.append(
            f'<path d="M{begin:.1f} {top}v4H{end:.1f}v-4" fill="none" stroke="#555" stroke-width="1">'
            f"<title>index {index[-1]:,} of factor {level}</title></path>"
        )
        if end - begin > 6 * len(str(index[-1])):
            parts.append(label((begin + end) / 2, top + 14, str(index[-1]), 9, anchor="middle"))
    return parts
