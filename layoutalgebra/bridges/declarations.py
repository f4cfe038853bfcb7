"""C declarations of a structure as it is and as a candidate would have it (for the report)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from layout_advise.layoutalgebra.derive.structure import Axis, Candidate, Chosen, Field, FieldMap, Relayout, Structure

_SIZED = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_KNOWN = {"float": 4, "double": 8, "char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "int": 4, "unsigned int": 4,
          "long": 8, "unsigned long": 8, "long int": 8, "long unsigned int": 8, "short int": 2, "short unsigned int": 2,
          "long long": 8, "unsigned long long": 8, "long long int": 8, "long long unsigned int": 8, "_Bool": 1}  # fmt: skip
_FORTRAN = {"real(kind=4)": "float", "real(kind=8)": "double", **{f"{what}(kind={n})": f"int{8 * n}_t"
            for what in ("integer", "logical") for n in (1, 2, 4, 8)}}  # fmt: skip
"""Fortran's types by their names in C."""
_KEYWORDS = frozenset(("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
                       "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
                       "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
                       "volatile", "while"))  # fmt: skip

_UNUSED = "  /* not used here */"
_ELEMENT = re.compile(r"(.*)\[(\d+)\]")


def identifier(name: str) -> str:
    """``pos.x`` as ``pos_x``: a C identifier."""
    text = re.sub(r"\W+", "_", name).strip("_") or "value"
    text = f"f_{text}" if text[0].isdigit() else text
    return f"{text}_" if text in _KEYWORDS else text


def _declare_field(field: Field, name: str, count: str = "") -> str:
    """``double x[8]``, by size where the type is not a scalar of C."""
    if field.type in _KNOWN and _KNOWN[field.type] == field.bytes:
        return f"{field.type} {name}{count}"
    if field.type in _FORTRAN:
        return f"{_FORTRAN[field.type]} {name}{count}"
    kind, bracket, number = (field.type or "").rstrip("]").partition("[")
    if kind and bracket and number.isdigit():  # an array that is one field
        return _declare_field(replace(field, type=kind, bytes=field.bytes // int(number)), name, f"{count}[{number}]")
    if field.bytes in _SIZED:
        return f"{_SIZED[field.bytes]} {name}{count}"
    return f"unsigned char {name}{count}[{field.bytes}]"


def declare_run(field: Field, name: str, count: int) -> str:
    """A member ``name``: one field, or an array of ``count`` like it."""
    return _declare_field(field, name, f"[{count}]" if count > 1 else "")


def runs_of(fields: Iterable[Field]) -> list[tuple[Field, str, int]]:
    """The fields by offset, with the elements of an array that follow one another as one entry: its first element, the name
    of the array, how many."""
    found: list[tuple[Field, str, int]] = []
    for field in sorted(fields, key=lambda f: f.offset):
        element = _ELEMENT.fullmatch(field.name)
        if element is not None and found and _follows(*found[-1], field, f"{element[1]}[0]", int(element[2])):
            first, _, count = found.pop()
            found.append((first, element[1], count + 1))
        else:
            found.append((field, field.name, 1))
    return found


def _follows(first: Field, _: str, count: int, field: Field, head: str, index: int) -> bool:
    """True if ``field`` is the next element of the array that ``first`` begins."""
    alike = (field.type, field.bytes) == (first.type, first.bytes)
    return first.name == head and index == count and alike and field.offset == first.offset + count * first.bytes


def declare_structure(structure: Structure) -> str:
    """The element as it lies in memory now: its fields, the unused ones marked, gaps as bytes. Compiles as C11."""
    tag = identifier(structure.type or structure.name)
    lines, place = ["#include <stdint.h>", "", f"struct {tag}_now {{"], 0
    names: set[str] = set()
    used, unused = ([(*run, note) for run in runs_of(f)] for f, note in ((structure.fields, ""), (structure.cold, _UNUSED)))
    for field, name, count, note in sorted((*used, *unused), key=lambda run: run[0].offset):
        if field.offset > place:
            lines.append(f"    unsigned char unused_{place}[{field.offset - place}];")
        if field.offset < place:
            continue
        lines.append(f"    {declare_run(field, unique(identifier(name), names), count)};{note}")
        place = field.offset + field.bytes * count
    if place < structure.element_bytes:
        lines.append(f"    unsigned char unused_{place}[{structure.element_bytes - place}];")
    end = "}" if _lies_naturally(structure) else "} __attribute__((packed, aligned(1)))"
    dims = "".join(f"[{d.count}]" for d in structure.dims)
    return "\n".join([*lines, f"{end};", f"/* {structure.name}{dims} */", ""])


def _lies_naturally(structure: Structure) -> bool:
    """True if the declared members have the places that a compiler gives them by itself."""
    fields = (*structure.fields, *structure.cold)
    aligned = [(f.offset, f.bytes) for f in fields if f.type in _KNOWN or f.bytes in _SIZED]
    return all(at % size == 0 and structure.element_bytes % size == 0 for at, size in aligned)


def unique(name: str, taken: set[str]) -> str:
    """``name``, with underscores behind it where it is taken; it is taken from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def declare(candidate: Candidate) -> str:
    """The buffers of a candidate as C declarations, with where each field of element [i][j]... went. Compiles as C11."""
    text = ["#include <stdint.h>", ""]
    taken: set[str] = set()
    for layout in candidate.stored:
        for number, buffer in enumerate(layout.buffers):
            text.extend(_declare_buffer(layout, number, unique(identifier(buffer.name), taken)))
        if layout.chosen is not None:
            text.extend(_others(layout, layout.chosen))
        for own in candidate.relayouts if candidate.keeps_cold else ():
            if own.structure.cold and (own.merged or own) == layout:
                text.extend(_declare_cold(own.structure, taken))
    return "\n".join(text)


@dataclass(frozen=True, slots=True)
class NewArray:
    """A buffer of a candidate as an array ``name`` with ``dims``: of the scalar ``field``, or (None) of records with the
    lines ``members``. ``index`` are the letters of its dimensions; ``places`` tell by a field's number the rest of an access
    to it, as ``.x[i % 8]``."""

    name: str
    field: Field | None
    members: tuple[str, ...]
    dims: tuple[int, ...]
    index: str
    places: tuple[tuple[int, str], ...]

    def declared(self, name: str, dims: str) -> str:
        """``double a[8]``, or ``struct a a[8]`` without the record's lines, for an array called ``name``."""
        return _declare_field(self.field, name, dims) if self.field is not None else f"struct {self.name} {name}{dims}"


def new_array(layout: Relayout, number: int, name: str) -> NewArray:
    """Buffer ``number`` of ``layout`` as an array of C."""
    fields = layout.structure.fields
    maps = [m for m in layout.fields if m.buffer == number]
    shared = [a for a in maps[0].axes if all(a in m.axes for m in maps)]
    own = [[a for a in m.axes if a not in shared] for m in maps]
    if len(maps) == 1:
        shared, own = list(maps[0].axes), [[]]
    elif not any(own) and any(a.stride < sum(fields[m.field].bytes for m in maps) for a in shared):
        inner = [a for a in shared if a.stride < sum(fields[m.field].bytes for m in maps)]
        shared, own = [a for a in shared if a not in inner], [inner] * len(maps)
    dims = tuple(_extent(layout, a) for a in shared)
    index = "".join(f"[{_index(a)}]" for a in shared)
    record = min((a.stride for a in shared), default=layout.buffers[number].bytes)
    if len(maps) == 1 and record == fields[maps[0].field].bytes:
        return NewArray(name, fields[maps[0].field], (), dims, index, ((maps[0].field, ""),))
    placed = sorted(zip(maps, own, strict=True), key=lambda p: p[0].offset)
    lines, places = _members(layout, placed, f"{name}{index}")
    end = max(_end(layout, m, inner) for m, inner in placed)
    tail = [f"    unsigned char padding[{record - end}];"] if record > end else []
    return NewArray(name, None, (*lines, *tail), dims, index, tuple(places))


def _declare_buffer(layout: Relayout, number: int, name: str) -> list[str]:
    array = new_array(layout, number, name)
    dims = "".join(f"[{count}]" for count in array.dims)
    if array.field is not None:
        note = f"/* .{array.field.name} of {element_of(layout.structure)}: {name}{array.index} */"
        return [f"{array.declared(name, dims)};  {note}", ""]
    return [f"struct {name} {{", *array.members, f"}} {name}{dims};", ""]


def _members(
    layout: Relayout, placed: list[tuple[FieldMap, list[Axis]]], element: str
) -> tuple[list[str], list[tuple[int, str]]]:
    """The members of a record, each with its inner axes, fields that stay side by side there as a record of their own; and
    by field the rest of an access to it."""
    fields, lines, names, places = layout.structure.fields, list[str](), set[str](), list[tuple[int, str]]()
    first, axes = placed[0]
    together = min((a.stride for a in axes), default=0) // fields[first.field].bytes or 1
    for start in range(0, len(placed), together):
        run = placed[start : start + together]
        members = [unique(identifier(fields[m.field].name), names) for m, _ in run]
        counts = ["".join(f"[{_extent(layout, a)}]" for a in inner) for _, inner in run]
        at = ["".join(f"[{_index(a)}]" for a in inner) for _, inner in run]
        if together == 1:
            declared = _declare_field(fields[run[0][0].field], members[0], counts[0])
            places.append((run[0][0].field, f".{members[0]}{at[0]}"))
            lines.append(f"    {declared};  /* {element}{places[-1][1]} */")
            continue
        group = unique("_".join(members), names)
        lines.append("    struct {")
        for (m, _), member in zip(run, members, strict=True):
            places.append((m.field, f".{group}{at[0]}.{member}"))
            lines.append(f"        {_declare_field(fields[m.field], member)};  /* {element}{places[-1][1]} */")
        lines.append(f"    }} {group}{counts[0]};")
    return lines, places


def _end(layout: Relayout, m: FieldMap, inner: list[Axis]) -> int:
    """The first byte of a record behind all values of the field."""
    last = sum(axis.stride * (_extent(layout, axis) - 1) for axis in inner)
    return m.offset + last + layout.structure.fields[m.field].bytes


def _declare_cold(structure: Structure, taken: set[str]) -> list[str]:
    name = unique(identifier(f"{structure.name}_cold"), taken)
    names: set[str] = set()
    runs = runs_of(structure.cold)
    members = [f"    {declare_run(f, unique(identifier(name), names), count)};" for f, name, count in runs]
    dims = "".join(f"[{d.count}]" for d in structure.dims)
    return [f"struct {name} {{  /* what this hotspot does not use */", *members, f"}} {name}{dims};", ""]


def _others(layout: Relayout, chosen: Chosen) -> list[str]:
    """A comment on the elements that are not in the buffers."""
    letter = _index(Axis(chosen.dim, "whole", 1, 0))
    more = "a second part like it holds" if chosen.block == 2 else f"{chosen.block - 1} further parts like it hold"
    return [
        f"/* Of each {chosen.block} neighbours ({letter} / {chosen.block} alike) the one that the call uses is here; {more}",
        "   the rest: the program has to choose the part by the element's class. */",
        "",
    ]


def _extent(layout: Relayout, axis: Axis) -> int:
    count = layout.structure.dims[axis.dim].count
    return {"whole": count, "div": -(-count // axis.block), "mod": axis.block}[axis.part]


def index_letter(dim: int) -> str:
    """The name of a dimension's index: i, j, k, ..."""
    return "ijklmn"[dim] if dim < 6 else f"i{dim}"


def _index(axis: Axis) -> str:
    letter = index_letter(axis.dim)
    divided = f"{letter} / {axis.div}" if axis.div > 1 else letter
    return {"whole": letter, "div": f"{letter} / {axis.block}", "mod": f"{divided} % {axis.block}"}[axis.part]


def element_of(structure: Structure) -> str:
    """``p[i][j]``: an element in terms of its indices."""
    letters = "".join(f"[{index_letter(k)}]" for k in range(len(structure.dims)))
    return f"{structure.name}{letters}"
