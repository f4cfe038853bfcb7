"""A structure's element with its offsets, holes and cache lines, as pahole prints it."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.reports.model.structure import FieldUse, StructureReport
from layout_advise.reports.words.structure_words import unused

LINE = 64
"""Bytes of a cache line."""
MOST_MEMBERS = 200
"""Members that are printed."""


def offsets(structure: StructureReport) -> str:
    """``struct particle {`` and a line a member: type, name, offset, size, and reads and writes of one call; empty without
    fields."""
    members = sorted((*structure.fields, *unused(structure)), key=lambda member: member.offset)
    if not members:
        return ""
    kind = (structure.type or structure.name).removeprefix("struct ")
    lines, place, holes = [f"struct {kind} {{  /* offset  size   reads  writes */"], 0, 0
    for member in members[:MOST_MEMBERS]:
        if member.offset > place:
            lines.append(f"    /* XXX {member.offset - place} bytes hole */")
            holes += member.offset - place
        if place and (place - 1) // LINE < member.offset // LINE:
            lines.append(
                f"    /* --- cacheline {member.offset // LINE} boundary ({member.offset // LINE * LINE} bytes) --- */"
            )
        lines.append(_member(member))
        place = max(place, member.offset + member.bytes)
    if len(members) > MOST_MEMBERS:
        lines.append(f"    /* ... {len(members) - MOST_MEMBERS} more members ... */")
    elif structure.element_bytes > place:
        lines.append(f"    /* XXX {structure.element_bytes - place} bytes padding */")
    size = structure.element_bytes
    facts = f"size: {size}, cachelines: {-(-size // LINE)}, members: {len(members)}, holes: {holes} bytes"
    return "\n".join([*lines, f"}};  /* {facts} */"])


def _member(member: FieldUse) -> str:
    name = f"    {member.type or f'byte[{member.bytes}]'} {member.name};"
    counts = f"{member.reads:7} {member.writes:7}" if member.reads or member.writes else "      -       -"
    return f"{name:<34} /* {member.offset:5} {member.bytes:5} {counts} */"


def most_uses(fields: Sequence[FieldUse]) -> int:
    """The most reads or writes of one of the fields, at least 1: the length of its bar."""
    return max((max(field.reads, field.writes) for field in fields), default=0) or 1


def line_use(structure: StructureReport, lines: int | None) -> float | None:
    """The part of the bytes in ``lines`` cache lines that the call uses (0 to 1); None where either is not known."""
    used = sum(field.bytes for field in structure.fields) * structure.count * (structure.used_part or 1.0)
    return min(used / (lines * LINE), 1.0) if lines and used else None
