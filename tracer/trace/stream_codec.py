"""Folded streams as plain lists that MessagePack holds, and back; and what is left of one for which there is no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import Any

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.layoutalgebra.sets.spans import spans

DEEPEST = 100
"""Loops in each other that a file may have; folding finds a few."""


def plain_stream(stream: Stream | None) -> Any:
    """The stream as lists and numbers."""
    if stream is None:
        return None
    if isinstance(stream, AddressSet):
        parts = [[plain_stream(one) for one in stream.clusters]] if stream.clusters else []
        return ["set", stream.minimum, stream.maximum, stream.gcd, stream.count, stream.bitmap, *parts]
    return ["nest", stream.count, plain_nodes(stream.nodes)]


def plain_nodes(nodes: Sequence[Node]) -> list[Any]:
    """Nests as lists and numbers."""
    return [_plain(node) for node in nodes]


def _plain(node: Node) -> list[Any]:
    if isinstance(node, Point):
        return [node.address.const, *node.address.coefs]
    return [[node.trip.const, *node.trip.coefs], *(_plain(child) for child in node.body)]


def stream_of(item: Any) -> Stream | None:
    """The inverse of :func:`plain_stream`. Raises TypeError, ValueError or IndexError for anything else."""
    if item is None:
        return None
    if item[0] == "set":
        low, high, unit, count, bitmap, *parts = item[1:]
        if bitmap is not None and not isinstance(bitmap, bytes):
            raise TypeError("a bitmap is no bytes")
        clusters = tuple(_cluster(one) for part in parts for one in part)
        _numbers((low, high, unit, count))
        return AddressSet(low, high, unit, count, bitmap, clusters)
    return FoldedStream(nodes_of(item[2]), *_numbers(item[1:2]))


def _cluster(item: Any) -> AddressSet:
    found = stream_of(item)
    if not isinstance(found, AddressSet):
        raise ValueError(item)
    return found


def nodes_of(items: Sequence[Any]) -> tuple[Node, ...]:
    """The inverse of :func:`plain_nodes`. Raises TypeError, ValueError or IndexError for anything else."""
    return tuple(_node(item, 0) for item in items)


def _node(item: list[Any], depth: int) -> Node:
    if depth > DEEPEST:
        raise ValueError(f"more than {DEEPEST} loops lie in each other")
    if isinstance(item[0], list):
        return Loop(_affine(item[0]), tuple(_node(child, depth + 1) for child in item[1:]))
    return Point(_affine(item))


def _affine(item: Sequence[Any]) -> Affine:
    const, *coefs = _numbers(item)
    return Affine(const, tuple(coefs))


def _numbers(items: Sequence[Any]) -> Sequence[int]:
    if any(type(one) is not int for one in items):
        raise TypeError("an address is no number")
    return items


def weight(stream: Stream | None) -> int:
    """About how many bytes the stream takes before it is compressed."""
    if isinstance(stream, AddressSet):
        return 64 + len(stream.bitmap or b"") + sum(map(weight, stream.clusters))
    return 8 + 24 * sum(1 for _ in _walk(stream.nodes)) if stream is not None else 1


def bounds(stream: Stream | None) -> Stream | None:
    """The stream as an inexact set: bounds, gcd and count. ``None`` stays, and so does a stream without accesses."""
    found = spans(stream) if stream is not None else ()
    if stream is None or not found:
        return stream
    low, high = min(s.low for s in found), max(s.high for s in found)
    if isinstance(stream, AddressSet):
        return AddressSet(low, high, stream.gcd, stream.count, None)
    points = [node.address for node in _walk(stream.nodes) if isinstance(node, Point)]
    steps = [b.const - a.const for a, b in pairwise(points)]
    return AddressSet(low, high, gcd(*steps, *(c for p in points for c in p.coefs)), stream.count, None)


def _walk(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from _walk(node.body)
