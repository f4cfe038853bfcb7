"""The address ranges of a folded stream's points, without expanding it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream

EXPAND_LIMIT = 1 << 22
"""A point with more addresses than this is not expanded."""
PEEL_LIMIT = 1 << 10
"""An outermost loop with more iterations than this is not written out one by one."""


@dataclass(frozen=True, slots=True)
class AddressSpan:
    """Addresses of one point of a nest, or of a whole set: all lie in ``low`` .. ``high`` (both included).

    The bounds are reached where every loop runs at least once for all indices; else they may be wider. ``count`` accesses,
    ``None`` where only an expansion tells.
    """

    low: int
    high: int
    count: int | None
    source: Point | AddressSet
    trips: tuple[Affine, ...] = ()


def spans(stream: Stream) -> tuple[AddressSpan, ...]:
    """One span per point of the nest that is executed; one for a set, or for each cluster of it."""
    if isinstance(stream, AddressSet):
        return tuple(AddressSpan(s.minimum, s.maximum, s.count, s) for s in stream.clusters or (stream,) if s.count)
    found = tuple(_spans(stream.nodes, ()))
    if len(found) == 1:  # all accesses are this point's, whatever the shape of the nest
        only = found[0]
        return (AddressSpan(only.low, only.high, stream.count, only.source, only.trips),)
    return found


def _spans(nodes: Sequence[Node], trips: tuple[Affine, ...]) -> Iterator[AddressSpan]:
    for node in nodes:
        if not isinstance(node, Point):
            yield from _spans(node.body, (*trips, node.trip))
            continue
        bounds = hull(node.address, trips)
        if bounds is not None:
            yield AddressSpan(*bounds, _count(trips), node, trips)


def within(stream: Stream, low: int, high: int) -> Stream | None:
    """The part of ``stream`` whose addresses lie in ``low`` .. ``high - 1``.

    In its order where it is folded and its loops can be taken apart there; else as a set. How often a set accesses each of
    its addresses is not known: the part's ``count`` is then that of the whole in proportion to the addresses, and of a part
    made of a folded stream exact. None where the addresses are not known or too many.
    """
    if isinstance(stream, AddressSet):
        return _set_within(stream, low, high)
    kept = _within(stream.nodes, (), low, high)
    if kept is not None:
        return FoldedStream(*kept)
    every = [addresses(span) for span in _spans(stream.nodes, ())]
    if any(one is None for one in every):
        return None
    found = np.concatenate([one[(one >= low) & (one < high)] for one in every if one is not None])
    return set_of(np.unique(found), found.size)


def _set_within(found: AddressSet, low: int, high: int) -> AddressSet | None:
    if not found.exact:
        return None
    parts, count = [], 0
    for one in found.clusters or (found,):
        if one.maximum < low or one.minimum >= high:
            continue
        inside = _members(one, low, high)
        if inside is None:
            return None
        parts.append(inside)
        count += max(inside.size, round(one.count * (inside.size / _size(one))))
    return set_of(np.concatenate([np.empty(0, np.int64), *parts]), count)


def set_of(kept: NDArray[np.int64], count: int) -> AddressSet | None:
    """The set of the ascending addresses ``kept``; None where a bitmap of it is too large."""
    if kept.size == 0:
        return AddressSet(0, 0, 0, 0, b"")
    low, high = int(kept[0]), int(kept[-1])
    step = int(np.gcd.reduce(kept - low))
    length = (high - low) // step + 1 if step else 1
    if length > 8 * EXPAND_LIMIT:
        return None
    bits = np.zeros(length, dtype=np.uint8)
    bits[(kept - low) // max(step, 1)] = 1
    return AddressSet(low, high, step, count, np.packbits(bits, bitorder="little").tobytes())


def _within(nodes: Sequence[Node], trips: tuple[Affine, ...], low: int, high: int) -> tuple[tuple[Node, ...], int] | None:
    found: list[Node] = []
    total = 0
    for node in nodes:
        part = _part_within(node, trips, low, high)
        if part is None:
            return None
        found += part[0]
        total += part[1]
    return tuple(found), total


def _part_within(node: Node, trips: tuple[Affine, ...], low: int, high: int) -> tuple[tuple[Node, ...], int] | None:
    if isinstance(node, Point):
        bounds = hull(node.address, trips)
        if bounds is None or bounds[1] < low or bounds[0] >= high:
            return (), 0
        count = _count(trips)
        return ((node,), count) if count is not None and low <= bounds[0] and bounds[1] < high else None
    inner = _within(node.body, (*trips, node.trip), low, high)
    if inner is not None:
        return ((Loop(node.trip, inner[0]),) if inner[0] else ()), inner[1]
    if trips or node.trip.const > PEEL_LIMIT:
        return None
    return _within([_at(part, index) for index in range(node.trip.const) for part in node.body], (), low, high)


def _at(node: Node, index: int) -> Node:
    """The node in iteration ``index`` of the loop around it."""
    if isinstance(node, Point):
        return Point(_fixed(node.address, index))
    return Loop(_fixed(node.trip, index), tuple(_at(part, index) for part in node.body))


def _fixed(affine: Affine, index: int) -> Affine:
    return Affine(affine.const + affine.coefs[0] * index, affine.coefs[1:]) if affine.coefs else affine


def hull(address: Affine, trips: Sequence[Affine]) -> tuple[int, int] | None:
    """Least and greatest value of ``address`` over the nest (``None``: no iteration), innermost loop eliminated first.

    Where a coefficient is positive the last index ``trip - 1`` gives the maximum; that is affine in the outer indices
    again, so triangular nests need no enumeration.
    """
    if any(not any(trip.coefs) and trip.const <= 0 for trip in trips):
        return None
    return -_maximum(address, trips, -1), _maximum(address, trips, 1)


def _maximum(address: Affine, trips: Sequence[Affine], sign: int) -> int:
    constant = sign * address.const
    coefs = [sign * c for c in address.coefs] + [0] * (len(trips) - len(address.coefs))
    for depth in reversed(range(len(trips))):
        factor, trip = coefs[depth], trips[depth]
        if factor > 0:
            constant += factor * (trip.const - 1)
            for outer, coef in enumerate(trip.coefs[:depth]):
                coefs[outer] += factor * coef
    return constant


def _count(trips: Sequence[Affine]) -> int | None:
    total = 1
    for trip in trips:
        if any(trip.coefs):
            return None
        total *= trip.const
    return total


def addresses(span: AddressSpan) -> NDArray[np.int64] | None:
    """Every address of the span, of a set each once; ``None`` where there are too many or the set is inexact."""
    if isinstance(span.source, AddressSet):
        return _set_addresses(span.source)
    index = np.zeros((1, 0), dtype=np.int64)
    for trip in span.trips:
        times = np.maximum(_values(trip, index), 0)
        if times.sum() > EXPAND_LIMIT:
            return None
        inner = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        index = np.column_stack([np.repeat(index, times, axis=0), inner])
    return _values(span.source.address, index)


def _values(affine: Affine, index: NDArray[np.int64]) -> NDArray[np.int64]:
    width = index.shape[1]
    coefs = np.array((*affine.coefs, *[0] * width)[:width], dtype=np.int64)
    return affine.const + index @ coefs


def _set_addresses(found: AddressSet) -> NDArray[np.int64] | None:
    if found.clusters:
        parts = [_set_addresses(one) for one in found.clusters]
        known = [part for part in parts if part is not None]
        return np.concatenate(known) if len(known) == len(parts) else None
    return _members(found, found.minimum, found.maximum + 1)


def _members(found: AddressSet, low: int, high: int) -> NDArray[np.int64] | None:
    """The ascending addresses in ``low`` .. ``high - 1`` of a set with a bitmap, of which only that part is unpacked."""
    if found.bitmap is None:
        return None
    step = max(found.gcd, 1)
    begin = max(low - found.minimum + step - 1, 0) // step // 8
    end = min((high - 1 - found.minimum) // step // 8 + 1, len(found.bitmap))
    if end - begin > EXPAND_LIMIT:
        return None
    if end <= begin:
        return np.empty(0, np.int64)
    part = np.frombuffer(found.bitmap, np.uint8, end - begin, begin)
    places = np.flatnonzero(np.unpackbits(part, bitorder="little")).astype(np.int64)
    every = found.minimum + found.gcd * (8 * begin + places)
    return every[(every >= low) & (every < high)]


def _size(found: AddressSet) -> int:
    """How many addresses a set with a bitmap has."""
    return int.from_bytes(found.bitmap or b"", "little").bit_count()


def meets_set(found: AddressSet, low: int, high: int) -> bool:
    """True where some address of the set is in ``low`` .. ``high - 1``, or where that is not known."""
    for one in found.clusters or (found,):
        if one.count and one.maximum >= low and one.minimum < high:
            inside = _members(one, low, high)
            if inside is None or inside.size:
                return True
    return False
