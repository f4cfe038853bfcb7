"""The addresses of members in the new layout: a function for each."""

from __future__ import annotations

from layout_advise.apply.rewrite.fields import RecordField
from layout_advise.apply.rewrite.helpers import pool
from layout_advise.apply.rewrite.target import FieldGroup, Target


def function(result: str, head: str, *body: str) -> str:
    """A function that stands in the header, of these lines."""
    lines = "".join(f"    {line}\n" for line in body)
    return f"static inline {result}{head}\n{{\n{lines}}}\n"


def bits_type(target: Target, field: RecordField) -> str:
    """The record for bit fields side by side, each where it is in the program's record."""
    lines, end = [], 0
    for bit in field.bits:
        while end < bit.at:
            pad = min(bit.at - end, 32)
            lines.append(f"    unsigned int : {pad};\n")
            end += pad
        lines.append(f"    {bit.type.text} {bit.name} : {bit.width};\n")
        end = bit.at + bit.width
    name = f"{target.prefix}_{target.accessor(field)}_bits"
    return f"typedef struct __attribute__((packed, may_alias)) {name} {{\n{''.join(lines)}}} {name};\n"


def part_of(target: Target, field: RecordField, at: str) -> str:
    """C for the address of number ``at`` of a member that is taken apart, of element ``k`` behind ``p``."""
    return f"{target.prefix}_{target.accessor(field)}(p, k, {at})"


def each_part(field: RecordField, statement: str) -> str:
    """C that does ``statement`` for each number ``c`` of a member that is taken apart."""
    return f"for (ptrdiff_t c = 0; c < {field.shape.count}; c++) {statement}"


def _apart(target: Target, group: FieldGroup, field: RecordField) -> str:
    """The address of one of the numbers: each has an array over all elements, one behind the other."""
    assert field.shape.of is not None
    kind = field.shape.of.text.removeprefix("const ")
    head = f"{target.prefix}_{target.accessor(field)}({target.ref} p, ptrdiff_t k, ptrdiff_t c)"
    if target.pooled:
        begin, count = f"{target.prefix}_pool.base + {group.at * pool.capacity(target)}", f"{pool.capacity(target)}"
        return function(f"{kind} *", head, f"return &(({kind} *)({begin}))[c * {count} + p.at + k];")
    where = f"__builtin_assume_aligned(p.base + {group.at} * p.count, {group.align})"
    return function(f"{kind} *", head, f"return &(({kind} *){where})[c * (ptrdiff_t)p.count + p.at + k];")


def place(target: Target, group: FieldGroup, field: RecordField) -> str:
    """The address of a field: the group's part of the memory, then the record of the element in it."""
    if field.apart:
        return _apart(target, group, field)
    kind = field.shape.text if field.shape.form == "other" else f"__typeof__((({target.spelling} *)0)->{field.name})"
    kind = f"{target.prefix}_{target.accessor(field)}_bits" if field.bits else kind.removeprefix("const ")
    at = group.at + group.offsets[group.fields.index(field)]
    inner = at - group.at
    head = f"{target.prefix}_{target.accessor(field)}({target.ref} p, ptrdiff_t k)"
    if target.pooled:
        return function(f"{kind} *", head, f"return ({kind} *){pool.place(target, group, inner)};")
    # gcc 12 may take stores for dead where it derives the address in one group from that in another (decision 64)
    if group.block:
        begin = f"first * {group.size}" + (f" + {group.at} * p.count" if group.at else "")
        begin += f" + in_block * {inner}" if inner else ""
        return function(
            f"{kind} *",
            head,
            f"const size_t i = (size_t)(p.at + k), first = i / {group.block} * {group.block}"
            + (", left = p.count - first;" if inner else ";"),
            *[f"const size_t in_block = left < {group.block} ? left : {group.block};"][: bool(inner)],
            f"char *const part = (char *)__builtin_assume_aligned(p.base + {begin}, {field.align});",
            f"return ({kind} *)(part + (i - first) * {field.size});",
        )
    where = f"__builtin_assume_aligned(p.base + {group.at} * p.count, {group.align})" if group.at else "p.base"
    # as an array, not a sum: gcc 12 then sees that members lie side by side, and makes vectors of them
    return function(f"{kind} *", head, f"return ({kind} *)&((char (*)[{group.size}]){where})[p.at + k][{inner}];")
