"""The grid of a structure: dimensions cut at strides of the streams and at declared sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from layout_advise.layoutalgebra.derive.accesses import ExactAccess, MemoryObjectShape
from layout_advise.layoutalgebra.derive.structure import Dim, Field
from layout_advise.layoutalgebra.sets.footprints import Box

Level = tuple[int, int]
"""(stride, trip count) of a loop, in bytes."""

DECLARED = 1 << 62
"""Weight of a declared stride: above that of any number of accesses."""


def grid(
    uses: Sequence[ExactAccess],
    obj: MemoryObjectShape,
    base: int,
    strides: dict[int, int],
    fields: Sequence[Field],
    element: int,
) -> tuple[Dim, ...] | None:
    """Dimensions with a chain of strides, each a multiple of the next one; ``None`` where no such grid holds the accesses.

    ``strides`` (with their weight) are cut at where they fit, the heaviest first; the last one is ``element``. Counts come
    from the memory object, not from the trace.
    """
    chain = [element]
    for stride in sorted(strides, key=lambda s: (-strides[s], s)):
        if stride > element and all(max(s, stride) % min(s, stride) == 0 and s != stride for s in chain):
            chain.append(stride)
    chain.sort(reverse=True)
    end = max((f.offset + f.bytes for f in fields), default=element)
    high = max(u.what.last + u.access.bytes for u in uses) - base
    if min(u.what.first for u in uses) < base:
        return None
    while chain:
        counts = [outer // inner for outer, inner in pairwise(chain)]
        extent = sum((n - 1) * s for n, s in zip(counts, chain[1:], strict=True)) + end
        outermost = (obj.base + obj.bytes - base - extent) // chain[0] + 1
        inside = outermost >= 1 and (outermost - 1) * chain[0] + extent >= high
        if inside:
            return tuple(Dim(n, s) for n, s in zip([outermost, *counts], chain, strict=True))
        chain.pop(0)
    return None


def row_strides(uses: Sequence[ExactAccess], declared: Iterable[int]) -> dict[int, int]:
    """The strides of rows that nests walk by, with the number of accesses that do, and the ``declared`` ones."""
    weight = dict.fromkeys(declared, DECLARED)
    for use in uses:
        for stride in use.what.rows:
            weight[stride] = weight.get(stride, 0) + use.what.count
    return weight


def sibling_rows(boxes: Iterable[Box]) -> dict[int, int]:
    """Row strides that stand for several rows each, and the stride of one of them.

    Where rows are touched alternately (a checkerboard, or other fields in even and odd lines), folding makes one loop over
    pairs of rows with a nest for each of the two. Such nests have the same levels and begin almost evenly spaced. Evenly
    spaced ones are no hint of anything.
    """
    starts: dict[tuple[Level, ...], set[int]] = defaultdict(set)
    for box in boxes:
        starts[box.levels].add(box.start)
    found: dict[int, int] = {}
    for levels, places in starts.items():
        _note_siblings(places, levels, found)
    return found


def _note_siblings(places: Iterable[int], levels: Sequence[Level], found: dict[int, int]) -> None:
    """Adds to ``found`` what nests show that have ``levels`` and begin at ``places`` of one iteration of the outer loops."""
    if len(levels) < 2:
        return
    stride, inner = levels[0][0], levels[1:]
    groups = _grouped(sorted({place % stride for place in places}), stride, sum(step * (trip - 1) for step, trip in inner))
    row, rest = divmod(stride, len(groups))
    if len(groups) > 1 and rest == 0:
        begins = [group[0] for group in groups]
        off = max(abs(b - a - row) for a, b in pairwise([*begins, begins[0] + stride]))
        if 0 < off <= row // 4:
            found[stride] = row
    for group in groups:
        _note_siblings(group, inner, found)


def _grouped(places: Sequence[int], stride: int, extent: int) -> list[list[int]]:
    """``places`` in groups in which one follows another within half the ``extent`` of a nest.

    They lie on a circle of ``stride`` bytes, ascending; the first group begins after the widest gap.
    """
    behind = [places[-1] - stride, *places]
    widest = max(range(len(places)), key=lambda k: places[k] - behind[k])
    turned = [*places[widest:], *(place + stride for place in places[:widest])]
    groups = [turned[:1]]
    for a, b in pairwise(turned):
        if b - a > extent // 2:
            groups.append([])
        groups[-1].append(b)
    return groups
