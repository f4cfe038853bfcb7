"""The order in which a region accesses the fields of a structure, from its folded order of execution and folded streams.

The field that a reference accesses may change from one access to the next, as in a loop over the fields of an element, but
does so with a period. Loops are written out as far as the periods ask for it, and not gone through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Repeat, Step
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, Loop, Node, Point, Stream

MOST_STEPS = 4000
"""Accesses that are written out at most: beyond, the order of the fields is too irregular to be told."""
LONGEST_PERIOD = 256
"""Accesses after which a reference is at the field where it was, at most."""

Piece = tuple[FieldAccess, ...]


@dataclass(frozen=True, slots=True)
class ReferenceFields:
    """Accesses of a reference: ``pieces[n % len(pieces)]`` is the n-th one, counted from 0."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class RunOrder:
    """The order in which references ran: a point of ``nodes`` stands for the references ``pieces[address.const]``, from the
    first to the last number."""

    nodes: tuple[Node, ...]
    pieces: tuple[tuple[int, int], ...]


def elsewhere(size: int) -> ReferenceFields:
    """A reference of ``size`` bytes to memory that no distance is asked for."""
    return ReferenceFields(((FieldAccess(None, size),),))


def reference_fields(structure: Structure, stream: Stream, size: int) -> ReferenceFields | None:
    """The fields of ``structure`` that the accesses of ``stream`` reach, ``size`` bytes each; None where they come in an
    order that is not known, or repeats too late."""
    offsets = _offsets(stream, structure.base, structure.element_bytes)
    if offsets is None:
        return None
    return ReferenceFields(tuple(_piece(structure, offset, size) for offset in offsets))


def _piece(structure: Structure, offset: int, size: int) -> Piece:
    """The fields that ``size`` bytes from ``offset`` on in an element reach; a wide access may go on into the next ones."""
    element, found, start = structure.element_bytes, [], offset
    while start < offset + size:
        place = start % element
        own = next((f for f in structure.fields if f.offset <= place < f.offset + f.bytes), None)
        nearest = min((f.offset for f in structure.fields if f.offset > place), default=element)
        end = own.offset + own.bytes if own is not None else nearest
        step = min(end - place, offset + size - start)
        found.append(FieldAccess(own.name if own is not None else None, step))
        start += step
    return tuple(found)


def _offsets(stream: Stream, base: int, element: int) -> tuple[int, ...] | None:
    """One period of the places in an element that a stream accesses."""
    if isinstance(stream, AddressSet):
        return ((stream.minimum - base) % element,) if stream.gcd % element == 0 else None
    found = {_nest_offsets(node, base, element, ()) for node in stream.nodes}
    only = found.pop() if len(found) == 1 else None
    return only if only is None or len(stream.nodes) == 1 or len(only) == 1 else None


def _nest_offsets(node: Node, base: int, element: int, trips: tuple[int, ...]) -> tuple[int, ...] | None:
    """One period of a nest of loops with one access inside, or with several to the same place of an element."""
    if isinstance(node, Loop):
        if len(node.body) == 1:
            trip = node.trip.const if not any(node.trip.coefs) else 0
            return _nest_offsets(node.body[0], base, element, (*trips, trip))
        inner = {_nest_offsets(one, base, element, (*trips, 0)) for one in node.body}
        only = inner.pop() if len(inner) == 1 else None
        return only if only is not None and len(only) == 1 else None
    period = _period(node.address, element, trips)
    return None if period is None else tuple(_place(node.address, trips, n, base) % element for n in range(period))


def _period(address: Affine, element: int, trips: Sequence[int]) -> int | None:
    """After how many accesses the place in the element is the same again; None where that is not known. A trip count that
    changes is given as 0."""
    moving = [k for k, c in enumerate(address.coefs[: len(trips)]) if c % element]
    if not moving:
        return 1
    first, inner = moving[0], trips[moving[0] + 1 :]
    turns = element // gcd(element, address.coefs[first])
    trip = trips[first]
    if 0 in inner or (first and (trip == 0 or trip % turns)):
        turns = trip  # it begins anew in each iteration of the loop around
    period = turns * prod(inner)
    return period if 0 < period <= LONGEST_PERIOD else None


def _place(address: Affine, trips: Sequence[int], number: int, base: int) -> int:
    """The address of access ``number``, less ``base``; of loops that do not move in the element any iteration does."""
    indices: list[int] = []
    for trip in reversed(trips[1:]):
        number, index = divmod(number, trip) if trip else (number, 0)
        indices.insert(0, index)
    return address.at((number, *indices)) - base if trips else address.const - base


def steps_of(order: RunOrder, references: Mapping[int, ReferenceFields]) -> tuple[Step, ...] | None:
    """The accesses of all ``references`` in their order, as loops; None where more than :data:`MOST_STEPS` would have to be
    written out. A loop whose trip count changes has that of the middle of the loops around it."""
    writer = _StepWriter(order, references)
    try:
        return tuple(writer.all(order.nodes, ()))
    except OverflowError:
        return None


class _StepWriter:
    """Writes steps, with the number of each reference's access modulo its period."""

    def __init__(self, order: RunOrder, references: Mapping[int, ReferenceFields]) -> None:
        self.order, self.references = order, references
        self.phase = {k: 0 for k, one in references.items() if len(one.pieces) > 1}
        self.written = 0

    def all(self, nodes: Sequence[Node], middle: tuple[int, ...]) -> Iterator[Step]:
        for node in nodes:
            if isinstance(node, Point):
                yield from self.piece(node.address.const)
            else:
                yield from self.loop(node, middle)

    def piece(self, number: int) -> Iterator[Step]:
        first, last = self.order.pieces[number]
        for k in range(first, last + 1):
            if (one := self.references.get(k)) is None:
                continue
            accesses = one.pieces[self.phase.get(k, 0)]
            if k in self.phase:
                self.phase[k] = (self.phase[k] + 1) % len(one.pieces)
            self.written += len(accesses)
            if self.written > MOST_STEPS:
                raise OverflowError
            yield from accesses

    def loop(self, node: Loop, middle: tuple[int, ...]) -> Iterator[Step]:
        """As many iterations as it takes until all references are at the fields where they were, repeated; then the rest."""
        trips = max(0, node.trip.at(middle))
        inside = (*middle, trips // 2)
        start, body, turns = dict(self.phase), list[Step](), 0
        while turns < trips:
            body.extend(self.all(node.body, inside))
            turns += 1
            if self.phase == start:
                break
        if not body:
            return
        if turns == trips:
            yield from body
            return
        yield Repeat(trips // turns, tuple(body))
        for _ in range(trips % turns):
            yield from self.all(node.body, inside)
