"""The cost model that orders candidates: cache lines, streams and loads of one walk over every element.

It only decides what is measured first. Its figures stand in ``Candidate.cost``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Chosen, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.explore.joint_candidates import deinterleaved
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.explore.traffic import lines_touched

PAGE = 4096
LINE_CYCLES, LOAD_CYCLES, STREAM_CYCLES, STREAMS = 12.0, 1.0, 2.0, 12
"""Cycles a line from memory, a load instruction, a stream beyond those that the prefetchers follow."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How the hotspot walks a structure: the dimension of its innermost loops, whether elements come in random order,
    which part of the elements one call touches, and which ones where they are one of each few neighbours."""

    fastest: int
    gathered: bool = False
    density: float = 1.0
    chosen: Chosen | None = None
    shared: bool = False
    """True if threads meet in its lines, each at elements of its own (false sharing)."""


def cost_of(layout: Structure | Relayout, walk: Walk, vector: int) -> dict[str, float]:
    """Lines, pages, streams and loads of one walk over every element, and the cycles that the model makes of them."""
    structure = layout if isinstance(layout, Structure) else layout.structure
    lines, pages = float(lines_touched(layout)), float(lines_touched(layout, line=PAGE))
    if isinstance(layout, Structure):
        strides = [structure.dims[walk.fastest].stride] * len(structure.fields)
        places = {(0, 0)}
    else:
        strides, places = strides_and_places(structure, layout.fields, walk.fastest)
    chosen = layout.chosen if isinstance(layout, Relayout) else None
    elements = structure.count // chosen.block if chosen else structure.count
    if walk.gathered:  # each element alone: one line for every separate record, whatever the neighbours are
        lines = max(lines, float(elements * len(places)))
    if not isinstance(layout, Structure) and deinterleaved(layout):
        lines *= walk.density  # the elements that are not touched lie apart now
    loads = 0.0
    for field, stride in zip(structure.fields, strides, strict=True):
        unit = stride == field.bytes and not walk.gathered
        loads += elements * (field.bytes / vector if unit else 1.0)
    extra = elements / 8 * max(0, len(places) - STREAMS)
    if walk.shared and (isinstance(layout, Structure) or not _unshared(layout)):
        lines += sum(f.reads + f.writes for f in structure.fields)  # the line is with the other thread each time
    cycles = lines * LINE_CYCLES + loads * LOAD_CYCLES + extra * STREAM_CYCLES
    return {"lines": lines, "pages": pages, "streams": float(len(places)), "loads": loads, "cycles": cycles}


def strides_and_places(
    structure: Structure, maps: Sequence[FieldMap], fastest: int
) -> tuple[list[int], set[tuple[int, int]]]:
    """The step of each field along the fastest dimension, and the places at which separate streams run."""
    inner = {"whole": 2, "mod": 1, "div": 0}
    moving = [[a for a in m.axes if a.dim == fastest] for m in maps]
    strides = [max(axes, key=lambda a: inner[a.part]).stride for axes in moving]
    apart = [all(a.part == "whole" for a in m.axes) for m in maps]
    places = {
        (m.buffer, m.offset if own and stride == structure.fields[m.field].bytes else 0)
        for m, stride, own in zip(maps, strides, apart, strict=True)
    }
    return strides, places


def _unshared(layout: Relayout) -> bool:
    """True if elements with different outermost indices lie on different lines."""
    first = [m.axes[0] for m in layout.fields]
    return all((a.dim, a.part) == (0, "whole") and a.stride % LINE == 0 for a in first)
