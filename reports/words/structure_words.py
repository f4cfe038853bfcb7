"""A structure in words: its present layout, who else uses it, which of its lines threads share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from layout_advise.reports.model.structure import FieldUse, SharedLines, StructureReport, UserReport
from layout_advise.reports.words.quantities import as_arrays, listing, number, size


def users(structure: StructureReport) -> str:
    """``between the calls also used by move (x, vx; app.c:15)``; empty where nobody looked."""
    seen, place = structure.users, structure.placement
    between = _list_users([user for user in seen if user.when == "between"])
    after = _list_users([user for user in seen if user.when == "after"])
    if place is None and not seen:
        return f"who else uses it is not known: {structure.users_unknown}" if structure.users_unknown else ""
    parts = []
    if between:
        parts.append(f"seen to use it between calls: {between}")
    elif place is not None:
        what = "nothing else touched the pages that it fills" if place.gapless else "nothing else was seen to touch it"
        parts.append(f"{what} between calls {number(place.first_call)} and {number(place.first_call + place.periods)}")
    if after:
        parts.append(f"after the last call: {after}")
    if structure.users_unknown:
        parts.append(f"not watched further: {structure.users_unknown}")
    return "; ".join(parts)


def _list_users(found: Sequence[UserReport]) -> str:
    return listing([f"{user.symbol} ({', '.join(filter(None, (_used(user), user_place(user))))})" for user in found], 4)


def _used(user: UserReport) -> str:
    kind = "writes" if not user.reads else "reads and writes" if user.writes else "reads"
    return f"{kind} {listing(as_arrays(user.fields), 5)}"


def user_place(user: UserReport) -> str:
    """``main.c:40``, and by which library function or system call."""
    where = f"{PurePath(user.file).name}:{user.line}" if user.file and user.line else ""
    return " ".join(part for part in (where, f"by {user.through}" if user.through else "") if part)


def conversion_place(structure: StructureReport) -> str:
    """The sentence on where a temporary layout would have to be converted, as far as was observed."""
    place = structure.placement
    if place is None:
        return ""
    if not place.used_periods:
        return "One conversion lasts over the calls watched" if place.gapless else ""
    into = f"in after the last write, by {place.last_write}" if place.last_write else ""
    back = f"back before the first read, by {place.first_read}" if place.first_read else ""
    text = " and ".join(part for part in (into, back) if part)
    often = f"in {number(place.used_periods)} of {number(place.periods)} periods"
    return f"A temporary layout would be converted {text}, {often}" if text else ""


def shape(structure: StructureReport) -> str:
    """The present layout in words: ``array of structures; the hotspot uses 3 of 10 fields, 24 of 80 bytes``."""
    own = [f for f in structure.fields if not f.beside]
    used = min(sum(f.bytes for f in own), structure.element_bytes)
    if not structure.fields:
        return "no regular layout was found"
    total = len(structure.fields) + len(unused(structure))
    kind = "array of structures" if structure.count > 1 and total > 1 else "array" if structure.count > 1 else "one block"
    part = structure.used_part
    picked = f"; this call goes to {part:.0%} of the elements" if part is not None and part < 0.995 else ""
    if used == structure.element_bytes:
        return f"{kind}; the hotspot uses all of {f'each element{picked}' if structure.count > 1 else 'it'}"
    fields = f"{len(own)} of {total} fields, " if structure.cold_fields or len(own) < len(structure.fields) else ""
    size_ = f"{number(used)} of {number(structure.element_bytes)} bytes"
    untaken = [f.name for f in own if not f.reads and not f.writes]
    other = f" ({listing(untaken)} on ways that this call does not take)" if untaken else ""
    return f"{kind}; the hotspot uses {fields}{size_} of each element{other}{picked}"


def unused(structure: StructureReport) -> list[FieldUse]:
    """The fields that the hotspot does not use; the elements of an array in a row as one, ``name[0..31]``."""
    found: list[FieldUse] = []
    spans: dict[str, tuple[int, int]] = {}
    for field in structure.cold_fields:
        base, _, index = field.name.removesuffix("]").rpartition("[")
        before = found[-1] if found else None
        follows = before is not None and before.type == field.type and field.offset == before.offset + before.bytes
        if before is not None and follows and index.isdigit() and base in spans and int(index) == spans[base][1] + 1:
            spans[base] = (spans[base][0], int(index))
            name = f"{base}[{spans[base][0]}..{index}]"
            found[-1] = msgspec.structs.replace(before, name=name, bytes=before.bytes + field.bytes)
            continue
        if index.isdigit():
            spans[base] = (int(index), int(index))
        found.append(field)
    return found


def structure_line(structure: StructureReport) -> str:
    """One line about a structure: ``1 300 000 × particle of 80 bytes, 99.2 MiB on the heap, allocated at main.c:47``."""
    where = {"heap": "on the heap", "global": "global", "stack": "on the stack", "mapped": "mapped"}[structure.kind]
    site = f", allocated at {structure.alloc_site}" if structure.alloc_site else ""
    kind = structure.type or "element"
    return f"{number(structure.count)} × {kind} of {structure.element_bytes} bytes, {size(structure.bytes)} {where}{site}"


def shared_lines(shared: SharedLines) -> str:
    """``false sharing: threads 0 and 1 use 3 lines of `sums`, each bytes of its own, and write them (n at omp.c:12)``."""
    what = "1 line" if shared.false == 1 else f"{number(shared.false)} lines"
    who = listing([str(thread) for thread in shared.threads])
    fields = f"{listing(shared.fields)} " if shared.fields else ""
    where = f" ({fields}at {listing(shared.places)})" if shared.places else ""
    return f"false sharing: threads {who} meet in {what} of `{shared.name}`, each at bytes of its own{where}"
