"""The arrays that the accesses of a mock-up go to: their pointers, overlaps, and which accesses are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Axis, FieldMap, Relayout, first_buffers
from layout_advise.mockup.emit.scope import identifier
from layout_advise.mockup.evidence.binding import Access, accesses, executed
from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Item, Lifted, LiftedLoop, Load, Store
from layout_advise.mockup.remap.sites import RemapPlan

SMALL = 16
"""Bits of the elements that many of make up a vector."""


@dataclass(frozen=True, slots=True)
class FieldPointers:
    """The C pointers to new arrays, one a record or a field of its own; keys are (structure id, field number).

    ``names`` gives the pointer to a field, or to the record that it is in; ``offsets`` the bytes from there to the field;
    ``starts`` by pointer the number of the relayout, the buffer in it and the offset where it points.
    """

    names: Mapping[tuple[str, int], str]
    offsets: Mapping[tuple[str, int], int]
    starts: Mapping[str, tuple[int, int, int]]


def field_pointers(relayouts: Sequence[Relayout], *, blocks: bool) -> FieldPointers:
    """Returns the pointers to the fields of ``relayouts``.

    The fields of a record are reached from one pointer, as a compiler would do it: there are not registers for each. With
    ``blocks`` so are those of a block of elements: a compiler that makes no checks at run time (gcc -O2) must see that the
    arrays in a block do not overlap. A promise (``restrict``) needs a pointer a field instead.
    """
    names: dict[tuple[str, int], str] = {}
    offsets: dict[tuple[str, int], int] = {}
    starts: dict[str, tuple[int, int, int]] = {}
    records: dict[str, int | None] = {}
    groups = first_buffers(relayouts)  # merged structures have the same one
    for number, relayout in enumerate(relayouts):
        structure = relayout.structure
        for mapped in relayout.fields:
            shared = in_record(relayout, mapped, blocks=blocks)
            wanted = relayout.buffers[mapped.buffer].name if shared else structure.fields[mapped.field].name
            name, record = f"at_{identifier(wanted)}", groups[number] + mapped.buffer if shared else None
            if name in records and (record is None or records[name] != record):
                name = f"{name}_{identifier(structure.id)}"
            while name in records and (record is None or records[name] != record):
                name += "_"
            starts.setdefault(name, (number, mapped.buffer, 0 if shared else mapped.offset))
            records[name] = record
            names[structure.id, mapped.field] = name
            offsets[structure.id, mapped.field] = mapped.offset if shared else 0
    return FieldPointers(names, offsets, starts)


def in_record(relayout: Relayout, mapped: FieldMap, *, blocks: bool = False) -> bool:
    """Returns whether a field lies between others of its element in one record; with ``blocks``, of its block of
    elements. Of merged structures the elements are the records that they share."""
    relayout = relayout.merged or relayout

    def outer(one: FieldMap) -> tuple[Axis, ...]:
        return tuple(a for a in one.axes if a.part != "mod") if blocks else one.axes

    def extent(one: FieldMap) -> int:
        within = sum((a.block - 1) * a.stride for a in one.axes if a.part == "mod") if blocks else 0
        return one.offset + relayout.structure.fields[one.field].bytes + within

    alike = [m for m in relayout.fields if m.buffer == mapped.buffer and outer(m) == outer(mapped)]
    start, end = min(m.offset for m in alike), max(map(extent, alike))
    strides = [a.stride for a in outer(mapped) if relayout.structure.dims[a.dim].count > 1]
    return len(alike) > 1 and start == 0 and all(stride >= end - start for stride in strides)


def overlaps(items: Sequence[Item], placed: RemapPlan, pointers: FieldPointers) -> int:
    """Of the arrays that an innermost loop goes over, the most pairs with one that it stores to. Arrays are counted as a
    source in the new layout has them, one for each pointer; where one starts (a row of a stencil) does not matter."""
    most = 0
    for loop in loops(items):
        if any(isinstance(item, LiftedLoop) for item in loop.body):
            continue
        reached: dict[object, bool] = {}
        for access in accesses(loop.body):
            place = placed.places.get(access.uid)
            arrays: list[object] = [next((atom for atom, coef in access.address.terms if coef == 1), None)]
            if place is not None:
                arrays = [pointers.names[place.relayout.structure.id, piece.map.field] for piece in place.pieces]
            for array in arrays:
                reached[array] = reached.get(array, False) or not isinstance(access, Load)
        written = sum(reached.values())
        most = max(most, written * (len(reached) - written) + written * (written - 1) // 2)
    return most


def still_known(loop: LiftedLoop, placed: RemapPlan) -> bool:
    """Returns whether a compiler that knows in the old layout that the iterations of ``loop`` are independent knows it in
    the new one: fields of one record are apart, arrays of which each has a pointer may overlap."""
    reached: dict[str, set[object]] = {}
    written = set()
    for access in accesses(loop.body):
        place = placed.places.get(access.uid)
        if place is None:
            continue
        for mapped in (piece.map for piece in place.pieces):
            record = mapped.buffer if in_record(place.relayout, mapped, blocks=True) else (mapped.buffer, mapped.field)
            reached.setdefault(place.relayout.structure.id, set()).add(record)
            if not isinstance(access, Load):
                written.add(place.relayout.structure.id)
    return all(len(reached[structure]) == 1 for structure in written)


def recorders(lifted: Lifted) -> dict[int, frozenset[int]]:
    """The accesses that stand for an execution of their reference, and in which lanes (0 where there are none): of every
    copy of the reference in the code its lowest live part, the load where it also stores."""
    copies: dict[tuple[int, int, int | None], list[tuple[Access, int, int]]] = {}
    for access in accesses(lifted.body):
        for lane, reference in enumerate(access.lanes or executed(access)):
            if reference is not None:
                copies.setdefault((*reference[:2], access.origin.block), []).append((access, lane, reference[2]))
    chosen: dict[int, frozenset[int]] = {}
    for group in copies.values():
        loads = [entry for entry in group if isinstance(entry[0], Load)] or group
        lowest = min(part for _, _, part in loads)
        seen: set[tuple[int, tuple[int, ...]]] = set()
        for access, lane, part in loads:
            # the same piece read twice, as two types, is one execution
            if part == lowest and (lane, access.turn) not in seen:
                seen.add((lane, access.turn))
                chosen[access.uid] = chosen.get(access.uid, frozenset()) | {lane}
    return chosen


def misplaced_accesses(lifted: Lifted, placed: RemapPlan, writes: bool) -> frozenset[int]:
    moved = [a for a in accesses(lifted.body) if a.uid in placed.places]
    chosen = [a for a in moved if isinstance(a, Load) != writes]
    return frozenset(a.uid for a in chosen or moved)


def loops(items: Sequence[Item]) -> Iterator[LiftedLoop]:
    for item in items:
        if isinstance(item, LiftedLoop):
            yield item
            yield from loops(item.body)


def has_small_lanes(loop: LiftedLoop) -> bool:
    """Returns whether an iteration accesses elements of one or two bytes that were side by side in one instruction: it
    stands for many iterations of the source already, and gcc -O3 takes minutes to find out that more do not fit beside."""
    seen: set[tuple[type[Item], int]] = set()
    for item in loop.body:
        if not isinstance(item, Load | Store) or item.origin.pack is None or item.lanes:
            continue
        if BITS[item.ty if isinstance(item, Store) else item.value.ty] <= SMALL:
            if (type(item), item.origin.pack) in seen:
                return True
            seen.add((type(item), item.origin.pack))
    return False
