"""How many distinct cache lines the accessed elements lie on, before and after (the report's traffic).

Exact, and fast on large structures: byte intervals whose gaps are smaller than a line touch the same lines as one long
interval, so dense dimensions collapse by arithmetic; only sparse ones are written out with NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layout_advise.layoutalgebra.derive.chosen_elements import positions
from layout_advise.layoutalgebra.derive.structure import Axis, Chosen, FieldMap, Relayout, Structure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Box = Sequence[range]
"""The touched indices of each dimension (hull); all of them where not given."""


def lines_touched(layout: Structure | Relayout, box: Box | None = None, line: int = 64) -> int:
    """Distinct lines of ``line`` bytes on which the accessed fields of the elements in ``box`` lie.

    For a :class:`Structure` at its addresses, for a :class:`Relayout` in its new buffers (each starting on a line).
    """
    structure = layout if isinstance(layout, Structure) else layout.structure
    box = tuple(box) if box is not None else tuple(range(dim.count) for dim in structure.dims)
    if isinstance(layout, Structure):
        pieces = [(structure.base + f.offset, f.bytes) for f in structure.fields]
        axes = [(dim.stride, len(steps), steps.step) for dim, steps in zip(structure.dims, box, strict=True)]
        start = sum(dim.stride * steps.start for dim, steps in zip(structure.dims, box, strict=True))
        return _lines([(p + start, b) for p, b in pieces], [(s * t, n) for s, n, t in axes], line)
    total = 0
    for buffer in range(len(layout.buffers)):
        groups: dict[tuple[tuple[int, int], ...], list[tuple[int, int]]] = {}
        for field in layout.fields:
            if field.buffer == buffer:
                start, walk = _walk(field, box)
                groups.setdefault(walk, []).append((start, structure.fields[field.field].bytes))
        total += _lines_of_groups(list(groups.items()), line)
    return total


def lines_chosen(layout: Structure | Relayout, chosen: Chosen, line: int = 64) -> int:
    """As :func:`lines_touched`, of the ``chosen`` elements only; a :class:`Relayout` has to be one of these."""
    import numpy as np

    structure = layout if isinstance(layout, Structure) else layout.structure
    dims, rest = structure.dims, positions(chosen)
    outer: list[Ints] = []
    for dim in range(chosen.dim, -1, -1):
        rest, index = np.divmod(rest, dims[dim].count)
        outer.insert(0, index)
    groups: dict[tuple[int, tuple[Axis, ...]], list[tuple[int, int]]] = {}
    if isinstance(layout, Structure):
        axes = tuple(Axis(k, "whole", 1, dim.stride) for k, dim in enumerate(dims))
        groups[0, axes] = [(structure.base + f.offset, f.bytes) for f in structure.fields]
    else:
        for m in layout.fields:
            groups.setdefault((m.buffer, m.axes), []).append((m.offset, structure.fields[m.field].bytes))
    spans: dict[int, list[tuple[Ints, Ints]]] = {}
    for (buffer, axes), pieces in groups.items():
        at = np.zeros(chosen.elements, dtype=np.int64)
        for axis in axes:
            if axis.dim <= chosen.dim:
                at += axis.stride * axis.digit(outer[axis.dim])
        inner = [(axis.stride, dims[axis.dim].count) for axis in axes if axis.dim > chosen.dim]
        begins, ends = _intervals(pieces, inner, line)
        spans.setdefault(buffer, []).append(((at[:, None] + begins).ravel(), (at[:, None] + ends).ravel()))
    pairs = [(np.concatenate([b for b, _ in found]), np.concatenate([e for _, e in found])) for found in spans.values()]
    return sum(_count(begins, ends, line) for begins, ends in pairs)


def _walk(field: FieldMap, box: Box) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Start and (stride, count) axes of a field's elements; a touched part of a split dimension counts whole blocks."""
    start, walk = field.offset, []
    for axis in field.axes:
        steps = box[axis.dim]
        if axis.part == "whole":
            start += axis.stride * steps.start
            walk.append((axis.stride * steps.step, len(steps)))
        elif axis.part == "div":
            first, last = steps[0] // axis.block, steps[-1] // axis.block
            start += axis.stride * first
            walk.append((axis.stride, last - first + 1))
        else:
            walk.append((axis.stride, min(axis.block, len(steps))))
    return start, tuple(walk)


def _lines_of_groups(groups: list[tuple[tuple[tuple[int, int], ...], list[tuple[int, int]]]], line: int) -> int:
    import numpy as np

    if len(groups) == 1:
        return _lines(groups[0][1], list(groups[0][0]), line)
    spans = [_intervals(pieces, list(walk), line) for walk, pieces in groups]
    return _count(np.concatenate([s for s, _ in spans]), np.concatenate([e for _, e in spans]), line)


def _lines(pieces: list[tuple[int, int]], axes: list[tuple[int, int]], line: int) -> int:
    starts, ends = _intervals(pieces, axes, line)
    return _count(starts, ends, line)


def _intervals(pieces: list[tuple[int, int]], axes: list[tuple[int, int]], line: int) -> tuple[Ints, Ints]:
    """Start and end of byte intervals that touch exactly the lines of all elements; axes are applied smallest first."""
    import numpy as np

    spans = _joined([(start, start + size) for start, size in pieces], line)
    starts = np.array([s for s, _ in spans], dtype=np.int64)
    ends = np.array([e for _, e in spans], dtype=np.int64)
    for stride, count in sorted(axes):
        if stride - int((ends - starts).min()) < line:  # each interval's copies run together on their own
            ends = ends + stride * (count - 1)
            continue
        shifts = stride * np.arange(count, dtype=np.int64)[:, None]
        starts, ends = (starts + shifts).reshape(-1), (ends + shifts).reshape(-1)
    return starts, ends


def _joined(spans: list[tuple[int, int]], line: int) -> list[tuple[int, int]]:
    """Intervals with gaps below a line, united: no line lies wholly inside such a gap."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start - joined[-1][1] < line:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _count(starts: Ints, ends: Ints, line: int) -> int:
    """Distinct lines of the intervals."""
    import numpy as np

    first, last = starts // line, (ends - 1) // line
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    before = np.concatenate([[first[0] - 1], np.maximum.accumulate(last)[:-1]])
    return int(np.maximum(0, last - np.maximum(first, before + 1) + 1).sum())
