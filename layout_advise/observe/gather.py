"""Objects reached through an array of pointers, as a structure whose elements are the pointers' slots; and elements in
several blocks, as one structure.

It is no block of memory: its place is thought up (:mod:`layout_advise.mockup.evidence.gather_objects`), and converting to a
layout of it is gathering the objects. Everything else is as for any structure: candidates, mock-ups, comparison, times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from layout_advise.layoutalgebra.derive.accesses import Access, Derived, MemoryObjectShape
from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.derive import derive_records
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Structure
from layout_advise.mockup.evidence.find_pools import FoundPool, find_pools
from layout_advise.mockup.evidence.gather_objects import base_of, element_bytes, gathered
from layout_advise.mockup.evidence.pointer_tables import PointerTable, find_tables
from layout_advise.mockup.evidence.pools import is_there, part_in_pool
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.observe.observe import Observation
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.objects.attribution import Attribution
from layout_advise.tracer.objects.memory_object import MemoryObject

Read = Callable[[int, int], bytes]


def gather(seen: Observation, lifted: Lifted, read: Read) -> Observation:
    """``seen`` with a structure for each array of pointers that the call goes through, and the reasons why others are none.

    ``read`` reads the program's memory at the call's entry. Nothing is found where the trace is not whole, or of several
    threads.
    """
    attribution = seen.attribution
    if attribution is None or seen.team is not None or seen.trace.truncated:
        return seen
    objects = _Objects(attribution)
    tables, refused = find_tables(lifted, seen.trace, read, objects.declared_bytes)
    found = [
        _derived(seen, lifted, table, f"s{len(seen.derived) + k}", base_of(k), objects) for k, table in enumerate(tables)
    ]
    inside = {at for table in tables for at in table.present.tolist()}
    others = tuple(d for d in seen.derived if d.structure.block_base not in inside)
    known = {d.structure.id: table for d, table in zip(found, tables, strict=True)}
    reasons = tuple(f"`{objects.name(r.table)}`: {r.reason}" for r in refused)
    pools = _pools(seen, attribution, frozenset(inside), len(seen.derived) + len(tables), len(tables))
    parts = {block.start for d in pools for block in d.structure.blocks}
    starts = {o.element_base or o.base: o.base for o in attribution.objects}
    others = tuple(d for d in others if starts.get(d.structure.block_base) not in parts)
    left = _left(seen, attribution, tables, parts)
    return replace(seen, derived=(*others, *found, *pools), tables=known, refused=reasons, scattered=left)


def _pools(
    seen: Observation, attribution: Attribution, left_out: frozenset[int], number: int, tables: int
) -> tuple[Derived, ...]:
    """The structures of several blocks, with ids from ``number`` on, beside the places of so many ``tables``. Buffers that
    take each other's place are none."""
    apart = {s.block_base for s in seen.structures if any(s.id in names for names in seen.exchanged)}
    found: list[Derived] = []
    for pool in find_pools(attribution, seen.structures, left_out | apart):
        one = _derived_pool(seen, attribution, pool, f"s{number + len(found)}", base_of(tables + len(found)))
        found += [one] if one is not None and one.note is None else []
    return tuple(found)


def _derived_pool(seen: Observation, attribution: Attribution, pool: FoundPool, name: str, base: int) -> Derived | None:
    """The structure of a pool; None where it is not known which accesses go to it."""
    objects = [attribution.objects[n] for n in pool.objects]
    count = pool.blocks[-1].first + pool.blocks[-1].count
    kind = next((o.type for o in objects if o.type is not None), None)
    first = objects[0]
    place = (name, first.name, base, count * pool.element)
    shape = MemoryObjectShape(*place, "heap", kind.name if kind is not None else None, first.alloc_site)
    thought = Structure(*place, (Dim(count, pool.element),), (), blocks=pool.blocks)
    uses: list[Access] = []
    for number in sorted({n for o in objects for n in o.references}):
        reference, stream = seen.trace.references[number], seen.trace.streams[number]
        assert stream is not None
        part = part_in_pool(stream, reference.bytes, thought)
        if part is None:
            return None
        uses += [Access(part.stream, reference.bytes, reference.kind)] if part.stream.count else []
    return derive_records(shape, uses, _fitted(kind, pool.element), pool.element, blocks=pool.blocks) if uses else None


def gather_again(
    now: Observation, known: Mapping[str, PointerTable], lifted: Lifted, read: Read
) -> tuple[Mapping[str, PointerTable], str]:
    """The tables ``known`` from another call, by structure, as the call ``now`` finds them; those that it finds otherwise
    are left out, and why (for all of them)."""
    if not known:
        return {}, ""
    size = _Objects(now.attribution).declared_bytes if now.attribution is not None else lambda address: None
    tables, refused = find_tables(lifted, now.trace, read, size, tuple(t.slots for t in known.values()))
    same = {}
    for name, table in known.items():
        old = table.slots
        match = next((t for t in tables if replace(t.slots, first=old.first) == old), None)
        if match is not None:
            same[name] = match
    why = "; ".join(r.reason for r in refused) or "this call goes through other pointers"
    return same, why


def pools_elsewhere(candidate: Candidate | None, now: Observation) -> str | None:
    """Why a candidate is none at the call ``now``: its elements lie in blocks that this call does not have; else None."""
    for one in candidate.relayouts if candidate is not None else ():
        if one.structure.blocks and not is_there(one.structure, now.trace.allocations):
            return f"{one.structure.name} lies in other blocks at this call"
    return None


def tables_of(candidate: Candidate | None) -> frozenset[str]:
    """Ids of the structures of a candidate that are reached through pointers."""
    layouts = candidate.relayouts if candidate is not None else ()
    return frozenset(r.structure.id for r in layouts if r.structure.via is not None)


def _derived(seen: Observation, lifted: Lifted, table: PointerTable, name: str, base: int, objects: _Objects) -> Derived:
    _, trace = gathered(lifted, seen.trace, table, base)
    uses = [
        Access(stream, reference.bytes, reference.kind)
        for reference, stream in zip(trace.references, trace.streams, strict=True)
        if stream is not None and (reference.pc, reference.operand) in table.reached
    ]
    one = objects.typed(table)
    size = element_bytes(table)
    kind = one.type if one is not None else None
    shape = MemoryObjectShape(
        name,
        f"*{objects.name(table.slots.table)}",
        base,
        size * table.count,
        "heap",
        kind.name if kind is not None else None,
        one.alloc_site if one is not None else None,
    )
    return derive_records(shape, uses, _fitted(kind, size), size, table.slots)


def _fitted(kind: Declared | None, size: int) -> Declared | None:
    """The declared object filled up to an element; nothing where it is larger than what the block holds."""
    if kind is None or kind.element_bytes > size:
        return None
    return replace(kind, element_bytes=size, bytes=size, dims=())


def _left(seen: Observation, attribution: Attribution, tables: tuple[PointerTable, ...], parts: Collection[int]) -> int:
    """How many heap blocks the reference touches, of those that go through no known table, that touches most of them; those
    that begin at ``parts`` are known."""
    reached = frozenset(key for table in tables for key in table.reached)
    counts = [
        sum((o := attribution.objects[t.object]).kind == "heap" and o.base not in parts for t in touches)
        for reference, touches in zip(seen.trace.references, attribution.touches, strict=True)
        if (reference.pc, reference.operand) not in reached
    ]
    most = max(counts, default=0)
    return most if most >= OBSERVE.scattered else 0


class _Objects:
    """The traced memory objects by address."""

    def __init__(self, attribution: Attribution) -> None:
        self._sorted = sorted(attribution.objects, key=lambda o: o.base)
        self._starts = [o.base for o in self._sorted]

    def at(self, address: int) -> MemoryObject | None:
        """The object around an address."""
        k = bisect_right(self._starts, address) - 1
        return self._sorted[k] if k >= 0 and address < self._sorted[k].end else None

    def name(self, address: int) -> str:
        """The name of the object around an address."""
        found = self.at(address)
        return found.name if found is not None else f"pointers at {address:#x}"

    def declared_bytes(self, address: int) -> int | None:
        """The declared size of an element there."""
        found = self.at(address)
        return found.type.element_bytes if found is not None and found.type is not None else None

    def typed(self, table: PointerTable) -> MemoryObject | None:
        """The first object of a table with a known type, else the first."""
        found = [o for at in table.objects[table.objects != 0].tolist() if (o := self.at(at)) is not None]
        return next((o for o in found if o.type is not None), found[0] if found else None)
