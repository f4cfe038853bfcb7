"""Large arrays in one record (``struct world { struct part p[20000]; double t; }``) as objects of their own.

The record is one element; its layout is that of the arrays in it, which have types and counts in the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from elftools.dwarf.die import DIE

from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.program.dwarf_types import arrays_in, describe

LEAST = 256
"""Bytes from which on an array in a record is an object of its own."""


@dataclass(frozen=True, slots=True)
class Record:
    """A memory object that is one record of type ``die``; ``pieces`` are its large arrays and what lies between them, all of
    it, by address."""

    whole: MemoryObject
    pieces: tuple[MemoryObject, ...]


def record_of(found: MemoryObject, die: DIE | None) -> Record | None:
    """``found``, described, as one record with large arrays in it; ``None`` where it is none."""
    declared = found.type
    if declared is None or declared.dims or found.bytes >= 2 * declared.element_bytes or found.life not in (None, "whole"):
        return None
    base = found.element_base or found.base
    pieces: list[MemoryObject] = []
    at, end = found.base, found.base + found.bytes
    for name, offset, array in sorted(arrays_in(die, LEAST), key=lambda one: one[1]):
        kind = describe(array)
        start = base + offset
        if kind is None or start < at or start + kind.bytes > end:
            continue
        if start > at:
            pieces.append(_between(found, at - base, start - base))
        between = "->" if found.kind in ("heap", "mapped") else "."
        called = f"{found.name}{between}{name}"
        pieces.append(replace(found, name=called, base=start, bytes=kind.bytes, type=kind, element_base=start))
        at = start + kind.bytes
    if not pieces:
        return None
    return Record(found, (*pieces, _between(found, at - base, end - base)) if at < end else tuple(pieces))


def _between(found: MemoryObject, first: int, end: int) -> MemoryObject:
    """The record's other members, from offset ``first`` up to ``end``."""
    declared = found.type
    assert declared is not None
    base = (found.element_base or found.base) + first
    members = tuple(
        replace(m, offset=m.offset - first) for m in declared.members if first <= m.offset and m.offset + m.bytes <= end
    )
    kind = Declared(declared.name, end - first, members, (), end - first)
    return replace(found, base=base, bytes=end - first, type=kind, element_base=base)


def split_by(records: Sequence[Record], touches: Sequence[Sequence[int]]) -> tuple[Record, ...]:
    """Those of ``records`` of which no reference touches several pieces: what runs over two arrays takes them for one.
    ``touches`` are the addresses of the objects that each reference touches."""
    owner = {piece.base: number for number, record in enumerate(records) for piece in record.pieces}
    mixed: set[int] = set()
    for bases in touches:
        owners = [owner[base] for base in bases if base in owner]
        mixed.update(number for number in owners if owners.count(number) > 1)
    return tuple(record for number, record in enumerate(records) if number not in mixed)
