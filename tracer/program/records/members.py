"""The members of one record and where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from elftools.dwarf.die import DIE

from layout_advise.tracer.program.dwarf_types import size_of, strip
from layout_advise.tracer.program.entries.attributes import follow, member_offset, number, text
from layout_advise.tracer.program.entries.tree import children
from layout_advise.tracer.program.records.type_text import of_library, type_text

RECORDS = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
DEEPEST = 8
"""Records within records are followed so far."""


@dataclass(frozen=True, slots=True)
class PlacedMember:
    """A member: byte ``at`` of the record on, ``bytes`` long. ``name`` is its path (``pos.x``; ``cells[].re`` of the first
    element of an array of records). Of a bit field ``first_bit`` counts from the record's begin, ``bits`` is its width."""

    name: str
    at: int
    bytes: int
    type: str
    first_bit: int | None = None
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """A record of the source in one build. ``name`` with its namespaces; ``file`` is the base name of the file that
    declares it, empty where that is not known."""

    name: str
    file: str
    bytes: int
    members: tuple[PlacedMember, ...]


def record_layout(die: DIE, name: str, file: str) -> RecordLayout | None:
    """The layout of the record at ``die`` (or behind its typedefs); ``None`` where it is only declared."""
    size = size_of(die)
    bare = strip(die)
    if bare is None or bare.tag not in RECORDS or "DW_AT_byte_size" not in bare.attributes:
        return None
    return RecordLayout(name, file, size, tuple(_members(bare, "", 0, DEEPEST)))


def _members(bare: DIE, path: str, offset: int, deeper: int) -> Iterator[PlacedMember]:
    for child in children(bare):
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
            continue
        if "DW_AT_external" in child.attributes or "DW_AT_artificial" in child.attributes:
            continue  # static, or the table of virtual functions
        own = text(child)
        below = ".".join(part for part in (path, own) if part)
        kind = follow(child, "DW_AT_type")
        width = number(child, "DW_AT_bit_size")
        if width is not None:
            first = _first_bit(child, kind, width) + 8 * offset
            yield PlacedMember(below, first // 8, (first + width + 7) // 8 - first // 8, type_text(kind), first, width)
            continue
        place = member_offset(child)
        if place is None and "DW_AT_data_member_location" in child.attributes:
            continue  # a virtual base class lies where the program says
        yield from _member(kind, below, offset + (place or 0), deeper)


def _member(kind: DIE | None, path: str, at: int, deeper: int) -> Iterator[PlacedMember]:
    bare = strip(kind)
    element = bare
    while element is not None and element.tag == "DW_TAG_array_type":
        element = strip(follow(element, "DW_AT_type"))
    inner = element if element is not None and element.tag in RECORDS and deeper and not of_library(element) else None
    if bare is None or bare.tag not in RECORDS or inner is None:
        yield PlacedMember(path, at, size_of(kind), type_text(kind))
    if inner is not None:
        yield from _members(inner, path if inner is bare else f"{path}[]", at, deeper - 1)


def _first_bit(child: DIE, kind: DIE | None, width: int) -> int:
    first = number(child, "DW_AT_data_bit_offset")
    place = 8 * (member_offset(child) or 0)
    if first is not None:
        return place + first
    # DWARF 2 and 3 count from the most significant bit of the storage unit
    unit = number(child, "DW_AT_byte_size") or size_of(kind)
    return place + 8 * unit - (number(child, "DW_AT_bit_offset") or 0) - width
