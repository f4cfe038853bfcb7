"""Folding once more what is folded already: loops take in the iterations that stand before and behind them.

The Valgrind tool folds stretches of code, and the first and the last iteration of a loop often belong to other stretches
than those between. Points are names here: what matters is whether two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from layout_advise.layoutalgebra.sets.nests import Affine, Loop, Node, Point

WINDOW = 8
"""Nodes of the longest loop body that is looked for."""


def rejoined(nodes: Sequence[Node], depth: int = 0) -> tuple[Node, ...]:
    """Nodes that expand to the same points; ``depth`` is the number of loops around them."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            node = _flat(Loop(node.trip, rejoined(node.body, depth + 1)), depth)
        found.append(node)
        while _joins(found, depth):
            pass
    return tuple(found)


def _flat(loop: Loop, depth: int) -> Loop:
    """A loop around one loop as one, where both trip counts are constant and the inner body does not depend on either."""
    (inner, *others) = loop.body
    if others or not isinstance(inner, Loop) or loop.trip.coefs or inner.trip.coefs:
        return loop
    if not _steady(inner, depth + 1):
        return loop
    body = [_raised(node, depth) for node in inner.body]
    if any(node is None for node in body):
        return loop
    return Loop(Affine(loop.trip.const * inner.trip.const), tuple(node for node in body if node is not None))


def _joins(found: list[Node], depth: int) -> bool:
    """Joins the last nodes of ``found`` in one way, if there is one."""
    last = found[-1]
    before = found[-2] if len(found) > 1 else None
    if isinstance(last, Loop) and isinstance(before, Loop) and last.body == before.body and _steady(last, depth):
        found[-2:] = [Loop(_sum(before.trip, last.trip), last.body)]
        return True
    if isinstance(last, Loop) and (width := len(last.body)) < len(found) and _is_turn(found[-1 - width : -1], last, depth):
        found[-1 - width :] = [_longer(last)]
        return True
    for width in range(1, min(WINDOW, len(found) - 1) + 1):
        loop = found[-1 - width]
        if isinstance(loop, Loop) and len(loop.body) == width and _is_turn(found[-width:], loop, depth):
            found[-1 - width :] = [_longer(loop)]
            return True
        if 3 * width <= len(found) and found[-width:] == found[-2 * width : -width] == found[-3 * width : -2 * width]:
            body = tuple(_lowered(node, depth) for node in found[-width:])
            found[-3 * width :] = [Loop(Affine(3), body)]
            return True
    return False


def _is_turn(nodes: Sequence[Node], loop: Loop, depth: int) -> bool:
    return tuple(_lowered(node, depth) for node in nodes) == loop.body


def _longer(loop: Loop) -> Loop:
    return replace(loop, trip=replace(loop.trip, const=loop.trip.const + 1))


def _steady(loop: Loop, depth: int) -> bool:
    """Returns whether all iterations are the same; ``depth`` is that of the loop."""
    return all(_raised(node, depth) is not None for node in loop.body)


def _lowered(node: Node, depth: int) -> Node:
    """The same in one more loop, the one at ``depth``."""
    coefs = _affine(node).coefs
    if len(coefs) > depth:
        coefs = (*coefs[:depth], 0, *coefs[depth:])
    if isinstance(node, Point):
        return Point(Affine(node.address.const, coefs))
    return Loop(Affine(node.trip.const, coefs), tuple(_lowered(inner, depth) for inner in node.body))


def _raised(node: Node, depth: int) -> Node | None:
    """The same without the loop at ``depth`` around it; ``None`` where that loop's index changes it."""
    coefs = _affine(node).coefs
    if len(coefs) > depth:
        if coefs[depth]:
            return None
        coefs = (*coefs[:depth], *coefs[depth + 1 :])
    if isinstance(node, Point):
        return Point(Affine(node.address.const, coefs))
    body = tuple(_raised(inner, depth) for inner in node.body)
    if any(inner is None for inner in body):
        return None
    return Loop(Affine(node.trip.const, coefs), tuple(inner for inner in body if inner is not None))


def _affine(node: Node) -> Affine:
    return node.address if isinstance(node, Point) else node.trip


def _sum(one: Affine, other: Affine) -> Affine:
    coefs = [a + b for a, b in zip_longest(one.coefs, other.coefs, fillvalue=0)]
    while coefs and not coefs[-1]:
        coefs.pop()
    return Affine(one.const + other.const, tuple(coefs))
