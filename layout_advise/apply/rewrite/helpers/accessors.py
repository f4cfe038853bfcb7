"""The C that a split layout needs: the type that stands for a pointer, and a function for each way it is used."""

from __future__ import annotations

from collections.abc import Callable, Set

from layout_advise.apply.rewrite.fields import RecordField
from layout_advise.apply.rewrite.helpers import pool
from layout_advise.apply.rewrite.helpers.places import bits_type, each_part, function, part_of, place
from layout_advise.apply.rewrite.target import FIRST_PAGE, FieldGroup, Target

NEEDS = {"resized": {"copied", "over"}, "sorted": {"load", "store"}}
HEADERS = {"read": "stdio", "written": "stdio", "resized": "stdlib", "sorted": "stdlib", "copied": "string",
           "filled": "string", "there": "stdint", "load": "string", "store": "string"}  # fmt: skip


def ref_type(target: Target, used: Set[str]) -> str:
    """The includes and the type that stand before the record."""
    if target.pooled:
        return pool.number_type(target)
    includes = (
        {"stddef"}
        | {HEADERS[name] for name in used if name in HEADERS}
        | ({"string"} if used & {"resized", "sorted"} else set())
    )
    if used & {"read", "written"}:
        includes.add("string")
    lines = [f"#include <{name}.h>" for name in sorted(includes)]
    return "\n".join(
        [
            *lines,
            "",
            f"/* Stands for a pointer to {target.spelling}: element `at` of `count` at `base`, members group by group. */",
            f"typedef struct {target.ref} {{",
            "    char *base;",
            "    size_t count;",
            "    ptrdiff_t at;",
            f"}} {target.ref};",
            "",
            "",
        ]
    )


def functions(target: Target, used: Set[str], guard: bool) -> str:
    """The functions behind the record; only those that are used, as compilers warn of others."""
    names = set(used)
    for name in used:
        names |= NEEDS.get(name, set())
    if target.scattered:
        names |= {"load", "store"} if "copied" in names else set()
    all_fields = {target.accessor(field) for field in target.fields}
    if names & ({"load", "store", "read", "written"} | ({"filled"} if target.scattered else set())):
        names |= all_fields
    within = {field: group for group in target.groups for field in group.fields}
    used_fields = [field for field in target.fields if target.accessor(field) in names]
    parts = [bits_type(target, field) for field in used_fields if field.bits]
    parts += [pool.declared(target)] if target.pooled else []
    parts += [place(target, within[field], field) for field in used_fields]
    parts += pool.functions(target, names) if target.pooled else []
    parts += [write(target) for name, write in WRITERS.items() if name in names]
    if guard:
        parts.append(static_asserts(target))
    return "\n" + "\n".join(parts)


def static_asserts(target: Target) -> str:
    """Refuses to compile where the record's members are not where the layout has them."""
    lines = [f'_Static_assert(sizeof({target.spelling}) == {target.new_size}, "layout of {target.spelling}");\n']
    for group in target.groups:
        for field, offset in zip(group.fields, group.offsets, strict=True):
            if field.bits:  # they have no offset
                continue
            place = f"offsetof({target.spelling}, {field.name})"
            lines.append(f'_Static_assert({place} == {group.at + offset}, "layout of {target.spelling}");\n')
    return "".join(lines)


def _over(t: Target) -> str:
    body = f"return ({t.ref}){{(char *)base, count, 0}};"
    return function(f"{t.ref} ", f"{t.prefix}_over(void *base, size_t count)", body)


def _plus(t: Target) -> str:
    return function(f"{t.ref} ", f"{t.prefix}_plus({t.ref} p, ptrdiff_t k)", "p.at += k;", "return p;")


def _stepped(t: Target) -> str:
    return function(f"{t.ref} ", f"{t.prefix}_stepped({t.ref} *p, ptrdiff_t k)", "p->at += k;", "return *p;")


def _stepping(t: Target) -> str:
    body = (f"const {t.ref} before = *p;", "p->at += k;", "return before;")
    return function(f"{t.ref} ", f"{t.prefix}_stepping({t.ref} *p, ptrdiff_t k)", *body)


def _minus(t: Target) -> str:
    return function("ptrdiff_t ", f"{t.prefix}_minus({t.ref} p, {t.ref} q)", "return p.at - q.at;")


def _same(t: Target) -> str:
    if t.pooled:
        return function("int ", f"{t.prefix}_same({t.ref} p, {t.ref} q)", "return p.at == q.at;")
    return function("int ", f"{t.prefix}_same({t.ref} p, {t.ref} q)", "return p.base == q.base && p.at == q.at;")


def _there(t: Target) -> str:
    """Not ``base != NULL``: see :data:`FIRST_PAGE`."""
    if t.pooled:
        return function("int ", f"{t.prefix}_there({t.ref} p)", "return p.at != 0;")
    body = f"return (uintptr_t)p.base >= {FIRST_PAGE};"
    return function("int ", f"{t.prefix}_there({t.ref} p)", body)


def _moved(t: Target, field: RecordField, value: str, load: bool) -> str:
    place = f"{t.prefix}_{t.accessor(field)}(p, k)"
    if field.apart:
        ends = f"{value}.{field.name}[c]", f"*{part_of(t, field, 'c')}"
        return each_part(field, f"{ends[0]} = {ends[1]};" if load else f"{ends[1]} = {ends[0]};")
    if field.bits:
        pairs = [(f"{value}.{bit.name}", f"{place}->{bit.name}") for bit in field.bits]
        return " ".join(f"{own} = {other};" if load else f"{other} = {own};" for own, other in pairs)
    if field.shape.form == "array":
        ends = (f"{value}.{field.name}", f"*{place}") if load else (f"*{place}", f"{value}.{field.name}")
        return f"memcpy({ends[0]}, {ends[1]}, {field.size});"
    return f"{value}.{field.name} = *{place};" if load else f"*{place} = {value}.{field.name};"


def _load(t: Target) -> str:
    lines = [_moved(t, field, "e", True) for field in t.fields]
    return function(f"{t.spelling} ", f"{t.prefix}_load({t.ref} p, ptrdiff_t k)", f"{t.spelling} e;", *lines, "return e;")


def _store(t: Target) -> str:
    lines = [_moved(t, field, "e", False) for field in t.fields]
    head = f"{t.prefix}_store({t.ref} p, ptrdiff_t k, {t.spelling} e)"
    return function(f"{t.spelling} ", head, *lines, "return e;")


def _groupwise(t: Target, line: Callable[[str, FieldGroup], str]) -> list[str]:
    """A line for each group, with its first byte."""
    return [line(f"{group.at} * p.count + p.at * {group.size}", group) for group in t.groups]


def _copied(t: Target) -> str:
    def line(place: str, group: FieldGroup) -> str:
        other = f"q.base + {group.at} * q.count + q.at * {group.size}"
        return f"memmove(p.base + {place}, {other}, n * {group.size});"

    head = f"{t.prefix}_copied({t.ref} p, {t.ref} q, size_t bytes)"
    if t.scattered:
        return function(
            "void ",
            head,
            f"const ptrdiff_t n = (ptrdiff_t)(bytes / sizeof({t.spelling}));",
            "const int backwards = p.base == q.base && p.at > q.at;",
            "for (ptrdiff_t k = 0; k < n; k++) {",
            "    const ptrdiff_t at = backwards ? n - 1 - k : k;",
            f"    {t.prefix}_store(p, at, {t.prefix}_load(q, at));",
            "}",
        )
    return function("void ", head, f"const size_t n = bytes / sizeof({t.spelling});", *_groupwise(t, line))


def _filled(t: Target) -> str:
    lines = _groupwise(t, lambda place, group: f"memset(p.base + {place}, byte, n * {group.size});")
    head = f"{t.prefix}_filled({t.ref} p, int byte, size_t bytes)"
    if t.scattered:
        members = [f"    {_emptied(t, field)}" for field in t.fields]
        count = f"const ptrdiff_t n = (ptrdiff_t)(bytes / sizeof({t.spelling}));"
        return function("void ", head, count, "for (ptrdiff_t k = 0; k < n; k++) {", *members, "}")
    return function("void ", head, f"const size_t n = bytes / sizeof({t.spelling});", *lines)


def _emptied(t: Target, field: RecordField) -> str:
    if field.apart:
        return each_part(field, f"memset({part_of(t, field, 'c')}, byte, sizeof *{part_of(t, field, 'c')});")
    return f"memset({t.prefix}_{t.accessor(field)}(p, k), byte, {field.size});"


def _resized(t: Target) -> str:
    """Not inline: gcc would follow the way on which there is no memory, and warn of accesses behind it."""
    return function(
        f"{t.ref} ",
        f"{t.prefix}_resized({t.ref} p, size_t count)",
        f"const {t.ref} to = {t.prefix}_over(malloc(count * sizeof({t.spelling})), count);",
        "if (to.base == NULL)",
        "    return to;",
        "if (p.base != NULL)",
        f"    {t.prefix}_copied(to, p, (p.count < count ? p.count : count) * sizeof({t.spelling}));",
        "free(p.base);",
        "return to;",
    ).replace("static inline", "static __attribute__((noinline))", 1)


def _sorted(t: Target) -> str:
    """Elements in a row, as the comparing function has them one by one; each of them is an array of one."""
    head = f"{t.prefix}_sorted({t.ref} p, size_t n, int (*compare)(const void *, const void *))"
    return function(
        "void ",
        head,
        f"{t.spelling} *const all = ({t.spelling} *)malloc(n * sizeof({t.spelling}));",
        "if (all == NULL && n > 0)",
        "    abort();",
        "for (size_t k = 0; k < n; k++)",
        f"    all[k] = {t.prefix}_load(p, (ptrdiff_t)k);",
        f"qsort(all, n, sizeof({t.spelling}), compare);",
        "for (size_t k = 0; k < n; k++)",
        f"    {t.prefix}_store(p, (ptrdiff_t)k, all[k]);",
        "free(all);",
    )


def _streamed(t: Target, name: str, call: str, load: bool) -> str:
    moves = [f"    {_in_bytes(t, field, load)}" for field in t.fields]
    transfer = f"    if ({call}(bytes, sizeof bytes, 1, file) != 1)"
    steps = [*moves, transfer, "        return done;"] if load else [transfer, "        return done;", *moves]
    return function(
        "size_t ",
        f"{t.prefix}_{name}({t.ref} p, size_t n, FILE *file)",
        f"unsigned char bytes[{t.size}] = {{0}};",
        "size_t done = 0;",
        "for (ptrdiff_t k = 0; done < n; k++, done++) {",
        *steps,
        "}",
        "return done;",
    )


def _in_bytes(t: Target, field: RecordField, load: bool) -> str:
    """Moves a field from its place to the bytes that it has in the program's record, or back."""
    if field.apart:
        own = part_of(t, field, "c")
        ends = f"bytes + {field.was_at} + c * (ptrdiff_t)sizeof *{own}", own
        return each_part(field, f"memcpy({', '.join(ends if load else ends[::-1])}, sizeof *{own});")
    ends = f"bytes + {field.was_at}", f"{t.prefix}_{t.accessor(field)}(p, k)"
    return f"memcpy({', '.join(ends if load else ends[::-1])}, {field.size});"


WRITERS: dict[str, Callable[[Target], str]] = {
    "over": _over,
    "plus": _plus,
    "stepped": _stepped,
    "stepping": _stepping,
    "minus": _minus,
    "same": _same,
    "there": _there,
    "load": _load,
    "store": _store,
    "copied": _copied,
    "filled": _filled,
    "resized": _resized,
    "sorted": _sorted,
    "written": lambda t: _streamed(t, "written", "fwrite", True),
    "read": lambda t: _streamed(t, "read", "fread", False),
}
"""By name of the helper, in the order in which they are written."""
