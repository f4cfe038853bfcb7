"""The parts of a candidate's report besides times: its data, its declarations and drawing, its cache lines, its C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from layout_advise.describe.assemble import Drawn
from layout_advise.layoutalgebra.bridges.changes import source_change
from layout_advise.layoutalgebra.bridges.declarations import declare
from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.layoutalgebra.draw.memory import draw_relayout
from layout_advise.layoutalgebra.explore.traffic import lines_chosen, lines_touched

NEARLY_ALL = 0.95
"""From this part of a structure's elements on, the lines of all are those that the call touches, about."""
TABLE_ROWS = 2
"""Lines shown of either end of a table in a mock-up's source."""


def drawn(candidate: Candidate) -> Drawn:
    """Declarations, drawing and change of the source of a candidate (the drawing of the first thing that it stores)."""
    return Drawn(declare(candidate), draw_relayout(candidate.stored[0]), source_change(candidate))


def traffic(candidate: Candidate, used_part: Mapping[str, float]) -> tuple[int, int] | None:
    """Cache lines of one walk over the accessed fields, before and after; None for objects that lie anywhere now, and where
    the call does not come to all elements: ``used_part`` of them, by id, where an index picks them."""
    for layout in candidate.relayouts:
        structure = layout.structure
        if not structure.placed or (layout.chosen is None and not _walked(structure, used_part)):
            return None
    before = sum(_traffic(layout)[0] for layout in candidate.relayouts)
    return before, sum(_traffic(layout)[1] for layout in candidate.stored)


def _walked(structure: Structure, used_part: Mapping[str, float]) -> bool:
    """Tells whether the call may come to all elements of a structure: it makes as many accesses, and none is known to
    be left out."""
    accesses = sum(field.reads + field.writes for field in structure.fields)
    return accesses >= structure.count and used_part.get(structure.id, 1.0) >= NEARLY_ALL


@lru_cache(maxsize=64)
def _traffic(layout: Relayout) -> tuple[int, int]:
    """Of one structure; where elements are chosen, of these."""
    if layout.chosen is None:
        return lines_touched(layout.structure), lines_touched(layout)
    return lines_chosen(layout.structure, layout.chosen), lines_chosen(layout, layout.chosen)


def readable(source: str) -> str:
    """The C of a mock-up for the report: long tables are cut, the file has them whole."""

    def cut(table: re.Match[str]) -> str:
        rows = table[0].splitlines(keepends=True)
        left = len(rows) - 2 * TABLE_ROWS
        return (
            table[0]
            if left <= 0
            else "".join((*rows[:TABLE_ROWS], f"    /* ... {left} more lines */\n", *rows[-TABLE_ROWS:]))
        )

    return re.sub(r"(?:^    0x\w+,.*\n)+", cut, source, flags=re.MULTILINE)
