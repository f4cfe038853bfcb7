"""Copying a structure into its new layout and back, and the map from old to new addresses by plain division."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType

from layout_advise.layoutalgebra.derive.structure import Axis, Candidate, Chosen, FieldMap, Relayout, Structure
from layout_advise.mockup.emit.c_text import among, link_text, within_text
from layout_advise.mockup.evidence.binding import Binding, span
from layout_advise.mockup.remap.conversion_view import FieldKey, view
from layout_advise.mockup.remap.links import NO_LINKS, Links, OnePiece
from layout_advise.mockup.remap.sites import RemapPlan

_BY = {"whole": "", "div": " / {}", "mod": " % {}"}
_CELLS = {1: "la_i8", 2: "la_i16", 4: "la_i32", 8: "la_i64"}


def axis_text(axis: Axis, index: str) -> str:
    """``stride * index`` of one axis, where ``index`` is the dimension's index as C text (never negative)."""
    index = _divided(axis, index)
    if axis.part == "whole":
        return f"{axis.stride} * {index}"
    if axis.block & (axis.block - 1) == 0:
        cut = f"({index} >> {axis.block.bit_length() - 1})" if axis.part == "div" else f"({index} & {axis.block - 1})"
    else:
        cut = f"({index} {'/' if axis.part == 'div' else '%'} {axis.block})"
    return f"{axis.stride} * {cut}"


def _divided(axis: Axis, index: str) -> str:
    """``index`` as the axis takes the remainder of it."""
    return f"({index} / {axis.div})" if axis.div > 1 else index


def place_text(mapped: FieldMap, indices: Sequence[str], extra: int = 0) -> str:
    """Byte offset in the field's buffer of the element at ``indices``."""
    terms = [axis_text(axis, indices[axis.dim]) for axis in mapped.axes if axis.stride]
    constant = mapped.offset + extra
    if constant or not terms:
        terms.insert(0, str(constant))
    return " + ".join(terms)


def _table_name(chosen: Chosen) -> str:
    """By content: structures of which the same elements are chosen share a table."""
    return f"chosen_{sha256(chosen.bits).hexdigest()[:8]}"


def chosen_tables(relayouts: Sequence[Relayout]) -> str:
    """Returns which elements are stored, as C tables of one bit each; empty where all of them are."""
    tables: dict[str, tuple[bytes, list[str]]] = {}
    for relayout in relayouts:
        if relayout.chosen is not None:
            _, names = tables.setdefault(_table_name(relayout.chosen), (relayout.chosen.bits, []))
            names.append(relayout.structure.name.replace("*/", ""))
    lines: list[str] = []
    for name, (bits, names) in tables.items():
        words = [f"0x{int.from_bytes(bits[k : k + 8], 'little'):016x}" for k in range(0, len(bits), 8)]
        lines.append(f"/* Which elements of {', '.join(names)} this call uses, a bit each: only these are stored. */")
        lines.append(f"static const uint64_t {name}[{len(words)}] = {{")
        lines += [f"    {', '.join(words[k : k + 6])}," for k in range(0, len(words), 6)]
        lines.append("};")
    return "\n".join(lines)


def block_tables(relayouts: Sequence[Relayout]) -> str:
    """Returns where the elements lie that are in several blocks, as C tables; empty where there are none."""
    lines: list[str] = []
    for structure in (r.structure for r in relayouts if r.structure.blocks):
        lines.append(
            f"/* Where the elements of {structure.name.replace('*/', '')} lie: address, first element, how many. */"
        )
        lines.append(f"static const struct la_block blocks_{structure.id}[] = {{")
        lines += [f"    {{INT64_C({b.address:#x}), {b.first}, {b.count}}}," for b in structure.blocks]
        lines.append("};")
        lines += _pool(structure)
    return "\n".join(lines)


STRETCHES = 2
"""So many stretches of memory are looked up, at least, for each block."""


def _pool(structure: Structure) -> list[str]:
    """The table over the addresses of its blocks, filled when the mock-up is loaded."""
    name, blocks = structure.id, structure.blocks
    span = blocks[-1].address - blocks[0].address + 1
    shift = max(0, (span // (STRETCHES * len(blocks))).bit_length() - 1)
    stretches = (span - 1 >> shift) + 1
    counts = {b.count for b in blocks}
    each = counts.pop() if len(counts) == 1 else 0
    return [
        f"static int32_t starts_{name}[{stretches + 1}];",
        f"static const struct la_pool pool_{name} = {{",
        f"    blocks_{name}, starts_{name}, {len(blocks)}, {stretches}, {shift}, {each}}};",
        f"__attribute__((constructor)) static void begin_{name}(void) {{ la_begin(&pool_{name}); }}",
    ]


def _skip(relayout: Relayout, statement: str) -> list[str]:
    """``statement`` for the elements i0, i1, ... that are not stored."""
    chosen = relayout.chosen
    if chosen is None:
        return []
    number = "i0"
    for dim in range(1, chosen.dim + 1):
        number = f"({relayout.structure.dims[dim].count} * {number} + i{dim})"
    return [f"if (!(({_table_name(chosen)}[{number} / 64] >> ({number} % 64)) & 1))", f"    {statement}"]


Pieces = Mapping[str, OnePiece]
"""By structure id the new elements whose addresses are the codes of links."""


def coded_text(way: str, text: str, led: Structure, links: Links, pieces: Pieces) -> str:
    """:func:`~.c_text.link_text` outside of the kernel."""
    first = f"(int64_t)context->buffers[{pieces[led.id].buffer}]" if led.id in pieces else "1"
    return link_text(way, text, led, links.step(led), first)


def copy_functions(
    candidate: Candidate | None,
    binding: Binding,
    plan: RemapPlan,
    first_buffer: Sequence[int],
    links: Links = NO_LINKS,
    pieces: Pieces = MappingProxyType({}),
) -> tuple[str, str]:
    """``la_copy_in`` and ``la_copy_out``: of the fields that a view around the call needs."""
    if candidate is None:
        return copy_function((), (), frozenset(), True), copy_function((), (), frozenset(), False)
    seen = view(candidate, binding, plan)
    return (
        copy_function(candidate.relayouts, first_buffer, seen.inward, True, links, pieces),
        copy_function(candidate.relayouts, first_buffer, seen.outward, False, links, pieces),
    )


def copy_function(
    relayouts: Sequence[Relayout],
    first_buffer: Sequence[int],
    fields: frozenset[FieldKey],
    inward: bool,
    links: Links = NO_LINKS,
    pieces: Pieces = MappingProxyType({}),
) -> str:
    """``la_copy_in`` (``inward``) or ``la_copy_out`` of ``fields``; the first buffer of each of ``relayouts`` is given."""
    lines = [f"LA_EXPORT void la_copy_{'in' if inward else 'out'}(struct la_context *context)", "{", "    (void)context;"]
    for relayout, start in zip(relayouts, first_buffer, strict=True):
        maps = [m for m in relayout.fields if (relayout.structure.id, m.field) in fields]
        if maps:
            lines += _copy_loops(relayout, start, maps, inward, links, pieces)
    return "\n".join([*lines, "}"])


def _copy_loops(
    relayout: Relayout, start: int, maps: Sequence[FieldMap], inward: bool, links: Links, pieces: Pieces
) -> list[str]:
    structure = relayout.structure
    indices = [f"i{k}" for k in range(len(structure.dims))]
    lines = [f"    /* {structure.name} */"]
    for depth, (index, dim) in enumerate(zip(indices, structure.dims, strict=True)):
        lines.append(f"{'    ' * (depth + 1)}for (int64_t {index} = 0; {index} < {dim.count}; ++{index})")
    pad = "    " * len(structure.dims)
    lines[-1] += " {"
    lines += [f"{pad}    {line}" for line in _skip(relayout, "continue;")]
    lines += [f"{pad}    {line}" for line in _element(structure, indices)]
    for mapped in maps:
        field = structure.fields[mapped.field]
        old = f"element + {field.offset}"
        new = f"context->buffers[{start + mapped.buffer}] + {place_text(mapped, indices)}"
        to, source = (new, old) if inward else (old, new)
        cell = _CELLS.get(field.bytes)
        led = links.fields.get((structure.id, mapped.field))
        if led is not None:
            text = coded_text("encode" if inward else "decode", f"*(const {cell}_u *)({source})", led, links, pieces)
            lines.append(f"{pad}    *({cell}_u *)({to}) = {text};")
        elif cell is None:
            lines.append(f"{pad}    __builtin_memcpy({to}, {source}, {field.bytes});")
        else:
            lines.append(f"{pad}    *({cell}_u *)({to}) = *(const {cell}_u *)({source});")
    return [*lines, f"{pad}}}"]


def _element(structure: Structure, indices: Sequence[str]) -> list[str]:
    """Declares ``element``, the address of the element at ``indices`` in the old layout."""
    if structure.via is not None:
        slot = f"(const la_i64 *)(INT64_C({structure.via.table:#x}) + {structure.via.stride} * {indices[0]})"
        return [f"uint8_t *const element = (uint8_t *)*{slot};", "if (!element)", "    continue;"]
    if structure.blocks:
        element = f"la_element({among(structure)}, {structure.element_bytes}, {indices[0]})"
        return [f"uint8_t *const element = (uint8_t *){element};"]
    place = " + ".join(f"{d.stride} * {i}" for i, d in zip(indices, structure.dims, strict=True))
    return [f"uint8_t *const element = (uint8_t *)INT64_C({structure.base:#x}) + {place};"]


def place_function(relayouts: Sequence[Relayout], maps: Mapping[str, str]) -> str:
    """``la_place(context, old)`` of ``abi.h``, by the ``maps`` of structures: where a batch's calls find what the program
    writes between them. Objects behind pointers are in none of the maps."""
    lines = ["LA_EXPORT uint8_t *la_place(const struct la_context *context, int64_t old)", "{", "    int inside = 0;"]
    for structure in (r.structure for r in relayouts if r.structure.via is None):
        low, end = span(structure)
        inside = f"old >= INT64_C({low:#x}) && old < INT64_C({end:#x})"
        lines += [
            f"    if ({within_text('old', structure) if structure.blocks else inside}) {{",
            f"        uint8_t *const at = {maps[structure.id]}(context, old);",
            "        if (at)",
            "            return at;",
            "        inside = 1;",
            "    }",
        ]
    return "\n".join([*lines, "    return inside ? (uint8_t *)LA_NOWHERE : 0;", "}"])


def value_function(relayouts: Sequence[Relayout], links: Links, pieces: Pieces) -> str:
    """``la_value(context, old, value)`` of ``abi.h``: what a word that the program has is in the new arrays, where it may be
    a link; and the number ``la_codes`` of all that are. Empty where there are none."""
    if not links.fields:
        return ""
    head = "LA_EXPORT int64_t la_value(const struct la_context *context, int64_t old, int64_t value)"
    lines = [head, "{", "    (void)context;"]
    structures = {r.structure.id: r.structure for r in relayouts}
    for (name, number), led in links.fields.items():
        structure = structures[name]
        end = structure.count * structure.element_bytes
        at = f"rest % {structure.element_bytes} == {structure.fields[number].offset}"
        lines += [
            "    {",
            f"        const int64_t rest = {_distance(structure)};",
            f"        if (rest >= 0 && rest < {end} && {at})",
            f"            return {coded_text('encode', 'value', led, links, pieces)};",
            "    }",
        ]
    lines += ["    return value;", "}"]
    made = [
        (structures[name].base, structures[name].fields[number].offset, led.base, led.element_bytes, pieces.get(led.id))
        for (name, number), led in links.fields.items()
    ]
    codes = sha256(repr(sorted(made, key=repr)).encode()).hexdigest()[:16]
    return "\n".join([*lines, f"LA_EXPORT const uint64_t la_codes = UINT64_C(0x{codes});"])


def _distance(structure: Structure) -> str:
    """How far the old address is from the first element; negative where it is none of the structure's in several blocks."""
    if structure.blocks:
        return f"la_distance({among(structure)}, {structure.element_bytes}, old)"
    return f"old - INT64_C({structure.base:#x})"


def map_function(relayout: Relayout, start: int, name: str) -> str:
    """``name(context, old)``: the new place of an old address, NULL where it has none; independent of the re-indexing."""
    structure = relayout.structure
    lines = [
        f"static uint8_t *{name}(const struct la_context *context, int64_t old)",
        "{",
        f"    int64_t rest = {_distance(structure)};",
        "    if (rest < 0)",
        "        return 0;",
    ]
    for k, dim in enumerate(structure.dims):
        lines.append(f"    const int64_t i{k} = rest / {dim.stride};")
        lines.append(f"    rest %= {dim.stride};")
        lines.append(f"    if (i{k} >= {dim.count})")
        lines.append("        return 0;")
    lines += [f"    {line}" for line in _skip(relayout, "return 0;")]
    indices = [f"i{k}" for k in range(len(structure.dims))]
    for mapped in relayout.fields:
        field = structure.fields[mapped.field]
        lines.append(f"    if (rest >= {field.offset} && rest < {field.offset + field.bytes}) /* {field.name} */")
        plain = [f"({i})" for i in indices]
        terms = " + ".join(f"{a.stride} * ({_divided(a, plain[a.dim])}{_BY[a.part].format(a.block)})" for a in mapped.axes)
        place = f"context->buffers[{start + mapped.buffer}] + {mapped.offset} + (rest - {field.offset})"
        lines.append(f"        return {place}{' + ' + terms if terms else ''};")
    return "\n".join([*lines, "    return 0;", "}"])
