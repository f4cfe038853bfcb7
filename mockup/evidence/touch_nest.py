"""Folded streams put together again: one nest of loops in which each reference touches memory in the hotspot's own order.

A trace holds a stream for every reference, each folded by itself, so that contiguous loop levels may have become one and the
order between references is lost. The control-flow graph gives it back: references of one loop that each ran in every
iteration follow each other as the code stands. Where some did not (conditional code, early exits) the order is not known,
and nothing is put together. How loops nest can be ambiguous: what comes out is to be compared with the program's own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layout_advise.errors import ReplayError
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Node, Point
from layout_advise.mockup.evidence.check_records import FRAME_BYTES
from layout_advise.mockup.evidence.streams import hull
from layout_advise.mockup.machine.cfg import Cfg
from layout_advise.tracer.trace.trace import Reference, Trace


@dataclass(frozen=True, slots=True)
class Touch:
    """``reference`` accesses ``const + sum(coefs[k] * index of the k-th enclosing loop)``, outermost first."""

    reference: Reference
    const: int
    coefs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TouchNest:
    """``trip`` iterations of ``body``."""

    trip: int
    body: tuple[Touch | TouchNest, ...]


@dataclass(frozen=True, slots=True)
class _TouchWalk:
    """A stream as perfect loops (trip, coefficient), outermost first; ``cuts``: products of the trips from outside."""

    reference: Reference
    const: int
    loops: tuple[tuple[int, int], ...]
    cuts: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.cuts[-1]


def touches(trace: Trace, cfg: Cfg, skip: frozenset[int] = frozenset()) -> tuple[Touch | TouchNest, ...]:
    """The traced call as nests; ``skip`` are ids of references that are left out.

    Raises ReplayError where order or loops are not known.
    """
    chains = _chains(cfg)
    walks: dict[int | None, list[_TouchWalk]] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is None or not stream.count or reference.id in skip:
            continue
        if reference.pc not in chains:
            raise _error(reference, "it is in another function")
        if not isinstance(stream, FoldedStream):
            raise _error(reference, "its addresses are irregular, their order was not kept")
        walks.setdefault(chains[reference.pc][0], []).append(_walk(reference, stream))
    return _Tree(cfg, chains, walks).body(None, (1,))


def frame(trace: Trace) -> frozenset[int]:
    """Ids of the references that stay in the hotspot's own frame, its return address included."""
    top = trace.registers.gpr[4]
    found = set()
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is not None and stream.count:
            low, high = hull(stream)
            if low >= top - FRAME_BYTES and high + reference.bytes <= top + 8:
                found.add(reference.id)
    return frozenset(found)


def executed(body: Sequence[Touch | TouchNest]) -> Iterator[Touch]:
    """Every touch of the code, in order."""
    for item in body:
        if isinstance(item, Touch):
            yield item
        else:
            yield from executed(item.body)


def _error(reference: Reference, why: str) -> ReplayError:
    return ReplayError("the accesses cannot be replayed", f"the reference at {reference.pc:#x}: {why}")


def _chains(cfg: Cfg) -> dict[int, tuple[int | None, tuple[int, int]]]:
    """By instruction: the head of its innermost loop, and its place in the order of the code."""
    inner: dict[int, int] = {}
    for loop in cfg.loops:  # outermost first: the innermost one stays
        inner.update(dict.fromkeys(loop.blocks, loop.head))
    return {
        insn.address: (inner.get(start), (number, insn.address))
        for number, (start, block) in enumerate(cfg.blocks.items())
        for insn in block.insns
    }


def _walk(reference: Reference, stream: FoldedStream) -> _TouchWalk:
    found = _perfect(stream.nodes, 0)
    if found is None:
        raise _error(reference, "its loops do not nest evenly")
    const, _, loops = found
    loops = tuple(loop for loop in loops if loop[0] != 1)
    cuts = [1]
    for trip, _ in loops:
        cuts.append(cuts[-1] * trip)
    return _TouchWalk(reference, const, loops, tuple(cuts))


def _perfect(nodes: tuple[Node, ...], depth: int) -> tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]] | None:
    """Constant, coefficients of the enclosing loops, and the loops of ``nodes``; several alike nodes at equal distances are
    a loop over them."""
    parts = [_perfect_node(node, depth) for node in nodes]
    alike = [part for part in parts if part is not None]
    if len(alike) < len(parts) or not alike or any(part[1:] != alike[0][1:] for part in alike):
        return None
    const, outer, loops = alike[0]
    if len(alike) == 1:
        return const, outer, loops
    steps = {b[0] - a[0] for a, b in pairwise(alike)}
    return (const, outer, ((len(alike), steps.pop()), *loops)) if len(steps) == 1 else None


def _perfect_node(node: Node, depth: int) -> tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]] | None:
    if isinstance(node, Point):
        return node.address.const, (*node.address.coefs, *(0,) * depth)[:depth], ()
    if any(node.trip.coefs) or node.trip.const < 1:
        return None
    inner = _perfect(node.body, depth + 1)
    if inner is None:
        return None
    const, coefs, loops = inner
    return const, coefs[:depth], ((node.trip.const, coefs[depth]), *loops)


class _Tree:
    """The loops of the code, and how often each is gone through in the call."""

    def __init__(
        self, cfg: Cfg, chains: dict[int, tuple[int | None, tuple[int, int]]], walks: dict[int | None, list[_TouchWalk]]
    ) -> None:
        self.places = {pc: place for pc, (_, place) in chains.items()}
        self.order = {start: (number, start) for number, start in enumerate(cfg.blocks)}
        self.walks = walks
        self.children: dict[int | None, list[int]] = {}
        for loop in cfg.loops:
            self.children.setdefault(loop.parent, []).append(loop.head)

    def under(self, head: int) -> list[_TouchWalk]:
        """The walks in a loop and those within it."""
        return [*self.walks.get(head, ()), *(w for child in self.children.get(head, ()) for w in self.under(child))]

    def body(self, head: int | None, path: tuple[int, ...]) -> tuple[Touch | TouchNest, ...]:
        """Returns what one iteration of a loop does (None: the function); ``path`` are the cuts of the loops around, its
        own too."""
        items: list[tuple[tuple[int, int], int, Touch | TouchNest]] = []
        for walk in self.walks.get(head, ()):
            if walk.count != path[-1]:
                raise _error(walk.reference, "it does not run in every iteration of its loop")
            items.append((self.places[walk.reference.pc], walk.reference.id, _touch(walk, path)))
        for child in self.children.get(head, ()):
            if self.under(child):
                items += [(self.order[child], -1, nest) for nest in self.loop(child, path)]
        return tuple(item for _, _, item in sorted(items, key=lambda entry: entry[:2]))

    def loop(self, head: int, path: tuple[int, ...]) -> tuple[Touch | TouchNest, ...]:
        """A loop as one nest, or several where the streams have finer levels."""
        direct, inside = self.walks.get(head, ()), self.under(head)
        children = [child for child in self.children.get(head, ()) if self.under(child)]
        if not direct and len(children) == 1:
            return self.loop(children[0], path)  # nothing happens at this level: the inner loop's streams have it
        total = direct[0].count if direct else self._shared(inside, path[-1])
        cuts = sorted({path[-1], total, *(c for w in inside for c in w.cuts if path[-1] < c < total)})
        if any(b % a for a, b in pairwise(cuts)):
            raise _error(inside[0].reference, "the references of its loop do not nest evenly")
        body = self.body(head, (*path, *cuts[1:]))
        for a, b in reversed(list(pairwise(cuts))):
            body = (TouchNest(b // a, body),)
        return body

    def _shared(self, walks: list[_TouchWalk], around: int) -> int:
        """How often a loop without references of its own is gone through: the least number that fits all loops in it. Others
        may fit too; the caller compares the order with the program's."""
        known = sorted({c for w in walks for c in w.cuts if c > around and c % around == 0})
        found = next((c for c in known if all(_cut(w, c) for w in walks)), None)
        if found is None:
            raise _error(walks[0].reference, "how its loop nests with its neighbours is not known")
        return found


def _cut(walk: _TouchWalk, at: int) -> bool:
    """Returns whether the walk's loops can be cut after ``at`` iterations each."""
    return any(a <= at <= b and at % a == 0 and b % at == 0 for a, b in pairwise(walk.cuts))


def _touch(walk: _TouchWalk, path: tuple[int, ...]) -> Touch:
    """The walk's loops cut where ``path`` is cut."""
    coefs: list[int] = []
    cuts = list(pairwise(walk.cuts))
    for a, b in pairwise(path):
        number = next((k for k, (c, d) in enumerate(cuts) if c <= a and b <= d), None)
        if number is None or a % cuts[number][0] or cuts[number][1] % b:
            raise _error(walk.reference, "its loops do not nest evenly with those around")
        coefs.append(walk.loops[number][1] * (cuts[number][1] // b))
    return Touch(walk.reference, walk.const, tuple(coefs))
