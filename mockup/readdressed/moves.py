"""The new places of the memory operands of a region's machine code, as arithmetic on the old addresses.

A reference that goes to one place of its elements has the old address ``start + step * k`` in element ``k``, so ``k`` is an
exact quotient: a multiplication by the inverse of the odd part of ``step``, modulo 2^64, and a shift. What a compiler would
do with an index is done with an address, by two to ten instructions; pointers in registers and memory stay what they are. A
reference that goes over several places of an element, as in a loop over fields, takes a quotient with a rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from types import MappingProxyType

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import (
    Axis,
    Candidate,
    FieldMap,
    Relayout,
    Structure,
    first_buffers,
    new_buffers,
)
from layout_advise.mockup.emit.frame import PAGE, buffer_starts
from layout_advise.mockup.emit.statics import MOST_BYTES
from layout_advise.mockup.evidence.binding import Binding, Key, bind_references
from layout_advise.mockup.evidence.streams import residues
from layout_advise.mockup.readdressed.pieces import MovedPiece, words
from layout_advise.mockup.remap.field_runs import uncovered
from layout_advise.mockup.remap.sites import RemapPlan
from layout_advise.tracer.trace.trace import Reference, Trace

RING = 1 << 64
MOST_PLACES = 64
"""So many places of an element a reference may go to."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The distance of element ``k`` from the first one in a new array: ``stride * k``, or, in blocks of ``block`` elements
    (a power of two; 0: none), ``further * (k // block) + stride * (k % block)``; all in bytes."""

    stride: int
    block: int = 0
    further: int = 0

    def at(self, k: int) -> int:
        """The distance of element ``k``."""
        return self.stride * k if not self.block else self.further * (k // self.block) + self.stride * (k % self.block)


@dataclass(frozen=True, slots=True)
class Move:
    """The new place of the accesses of a reference: of element ``k``, whose old address is ``start + step * k``, it is
    ``offset + steps.at(k)`` bytes into the memory that all new arrays share. A reference that goes over several places of an
    element, ``d`` bytes from the first of them, finds these ``apart * d`` bytes from there; all old addresses are within
    ``bytes`` from ``start``, where it is such a one (else 0)."""

    start: int
    step: int
    offset: int
    steps: Steps
    apart: int = 1
    bytes: int = 0
    pieces: tuple[MovedPiece, ...] = ()
    """Where what is accessed does not lie together in the new layout: its words."""
    others: tuple[Move, ...] = ()
    """The moves of words that go another way than the first one."""

    @property
    def even(self) -> int:
        """The number of times that 2 divides the old step."""
        return (self.step & -self.step).bit_length() - 1

    @property
    def quotient(self) -> tuple[int, int]:
        """A factor and a shift by which ``d // step`` is ``(d * factor) >> shift`` for each distance below ``bytes``."""
        shift = (self.step * self.bytes).bit_length()
        return -(-(1 << shift) // self.step), shift

    @property
    def inverse(self) -> int:
        """The inverse, modulo 2^64, of the odd part of the old step."""
        return pow(self.step >> self.even, -1, RING)


@dataclass(frozen=True, slots=True)
class Arrays:
    """One piece of memory of ``bytes`` for all new arrays: each has pages of its own from ``pages[number]`` on, and begins
    ``heads[number]`` bytes into the first. How far they lie apart is known when the code is made."""

    pages: tuple[int, ...]
    heads: tuple[int, ...]
    bytes: int


def arrays_of(candidate: Candidate) -> Arrays:
    """The memory of a candidate's arrays. Raises RemapError where code could not reach all of it."""
    pages, at = [], 0
    heads = buffer_starts(candidate.relayouts, 0)
    for (_, buffer), head in zip(new_buffers(candidate.relayouts), heads, strict=True):
        pages.append(at)
        at += -(-(head + max(buffer.bytes, 1)) // PAGE) * PAGE
    if at > MOST_BYTES:
        raise RemapError(f"candidate {candidate.id}", "its arrays are too large to lie in one piece")
    return Arrays(tuple(pages), tuple(heads), at)


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of a candidate by reference, and the memory of its arrays; ``kept`` are the references that were traced and
    stay where they are, ``outward`` the fields, as (structure id, field number), that are written."""

    candidate: Candidate
    arrays: Arrays
    binding: Binding
    of: Mapping[Key, Move]
    kept: frozenset[Key]
    outward: frozenset[tuple[str, int]]
    hints: Mapping[int, Move] = field(default_factory=dict)
    """By the address of a prefetch: to the first field of the element that it goes to."""

    @property
    def plan(self) -> RemapPlan:
        """As much as a conversion has to know of it."""
        return RemapPlan(written=self.outward)


def moves_of(
    candidate: Candidate, trace: Trace, structures: Sequence[Structure], prefetched: Mapping[int, str] = MappingProxyType({})
) -> Moves:
    """The moves of every traced reference to what ``candidate`` re-lays, and of prefetches, of which ``prefetched`` says by
    address in which structure they go. Raises RemapError where a reference is no move, or the elements lie behind pointers,
    in several blocks or in a choice of them."""
    binding = bind_references(trace, structures)
    firsts, arrays = first_buffers(candidate.relayouts), arrays_of(candidate)
    layouts = {r.structure.id: (r, first) for r, first in zip(candidate.relayouts, firsts, strict=True)}
    for name, (layout, _) in layouts.items():
        if name in binding.impossible:
            raise RemapError(f"candidate {candidate.id}", binding.impossible[name])
        _check_grid(layout)
    found: dict[Key, Move] = {}
    outward: set[tuple[str, int]] = set()
    for key in binding.streams:
        reference = binding.reference_of[key]
        for name in filter(layouts.__contains__, binding.reached_by(key)):
            if key in binding.shared:
                raise RemapError(f"the reference at {key[0]:#x}", "it reaches other memory too")
            layout, first = layouts[name]
            places = _places_of(layout, reference, binding)
            found[key] = _move(layout, first, arrays, reference, places)
            if reference.kind != "read":
                outward |= {(name, m.field) for m in _fields_of(layout, places, reference)}
    hinted = {pc: _hint(*layouts[name], arrays) for pc, name in prefetched.items() if name in layouts}
    hints = {pc: move for pc, move in hinted.items() if move is not None}
    return Moves(candidate, arrays, binding, found, frozenset(binding.streams) - frozenset(found), frozenset(outward), hints)


def unmoved(trace: Trace) -> Moves:
    """No moves at all: the code does what the original does where that does it."""
    binding = bind_references(trace, ())
    return Moves(Candidate("identity", (), (), ()), Arrays((), (), 0), binding, {}, frozenset(binding.streams), frozenset())


def _hint(layout: Relayout, first: int, arrays: Arrays) -> Move | None:
    """The way from any address of an element to its first field, as it is not known at which one a prefetch is; None where
    none is known."""
    mapped, structure = layout.fields[0], layout.structure
    try:
        (buffer, offset), steps = _place(layout, structure.fields[mapped.field].offset, "a prefetch")
    except RemapError:
        return None
    number, step = first + buffer, structure.element_bytes
    begin = arrays.pages[number] + arrays.heads[number] + offset
    alike = steps == Steps(step)
    start = structure.base + (structure.fields[mapped.field].offset if alike else 0)
    move = Move(start, step, begin, steps, apart=int(alike), bytes=structure.count * step)
    return None if steps.block or (not alike and move.quotient[0] * move.bytes >= RING) else move


def _check_grid(layout: Relayout) -> None:
    structure = layout.structure
    in_a_row = all(a.stride == b.count * b.stride for a, b in pairwise(structure.dims))
    if not structure.placed or layout.chosen is not None or not in_a_row:
        raise RemapError(f"structure {structure.name}", "its elements do not follow each other")


def _places_of(layout: Relayout, reference: Reference, binding: Binding) -> tuple[int, ...]:
    """The places of an element that a reference goes to, ascending."""
    structure, stream = layout.structure, binding.streams[reference.pc, reference.operand]
    found = residues(stream, structure.base, structure.element_bytes)
    if found is None or len(found) > MOST_PLACES:
        raise RemapError(f"the reference at {reference.pc:#x}", "the places of an element that it goes to are not known")
    return tuple(sorted(found))


def _fields_of(layout: Relayout, places: Sequence[int], reference: Reference) -> list[FieldMap]:
    """The maps of the fields that an access has bytes of."""
    structure = layout.structure
    held = {(place + at) % structure.element_bytes for place in places for at in range(reference.bytes)}
    spans = ((m, structure.fields[m.field]) for m in layout.fields)
    return [m for m, f in spans if any(f.offset <= place < f.offset + f.bytes for place in held)]


def _move(layout: Relayout, first: int, arrays: Arrays, reference: Reference, places: Sequence[int]) -> Move:
    structure, where = layout.structure, f"the reference at {reference.pc:#x}"
    found = [_ways(layout, first, arrays, reference, place) for place in places]
    begin, size = structure.base + places[0], structure.element_bytes
    own, *others = [Move(begin, size, one.offset, one.steps, pieces=one.pieces) for one in found[0]]
    if len(places) == 1:
        return replace(own, others=tuple(others))
    distances = [(place - places[0], to[0].offset - own.offset) for place, to in zip(places[1:], found[1:], strict=True)]
    apart = distances[0][1] // distances[0][0]
    alike = all(len(to) == 1 and to[0].steps == own.steps and not to[0].pieces for to in found)
    if own.steps.block or not alike or any(new != apart * old for old, new in distances):
        raise RemapError(where, "the places of an element that it goes to are not evenly apart in the new layout")
    move = replace(own, apart=apart, bytes=structure.count * size)
    factor, _ = move.quotient
    if factor * move.bytes >= RING:
        raise RemapError(where, "its structure is too large for the arithmetic on addresses")
    return move


@dataclass(frozen=True, slots=True)
class _Way:
    """The words of an access that have one step, from the place of the first on; no ``pieces`` where they are all of it."""

    offset: int
    steps: Steps
    pieces: tuple[MovedPiece, ...]


def _ways(layout: Relayout, first: int, arrays: Arrays, reference: Reference, rest: int) -> list[_Way]:
    """The ways that an access at byte ``rest`` of the first element goes, that of its first byte first."""
    where = f"the reference at {reference.pc:#x}"
    begins: dict[Steps, int] = {}
    runs: dict[Steps, list[tuple[int, int, int]]] = {}
    for at in range(reference.bytes):
        inner, local = divmod(rest + at, layout.structure.element_bytes)
        (buffer, offset), steps = _place(layout, local, where)
        if inner and steps.block:
            raise RemapError(where, "what it accesses is of two elements, in blocks")
        place = arrays.pages[first + buffer] + arrays.heads[first + buffer] + offset + steps.at(inner)
        begin, own = begins.setdefault(steps, place), runs.setdefault(steps, [])
        if own and own[-1][1] == at and place - begin == own[-1][2] + at - own[-1][0]:
            own[-1] = own[-1][0], at + 1, own[-1][2]
        else:
            own.append((at, at + 1, place - begin))
    if len(runs) == 1 and len(next(iter(runs.values()))) == 1:
        return [_Way(begin, steps, ()) for steps, begin in begins.items()]
    cut = {steps: words(own) for steps, own in runs.items()}
    if None in cut.values():
        raise RemapError(where, "what it accesses is cut within a word in the new layout")
    return [_Way(begins[steps], steps, pieces) for steps, pieces in cut.items() if pieces is not None]


def _place(layout: Relayout, local: int, where: str) -> tuple[tuple[int, int], Steps]:
    """The buffer and the offset of byte ``local`` of the first element, and how the others follow it."""
    structure = layout.structure
    for mapped in layout.fields:
        held = structure.fields[mapped.field]
        if held.offset <= local < held.offset + held.bytes:
            return (mapped.buffer, mapped.offset + local - held.offset), _steps(layout, mapped, where)
    raise RemapError(where, uncovered(structure, local, 1))


def _steps(layout: Relayout, mapped: FieldMap, where: str) -> Steps:
    """The steps of a field along all dimensions counted as one."""
    dims = layout.structure.dims
    own = [a for a in mapped.axes if a.dim == len(dims) - 1]
    steps = _along(own)
    inside = [prod(d.count for d in dims[k + 1 :]) for k in range(len(dims))]
    even = steps is not None and (not steps.block or all(n % steps.block == 0 for n in inside[:-1]))
    if steps is None or not even:
        raise RemapError(where, "its elements are not in the order of their addresses in the new layout")
    for k, dim in enumerate(dims[:-1]):
        index = tuple(int(j == k) for j in range(len(dims)))
        if dim.count > 1 and mapped.place(index) - mapped.offset != steps.at(inside[k]):
            raise RemapError(where, "its dimensions are in another order in the new layout")
    return steps


def _along(axes: Sequence[Axis]) -> Steps | None:
    """The steps along one dimension."""
    by = {axis.part: axis for axis in axes}
    if len(by) != len(axes) or any(axis.div != 1 for axis in axes):
        return None
    if set(by) == {"whole"}:
        return Steps(by["whole"].stride)
    if set(by) != {"div", "mod"} or by["div"].block != by["mod"].block or by["div"].block & (by["div"].block - 1):
        return None
    return Steps(by["mod"].stride, by["div"].block, by["div"].stride)
