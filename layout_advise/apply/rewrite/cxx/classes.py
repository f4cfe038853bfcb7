"""The C++ that a split layout needs: what stands for pointers and references to the record, for arrays and vectors."""

from __future__ import annotations

from collections.abc import Sequence, Set

from layout_advise.apply.rewrite.cxx.templates import templates
from layout_advise.apply.rewrite.fields import NUMBER_BYTES
from layout_advise.apply.rewrite.helpers import pool
from layout_advise.apply.rewrite.target import FIRST_PAGE, FieldGroup, Target

HEADERS = ("cstddef", "cstdint", "cstring", "iterator", "memory", "new", "type_traits", "utility")
VECTOR_HEADERS = ("initializer_list", "stdexcept")


def includes(used: Set[str], pooled: bool) -> str:
    """The headers that the new types need; ``used`` names ``vector`` where that is replaced; ``pooled``: those of a pool."""
    names = (*HEADERS, *(VECTOR_HEADERS if "vector" in used else ()), *(("sys/mman.h",) if pooled else ()))
    return "".join(f"#include <{name}>\n" for name in names)


def pointers(target: Target, key: str) -> str:
    """The text before the record, a ``key`` (class or struct): the types for pointers to it and iterators over it."""
    known = templates("layout_advise.apply.rewrite.cxx")
    if not target.pooled:
        of = known.get_template("pointers.hpp.j2")
        return of.render(p=target.prefix, name=target.name, key=key, first_page=FIRST_PAGE) + "\n"
    most, last = pool.capacity(target), target.groups[-1]
    group = next((one for one in target.groups if one.size >= NUMBER_BYTES), last)
    sizes = {"whole": (last.at + last.size) * most, "most": most, "link_at": group.at * most, "link_size": group.size}
    return known.get_template("pool.hpp.j2").render(p=target.prefix, name=target.name, key=key, **sizes) + "\n"


def elements(target: Target, used: Set[str], methods: Sequence[str], guard: bool) -> str:
    """The text behind the record: the type for references to it, with its ``methods``, and of ``array`` and ``vector``
    those that are ``used``."""
    return (
        templates("layout_advise.apply.rewrite.cxx")
        .get_template("elements.hpp.j2")
        .render(
            p=target.prefix,
            name=target.name,
            fields=[_field(target, group, k) for group in target.groups for k in range(len(group.fields))],
            pooled=target.pooled,
            groups=target.groups,
            blocked=target.blocked,
            scattered=target.scattered,
            parts=any(field.apart for field in target.fields),
            methods=methods,
            arrays="array" in used,
            vector="vector" in used,
            asserts=_asserts(target) if guard else [],
        )
    )


def _field(target: Target, group: FieldGroup, k: int) -> dict[str, object]:
    field = group.fields[k]
    if target.pooled:
        begin = f"{target.prefix}_pool::own().base" + (f" + {group.at * pool.capacity(target)}" if group.at else "")
        place = f"&reinterpret_cast<char (*)[{group.size}]>({begin})[at][{group.offsets[k]}]"
        return {"name": field.name, "place": place, "array": field.shape.form == "array", "apart": False}
    if field.apart:
        assert field.shape.of is not None
        kind = f"part_<{field.shape.of.text.removeprefix('const ')}>"
        place = f"base + {group.at} * count"
        return {"name": field.name, "place": place, "apart": True, "kind": kind, "count": field.shape.count}
    # gcc 12 may take stores for dead where it derives the address in one group from that in another (decision 64)
    array = field.shape.form == "array"
    if group.block:
        begin = f"{group.at} * count + at / {group.block} * {group.block} * {group.size}"
        begin += f" + in_block_(count, at, {group.block}) * {group.offsets[k]}"
        where = f"static_cast<char *>(__builtin_assume_aligned(base + {begin}, {field.align}))"
        return {"name": field.name, "place": f"{where} + at % {group.block} * {field.size}", "array": array, "apart": False}
    where = (
        f"static_cast<char *>(__builtin_assume_aligned(base + {group.at} * count, {group.align}))" if group.at else "base"
    )
    # as an array, not a sum: gcc 12 then sees that members lie side by side, and makes vectors of them
    place = f"&reinterpret_cast<char (*)[{group.size}]>({where})[at][{group.offsets[k]}]"
    return {"name": field.name, "place": place, "array": array, "apart": False}


def _asserts(target: Target) -> list[str]:
    """Refuses to compile where the record's members are not where the layout has them."""
    said = f'"layout of {target.name}"'
    lines = [f"static_assert(sizeof({target.name}) == {target.new_size}, {said});"]
    for group in target.groups:
        for field, offset in zip(group.fields, group.offsets, strict=True):
            if not field.usr.startswith(f"{target.usr}@"):  # of a base class: it has no offset that may be asked for
                continue
            lines.append(f"static_assert(offsetof({target.name}, {field.name}) == {group.at + offset}, {said});")
    return lines
