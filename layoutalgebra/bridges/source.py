"""C and C++ source of a layout: its buffers and an accessor for every field, ready to be compiled into a program.

:func:`layout_advise.layoutalgebra.bridges.declarations.declare` shows a layout as declarations to read; here the accessors
compute the address themselves, so that the program's loops keep their indices.
"""

from __future__ import annotations

from layout_advise.layoutalgebra.bridges.arrays import field_dtype
from layout_advise.layoutalgebra.bridges.declarations import identifier
from layout_advise.layoutalgebra.derive.structure import Field, FieldMap, Relayout

_SCALARS = {"f4": "float", "f8": "double", "i1": "int8_t", "i2": "int16_t", "i4": "int32_t", "i8": "int64_t",
            "u1": "uint8_t", "u2": "uint16_t", "u4": "uint32_t", "u8": "uint64_t"}  # fmt: skip
LETTERS = "ijklmn"


def c_source(layout: Relayout, name: str | None = None) -> str:
    """A C11 header: ``struct NAME`` with the buffers, their sizes, and ``NAME_FIELD(&s, i, j, ...)`` giving a pointer.

    Buffers must be aligned to 64 bytes for the alignment of the fields to hold.
    """
    name = identifier(name or layout.structure.name)
    guard = f"{name.upper()}_LAYOUT_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>", "#include <stdint.h>", ""]
    lines += [f"/* {layout.term} */", f"struct {name} {{"]
    lines += [f"    unsigned char *{buffer}; /* {size} bytes */" for buffer, size in buffers_of(layout)]
    lines += ["};", ""]
    lines += [f"#define {name}_{buffer}_bytes ((size_t){size}u)" for buffer, size in buffers_of(layout)]
    lines += [""]
    arguments = ", ".join(f"size_t {index}" for index in indices_of(layout))
    for field, one, member in members_of(layout):
        what, address = _scalar(field), byte_place(layout, one)
        lines += [
            f"static inline {what} *{name}_{member}(const struct {name} *s, {arguments})",
            "{",
            *_unused(layout, one, "    (void){};"),
            f"    return ({what} *)(void *)(s->{buffers_of(layout)[one.buffer][0]} + {address});",
            "}",
            "",
        ]
    return "\n".join([*lines, f"#endif /* {guard} */", ""])


def cpp_source(layout: Relayout, name: str | None = None) -> str:
    """A C++17 header: ``class NAME`` over its buffers, with ``s.FIELD(i, j, ...)`` giving a reference."""
    name = identifier(name or layout.structure.name)
    buffers = buffers_of(layout)
    arguments = ", ".join(f"[[maybe_unused]] std::size_t {index}" for index in indices_of(layout))
    lines = ["#pragma once", "", "#include <array>", "#include <cstddef>", "#include <cstdint>", ""]
    lines += [f"// {layout.term}", f"class {name} {{", "public:"]
    lines += [
        f"    static constexpr std::array<std::size_t, {len(buffers)}> bytes{{{', '.join(str(n) for _, n in buffers)}}};"
    ]
    lines += [f"    explicit {name}(const std::array<std::byte *, {len(buffers)}> &where) : buffers(where) {{}}", ""]
    for field, one, member in members_of(layout):
        what = _scalar(field)
        lines += [
            f"    {what} &{member}({arguments}) const",
            "    {",
            f"        return *reinterpret_cast<{what} *>(buffers[{one.buffer}] + {byte_place(layout, one)});",
            "    }",
            "",
        ]
    return "\n".join([*lines, "private:", f"    std::array<std::byte *, {len(buffers)}> buffers;", "};", ""])


def buffers_of(layout: Relayout) -> list[tuple[str, int]]:
    """The buffers' names as identifiers, each once, and their sizes in bytes."""
    taken: set[str] = set()
    return [(_free(identifier(buffer.name), taken), buffer.bytes) for buffer in layout.buffers]


def members_of(layout: Relayout) -> list[tuple[Field, FieldMap, str]]:
    """Every field with its map and a name of its own."""
    taken = {"bytes", "buffers"}
    found = []
    for one in layout.fields:
        field = layout.structure.fields[one.field]
        found.append((field, one, _free(identifier(field.name or f"f{field.offset}"), taken)))
    return found


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _scalar(field: Field) -> str:
    return _SCALARS.get(field_dtype(field).str[1:], _SCALARS.get(f"u{field.bytes}", "unsigned char"))


def indices_of(layout: Relayout) -> list[str]:
    """The letters of the structure's dimensions: ``i``, ``j``."""
    return [LETTERS[k] if k < len(LETTERS) else f"i{k}" for k in range(len(layout.structure.dims))]


def byte_place(layout: Relayout, one: FieldMap, quotient: str = "/") -> str:
    """The byte offset in the buffer as an expression of the indices; ``quotient`` divides integers."""
    names, parts = indices_of(layout), [str(one.offset)] if one.offset else []
    for axis in one.axes:
        index = names[axis.dim]
        if axis.part == "div":
            index = f"({index} {quotient} {axis.block})"
        elif axis.part == "mod":
            index = f"({index} {quotient} {axis.div} % {axis.block})" if axis.div > 1 else f"({index} % {axis.block})"
        parts.append(f"{axis.stride} * {index}")
    return " + ".join(parts) or "0"


def _unused(layout: Relayout, one: FieldMap, text: str) -> list[str]:
    used = {axis.dim for axis in one.axes}
    return [text.format(name) for k, name in enumerate(indices_of(layout)) if k not in used]
