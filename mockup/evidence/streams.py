"""Hulls and residues of folded streams without expanding them one by one, and their expansion to arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.layoutalgebra.sets.spans import addresses, meets_set, spans, within

Addresses = NDArray[np.uint64]
_Iterations = tuple[NDArray[np.int64], NDArray[np.int64]]

AT_ONCE = 1 << 20
"""Addresses that are expanded at once where trip counts differ, so that the indices behind them stay small."""


HULLS = 4096
_hulls: dict[int, tuple[FoldedStream, tuple[int, int]]] = {}
"""Known hulls by the stream's identity (to hash a stream costs as much as to walk it): each mock-up asks for all."""


def hull(stream: Stream) -> tuple[int, int]:
    """Smallest and greatest address of the stream (start addresses of the accesses).

    An affine function on a nest of affine loops is extreme at a corner; where some trip count is 0 at a corner the nest is
    expanded instead. Raises ValueError for an empty stream.
    """
    if not isinstance(stream, FoldedStream):
        return stream.minimum, stream.maximum
    known = _hulls.get(id(stream))
    if known is not None and known[0] is stream:
        return known[1]
    found = [bound for node in stream.nodes for bound in _corners(node, (), _degenerate(node, ()))]
    if len(_hulls) >= HULLS:
        _hulls.clear()
    _hulls[id(stream)] = stream, (min(found), max(found))
    return min(found), max(found)


def steps_of(stream: Stream) -> frozenset[int]:
    """By how many bytes the stream moves from one iteration of its loops to the next, or, where these were few, from one
    access to the next, without the sign; empty where it did not fold."""

    def inside(nodes: Sequence[Node]) -> Iterator[int]:
        for node in nodes:
            yield from map(abs, node.address.coefs) if isinstance(node, Point) else inside(node.body)
        for one, other in pairwise(nodes):
            if isinstance(one, Point) and isinstance(other, Point) and one.address.coefs == other.address.coefs:
                yield abs(other.address.const - one.address.const)

    return frozenset(inside(stream.nodes)) if isinstance(stream, FoldedStream) else frozenset()


_met: dict[tuple[int, int, tuple[range, ...]], tuple[Stream, tuple[bool, ...]]] = {}
"""Known answers of :func:`meets` by the stream's identity."""


def meets(stream: Stream, size: int, ranges: tuple[range, ...]) -> tuple[bool, ...]:
    """Tells for each of ``ranges`` of addresses whether some access of ``size`` bytes lies in it, at least in part. True
    where the addresses are too many to look at, or not known exactly."""
    key = id(stream), size, ranges
    known = _met.get(key)
    if known is None or known[0] is not stream:
        if len(_met) >= HULLS:
            _met.clear()
        known = _met[key] = stream, _meets(stream, size, ranges)
    return known[1]


def _meets(stream: Stream, size: int, ranges: tuple[range, ...]) -> tuple[bool, ...]:
    if isinstance(stream, AddressSet):
        return tuple(meets_set(stream, r.start - size + 1, r.stop) for r in ranges)
    found = [addresses(span) for span in spans(stream)]
    if any(part is None for part in found):
        return (True,) * len(ranges)
    every = np.sort(np.concatenate([np.empty(0, np.int64), *(part for part in found if part is not None)]))
    first = [int(np.searchsorted(every, r.start - size + 1)) for r in ranges]
    return tuple(at < len(every) and int(every[at]) < r.stop for at, r in zip(first, ranges, strict=True))


_parts: dict[tuple[int, int, int, int], tuple[Stream, Stream | None]] = {}
"""Known answers of :func:`part_in` by the stream's identity."""


def part_in(stream: Stream, size: int, low: int, high: int) -> Stream | None:
    """Returns the accesses of ``size`` bytes that lie in ``low`` .. ``high - 1``; None where some of them lie there in part
    only, or where it is not known which do."""
    key = id(stream), size, low, high
    known = _parts.get(key)
    if known is None or known[0] is not stream:
        if len(_parts) >= HULLS:
            _parts.clear()
        astride = any(meets(stream, 1, (range(low - size + 1, low), range(high - size + 1, high))))
        known = _parts[key] = stream, None if astride else within(stream, low, high)
    return known[1]


def distinct(stream: Stream) -> int:
    """Returns how many addresses a set has; of a folded stream how many accesses it makes."""
    if isinstance(stream, AddressSet) and stream.clusters:
        return sum(map(distinct, stream.clusters))
    if isinstance(stream, FoldedStream) or stream.bitmap is None:
        return stream.count
    return int(np.unpackbits(np.frombuffer(stream.bitmap, np.uint8)).sum())


def _corners(node: Node, indices: tuple[int, ...], every: bool) -> Iterator[int]:
    if isinstance(node, Point):
        yield node.address.at(indices)
        return
    trip = node.trip.at(indices)
    nested = any(isinstance(child, Loop) for child in node.body)
    for index in range(trip) if every and nested else sorted({0, trip - 1} if trip > 0 else ()):
        for child in node.body:
            yield from _corners(child, (*indices, index), every)


def _degenerate(node: Node, indices: tuple[int, ...]) -> bool:
    """Returns whether some loop does not run at a corner: then the corners of the others do not span the iterations."""
    if isinstance(node, Point):
        return False
    trip = node.trip.at(indices)
    return trip <= 0 or any(_degenerate(child, (*indices, index)) for index in (0, trip - 1) for child in node.body)


def residue(stream: Stream, base: int, modulus: int) -> int | None:
    """``(address - base) % modulus`` where it is the same for every address of the stream, else None."""
    if not isinstance(stream, FoldedStream):
        return (stream.minimum - base) % modulus if stream.gcd % modulus == 0 else None
    seen: set[int] = set()
    for point, depth in _points(stream.nodes, 0):
        if any(coef % modulus for coef in point.address.coefs[:depth]):
            return None
        seen.add((point.address.const - base) % modulus)
    return seen.pop() if len(seen) == 1 else None


_residues: dict[tuple[int, int, int], tuple[Stream, frozenset[int] | None]] = {}
"""Known residues by the stream's identity, base and modulus: each mock-up asks for all."""


def residues(stream: Stream, base: int, modulus: int) -> frozenset[int] | None:
    """All values of ``(address - base) % modulus``; None where the set of addresses is inexact."""
    key = id(stream), base, modulus
    known = _residues.get(key)
    if known is None or known[0] is not stream:
        if len(_residues) >= HULLS:
            _residues.clear()
        known = _residues[key] = stream, _all_residues(stream, base, modulus)
    return known[1]


def _all_residues(stream: Stream, base: int, modulus: int) -> frozenset[int] | None:
    if isinstance(stream, FoldedStream):
        distances = expand_array(stream).astype(np.int64) - base
    elif stream.gcd == 0:
        distances = np.array([stream.minimum - base])
    elif stream.clusters:
        parts = [_all_residues(one, base, modulus) for one in stream.clusters]
        return frozenset().union(*(part for part in parts if part is not None)) if None not in parts else None
    elif stream.bitmap is None:
        return None
    else:
        steps = np.flatnonzero(np.unpackbits(np.frombuffer(stream.bitmap, np.uint8), bitorder="little"))
        distances = stream.minimum - base + stream.gcd * steps
    return frozenset(int(r) for r in np.flatnonzero(np.bincount(distances % modulus)))


def first_address(stream: FoldedStream) -> int:
    """The address of the first access."""
    return next(stream.expand())


def _points(nodes: tuple[Node, ...], depth: int) -> Iterator[tuple[Point, int]]:
    for node in nodes:
        if isinstance(node, Point):
            yield node, depth
        else:
            yield from _points(node.body, depth + 1)


def expand_array(stream: FoldedStream) -> Addresses:
    """All addresses of the stream in order, as an array; rectangular nests are expanded by broadcasting."""
    parts = [part for node in stream.nodes for part in _expand(node)]
    flat = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return flat.astype(np.uint64)


def _expand(node: Node) -> Iterator[NDArray[np.int64]]:
    """The addresses of an outermost loop, some iterations at a time where trip counts differ between them."""
    flat = _affine_body((node,), 0, 0)
    if flat is not None:
        yield flat[0]
        return
    assert isinstance(node, Loop)  # a Point is always affine
    start, many, trip = 0, 1, node.trip.at(())
    while start < trip:
        values, _ = _iterations(node.body, [np.arange(start, min(start + many, trip), dtype=np.int64)])
        yield values
        start, many = start + many, max(1, min(2 * many, many * AT_ONCE // max(values.size, 1)))


def _iterations(body: tuple[Node, ...], indices: list[NDArray[np.int64]]) -> _Iterations:
    """The addresses of iterations of the loops around ``body``, whose k-th has the indices ``indices[...][k]``, one after
    the other, and how many each makes."""
    made = [_one(node, indices) for node in body]
    counts = np.zeros_like(indices[0])
    for _, own in made:
        counts = counts + own
    if len(made) == 1:
        return made[0][0], counts
    result = np.empty(int(counts.sum()), np.int64)
    ahead = np.cumsum(counts) - counts  # where the iteration's part of the next node goes
    for values, own in made:
        result[np.repeat(ahead - (np.cumsum(own) - own), own) + np.arange(values.size)] = values
        ahead += own
    return result, counts


def _one(node: Node, indices: list[NDArray[np.int64]]) -> _Iterations:
    if isinstance(node, Point):
        return _at(node.address, indices), np.ones_like(indices[0])
    trips = np.maximum(_at(node.trip, indices), 0)
    ends = np.cumsum(trips)
    inner = np.arange(int(trips.sum()), dtype=np.int64) - np.repeat(ends - trips, trips)
    values, counts = _iterations(node.body, [*(np.repeat(i, trips) for i in indices), inner])
    before = np.concatenate(([0], np.cumsum(counts)))
    return values, before[ends] - before[ends - trips]


def _at(affine: Affine, indices: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    result = np.full_like(indices[0], affine.const)
    for coef, index in zip(affine.coefs, indices, strict=False):
        result += coef * index
    return result


def _affine_body(
    nodes: tuple[Node, ...], outer: int, inner: int
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]] | None:
    """The nodes' addresses as ``const + sum(coefs[k] * outer index k)`` arrays; None where a trip count varies."""
    depth = outer + inner
    consts: list[NDArray[np.int64]] = []
    slopes: list[list[NDArray[np.int64]]] = []
    for node in nodes:
        if isinstance(node, Point):
            coefs = (*node.address.coefs, *(0,) * depth)[:depth]
            consts.append(np.array([node.address.const], np.int64))
            slopes.append([np.array([c], np.int64) for c in coefs])
            continue
        if any(node.trip.coefs[:depth]):
            return None
        body = _affine_body(node.body, outer, inner + 1)
        if body is None:
            return None
        const, coefs_ = body
        steps = np.arange(max(0, node.trip.const), dtype=np.int64)[:, None]
        consts.append((const[None, :] + steps * coefs_[depth][None, :]).ravel())
        slopes.append([np.broadcast_to(c, (steps.size, c.size)).ravel() for c in coefs_[:depth]])
    joined = np.concatenate(consts) if consts else np.empty(0, np.int64)
    return joined, [np.concatenate([s[k] for s in slopes]) if slopes else joined for k in range(depth)]


def contains(stream: Stream, addresses: Addresses) -> bool:
    """Returns whether the unordered stream (an AddressSet) holds every one of ``addresses``."""
    if isinstance(stream, FoldedStream):
        return bool(np.isin(addresses, expand_array(stream)).all())
    if addresses.size == 0:
        return True
    if stream.clusters:
        left = addresses
        for one in stream.clusters:
            inside = (left >= one.minimum) & (left <= one.maximum)
            if not contains(one, left[inside]):
                return False
            left = left[~inside]
        return left.size == 0
    low, high = int(addresses.min()), int(addresses.max())
    if low < stream.minimum or high > stream.maximum:
        return False
    if stream.gcd == 0:
        return low == high == stream.minimum
    steps, rest = np.divmod(addresses - np.uint64(stream.minimum), np.uint64(stream.gcd))
    if rest.any():
        return False
    if stream.bitmap is None:
        return True
    bits = np.frombuffer(stream.bitmap, np.uint8)[(steps >> np.uint64(3)).astype(np.int64)]
    return bool(((bits >> (steps & np.uint64(7)).astype(np.uint8)) & 1).all())
