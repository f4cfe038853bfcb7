"""The set of addresses that a stream touches: boxes ``start + sum(stride_k * i_k)``, ``0 <= i_k < trip_k``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, prod
from typing import TYPE_CHECKING

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Loop, Node, Point, Stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WALKED = 0.05
"""Part of a reference's accesses that makes the stride of a nest one of rows."""
MANY = 50_000
"""Triangular nests are cut into at most this many boxes."""


@dataclass(frozen=True, slots=True)
class Box:
    """``levels`` are (stride > 0, trip > 1), largest stride first; ``count`` accesses (repetitions included)."""

    start: int
    levels: tuple[tuple[int, int], ...]
    count: int

    @property
    def last(self) -> int:
        """The greatest address."""
        return self.start + sum(stride * (trip - 1) for stride, trip in self.levels)


@dataclass(frozen=True, slots=True)
class Touched:
    """The exact set of addresses of one reference: ``boxes`` and ``chosen`` (explicit addresses, ascending) together.

    ``grain`` is the greatest common divisor of all differences of its addresses (0 for a single one), ``rows`` the
    strides of its nests except each nest's smallest one, as far as a good part of the accesses walks by them: folding finds
    small nests in what a filter leaves of an array, too. ``fastest`` is the stride of the innermost loop (0 for none).
    """

    boxes: tuple[Box, ...]
    chosen: NDArray[np.int64] | None
    grain: int
    rows: tuple[int, ...]
    fastest: int
    first: int
    last: int
    count: int


def touched(stream: Stream) -> Touched | None:
    """The set of a stream, or ``None`` where it is not known exactly.

    Raises :class:`AlgebraError` for a stream without accesses.
    """
    if isinstance(stream, AddressSet):
        return _of_set(stream)
    boxes: list[Box] = []
    if not _boxes(stream.nodes, (), (), boxes):
        return None
    if not boxes:
        raise AlgebraError("a stream without accesses", "it touches nothing")
    grain, rows = 0, Counter[int]()
    for box in boxes:
        grain = gcd(grain, box.start - boxes[0].start, *(stride for stride, _ in box.levels))
        rows.update(dict.fromkeys((stride for stride, _ in box.levels[:-1]), box.count))
    first, last, count = min(b.start for b in boxes), max(b.last for b in boxes), sum(b.count for b in boxes)
    walked = tuple(sorted(stride for stride, n in rows.items() if n >= WALKED * count))
    return Touched(tuple(boxes), None, grain, walked, _innermost(stream), first, last, count)


def _of_set(stream: AddressSet) -> Touched | None:
    import numpy as np

    parts = []
    for one in stream.clusters or (stream,):
        if one.bitmap is None:
            return None
        bits = np.flatnonzero(np.unpackbits(np.frombuffer(one.bitmap, dtype=np.uint8), bitorder="little"))
        parts.append(one.minimum + max(one.gcd, 1) * bits.astype(np.int64))
    chosen = np.concatenate(parts)
    return Touched((), chosen, stream.gcd, (), 0, stream.minimum, stream.maximum, stream.count)


def places_in(what: Touched, base: int, size: int) -> list[int]:
    """The offsets in elements of ``size`` bytes, from ``base`` on, at which the accesses start, ascending; exact."""
    found: set[int] = set()
    for box in what.boxes:
        here = {(box.start - base) % size}
        for stride, trip in box.levels:
            steps = range(min(trip, size // gcd(stride, size)))
            here = {(place + stride * k) % size for place in here for k in steps}
        found |= here
    if what.chosen is not None:
        found.update(set(((what.chosen - base) % size).tolist()))
    return sorted(found)


def _innermost(stream: FoldedStream) -> int:
    """The stride of the innermost loop that moves, in the first nest."""
    best, nodes, depth = 0, stream.nodes, 0
    while nodes and isinstance(nodes[0], Loop):
        nodes, depth = nodes[0].body, depth + 1
    if nodes and isinstance(nodes[0], Point):
        moving = [c for c in nodes[0].address.coefs[:depth] if c]
        best = abs(moving[-1]) if moving else 0
    return best


def _depends(nodes: Iterable[Node], level: int) -> bool:
    """True where a trip count inside depends on loop number ``level``."""
    return any(
        isinstance(n, Loop) and ((len(n.trip.coefs) > level and n.trip.coefs[level] != 0) or _depends(n.body, level))
        for n in nodes
    )


def _boxes(nodes: tuple[Node, ...], fixed: tuple[int | None, ...], trips: tuple[int, ...], out: list[Box]) -> bool:
    """Append the boxes of ``nodes``; enclosing loops are either run one by one (``fixed``) or whole (``None``)."""
    for node in nodes:
        if len(out) > MANY:
            return False
        if isinstance(node, Point):
            out.append(_box(node, fixed, trips))
            continue
        indices = tuple(i or 0 for i in fixed)
        trip = node.trip.at(indices)
        if trip <= 0:
            continue
        if trip > 1 and _depends(node.body, len(fixed)):
            if trip > MANY:
                return False
            if not all(_boxes(node.body, (*fixed, i), (*trips, 1), out) for i in range(trip)):
                return False
        elif not _boxes(node.body, (*fixed, None), (*trips, trip), out):
            return False
    return True


def _box(point: Point, fixed: tuple[int | None, ...], trips: tuple[int, ...]) -> Box:
    start, levels = point.address.const, []
    for coef, index, trip in zip(point.address.coefs, fixed, trips, strict=False):
        if index is not None:
            start += coef * index
        elif trip > 1 and coef:
            start += coef * (trip - 1) if coef < 0 else 0
            levels.append((abs(coef), trip))
    return Box(start, tuple(sorted(levels, reverse=True)), prod(trips))


def mark(bits: NDArray[np.bool_], item: Touched, base: int, unit: int, access_bytes: int) -> None:
    """Set ``bits[k]`` for every unit ``k`` (``unit`` bytes from ``base``) that the accesses of ``item`` cover.

    ``unit`` must divide every address minus ``base``, and ``access_bytes``.
    """
    import numpy as np

    for part in range(access_bytes // unit):
        if item.chosen is not None:
            bits[(item.chosen - base) // unit + part] = True
        for box in item.boxes:
            view = np.lib.stride_tricks.as_strided(
                bits[(box.start - base) // unit + part :],
                shape=tuple(trip for _, trip in box.levels) or (1,),
                strides=tuple(stride // unit for stride, _ in box.levels) or (1,),
            )
            view[...] = True
