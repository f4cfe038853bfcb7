"""Folded streams as plain lists that MessagePack holds, and back; and what is left of one for which there is no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import Any

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.layoutalgebra.sets.spans import spans


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
        return AddressSet(low, high, unit, count, bitmap, tuple(_cluster(one) for part in parts for one in part))
    return FoldedStream(nodes_of(item[2]), item[1])


def _cluster(item: Any) -> AddressSet:
    found = stream_of(item)
    if not isinstance(found, AddressSet):
        raise ValueError(item)
    return found


def nodes_of(items: Sequence[Any]) -> tuple[Node, ...]:
    """The inverse of :func:`plain_nodes`."""
    return tuple(_node(item) for item in items)


def _node(item: list[Any]) -> Node:
    if isinstance(item[0], list):
        return Loop(Affine(item[0][0], tuple(item[0][1:])), tuple(_node(child) for child in item[1:]))
    return Point(Affine(item[0], tuple(item[1:])))


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
