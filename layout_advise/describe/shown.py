"""The parts of a candidate's report besides times: its data, its declarations and drawing, its cache lines, its C."""

from __future__ import annotations

import re
from functools import lru_cache

from layout_advise.describe.assemble import Drawn
from layout_advise.layoutalgebra.bridges.changes import source_change
from layout_advise.layoutalgebra.bridges.declarations import declare
from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout
from layout_advise.layoutalgebra.draw.memory import draw_relayout
from layout_advise.layoutalgebra.explore.traffic import lines_chosen, lines_touched

TABLE_ROWS = 2
"""Lines shown of either end of a table in a mock-up's source."""


def drawn(candidate: Candidate) -> Drawn:
    """Declarations, drawing and change of the source of a candidate (the drawing of the first thing that it stores)."""
    return Drawn(declare(candidate), draw_relayout(candidate.stored[0]), source_change(candidate))


def traffic(candidate: Candidate) -> tuple[int, int] | None:
    """Cache lines of one walk over the accessed fields, before and after; None for objects that lie anywhere now."""
    if any(layout.structure.via is not None for layout in candidate.relayouts):
        return None
    before = sum(_traffic(layout)[0] for layout in candidate.relayouts)
    return before, sum(_traffic(layout)[1] for layout in candidate.stored)


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
