"""The order of execution that a tracing tool saw, in the references of a trace.

The tool's pieces are stretches of code that may overlap. Which reference follows which is read off the folded order; as in
:mod:`layout_advise.tracer.folding.execution_order`, a piece of the trace goes from where execution came from elsewhere to
where it left for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from layout_advise.layoutalgebra.sets.nests import Affine, Loop, Node, Point
from layout_advise.tracer.backends.tool.result import SeenOrder
from layout_advise.tracer.folding.execution_order import MOST_NODES, count_nodes
from layout_advise.tracer.folding.rejoin import rejoined
from layout_advise.tracer.trace.trace import Control

Runs = Mapping[int, tuple[int, ...]]
"""The references of each piece of the tool, by its name."""


def order_of(seen: SeenOrder, ids: Mapping[int, int], references: int) -> Control:
    """``seen`` as the order of ``references`` references; ``ids`` tells which of them each reference of the tool is (those
    that are none are left out)."""
    if seen.nodes is None:
        return Control(None, (), seen.reason)
    runs = {name: tuple(ids[k] for k in piece if k in ids) for name, piece in seen.pieces.items()}
    nodes = tuple(_without_empty(seen.nodes, runs))
    pieces = _pieces(nodes, runs, references)
    number = {first: k for k, (first, _) in enumerate(pieces)}
    parts = {name: tuple(number[k] for k in run if k in number) for name, run in runs.items()}
    renamed = rejoined(tuple(_renamed(nodes, parts)))
    if (count := count_nodes(renamed)) > MOST_NODES:
        return Control(None, pieces, f"the order of execution folds badly: {count} terms")
    return Control(renamed, pieces)


def _without_empty(nodes: Sequence[Node], runs: Runs) -> Iterator[Node]:
    """Without the pieces that have no references in the trace."""
    for node in nodes:
        if isinstance(node, Point):
            if runs[node.address.const]:
                yield node
        elif body := tuple(_without_empty(node.body, runs)):
            yield Loop(node.trip, body)


def _renamed(nodes: Sequence[Node], parts: Runs) -> Iterator[Node]:
    """With the trace's pieces for the tool's, each where its first reference is."""
    for node in nodes:
        if isinstance(node, Point):
            yield from (Point(Affine(number)) for number in parts[node.address.const])
        elif body := tuple(_renamed(node.body, parts)):
            yield Loop(node.trip, body)


def _pieces(nodes: Sequence[Node], runs: Runs, references: int) -> tuple[tuple[int, int], ...]:
    """First and last reference of every piece; those that never ran are in pieces of their own."""
    walk = _OrderWalk(runs)
    whole = walk.over(nodes, ())
    follows = walk.pairs | {pair for run in runs.values() for pair in pairwise(run)}
    broken = {place for one, other in follows if other != one + 1 for place in (one + 1, other)}
    starts = {0, *broken, *whole.first, *(last + 1 for last in whole.last)}
    bounds = [*sorted(start for start in starts if start < references), references]
    return tuple((start, end - 1) for start, end in pairwise(bounds))


@dataclass(frozen=True, slots=True)
class _Ends:
    """References that some nodes may begin and end with; ``skipped``: they may as well not run."""

    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    skipped: bool = True


@dataclass(slots=True)
class _OrderWalk:
    """Collects in ``pairs`` which reference may come right after which."""

    runs: Runs
    pairs: set[tuple[int, int]] = field(default_factory=set)

    def over(self, nodes: Sequence[Node], trips: tuple[int, ...]) -> _Ends:
        """``trips`` are the greatest trip counts of the loops around."""
        found = _Ends()
        for node in nodes:
            ends = self._one(node, trips)
            self.pairs.update(product(found.last, ends.first))
            first = found.first | ends.first if found.skipped else found.first
            last = found.last | ends.last if ends.skipped else ends.last
            found = _Ends(first, last, found.skipped and ends.skipped)
        return found

    def _one(self, node: Node, trips: tuple[int, ...]) -> _Ends:
        if isinstance(node, Point):
            run = self.runs[node.address.const]
            return _Ends(frozenset(run[:1]), frozenset(run[-1:]), False)
        least, most = _extremes(node.trip, trips)
        if most <= 0:
            return _Ends()
        body = self.over(node.body, (*trips, most))
        if most > 1:
            self.pairs.update(product(body.last, body.first))
        return _Ends(body.first, body.last, body.skipped or least <= 0)


def _extremes(trip: Affine, trips: tuple[int, ...]) -> tuple[int, int]:
    """Bounds of a trip count where the indices of the loops around are below ``trips``."""
    reach = [coef * (most - 1) for coef, most in zip(trip.coefs, trips, strict=False)]
    return trip.const + sum(r for r in reach if r < 0), trip.const + sum(r for r in reach if r > 0)
