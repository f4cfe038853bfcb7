"""C++23's ``std::mdspan``: a strided view of each field over the buffers."""

from __future__ import annotations

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.bridges.declarations import identifier
from layout_advise.layoutalgebra.bridges.languages.scalars import CPP, digit, extent, left_out, scalar
from layout_advise.layoutalgebra.bridges.source import buffers_of, indices_of, members_of
from layout_advise.layoutalgebra.derive.structure import Field, FieldMap, Relayout

HEAD = """\
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if __has_include(<mdspan>) && __cplusplus > 202002L
#include <mdspan>
namespace md = std;
template <std::size_t N> using md_strides = std::array<std::size_t, N>;
#elif __has_include(<experimental/mdspan>)  // the reference implementation
#include <experimental/mdspan>
namespace md = std::experimental;
template <std::size_t N> using md_strides = std::array<std::size_t, N>;
#else
#include <cuda/std/array>
#include <cuda/std/mdspan>
namespace md = cuda::std;
template <std::size_t N> using md_strides = cuda::std::array<std::size_t, N>;
#endif
"""


def mdspan_source(layout: Relayout, name: str) -> str:
    """A C++17 header: ``class NAME`` over its buffers, ``s.FIELD_view`` for whole fields, ``s.FIELD(i, j, ...)`` for one
    value. Raises AlgebraError where a stride is no multiple of the field's size."""
    buffers, fields, tag = buffers_of(layout), members_of(layout), identifier(name)
    sizes = ", ".join(str(size) for _, size in buffers)
    lines = [HEAD, f"// {layout.term}", *left_out(layout, "//"), f"class {tag} {{", "public:"]
    lines += [f"    static constexpr std::array<std::size_t, {len(buffers)}> bytes{{{sizes}}};", ""]
    for field, one, member in fields:
        what = scalar(field, CPP)
        extents = ", ".join(["std::size_t", *(str(extent(layout, axis)) for axis in one.axes)])
        lines += [f"    using {member}_type = md::mdspan<{what}, md::extents<{extents}>, md::layout_stride>;"]
        lines += [f"    {member}_type {member}_view;"]
    starts = ",\n          ".join(f"{member}_view({_view(field, one, member)})" for field, one, member in fields)
    lines += ["", f"    explicit {tag}(const std::array<std::byte *, {len(buffers)}> &buffers)"]
    lines += [f"        : {starts}", "    {", "    }", ""]
    for field, one, member in fields:
        lines += [*_accessor(layout, scalar(field, CPP), one, member), ""]
    return "\n".join([*lines[:-1], "};", ""])


def _view(field: Field, one: FieldMap, member: str) -> str:
    if any(axis.stride % field.bytes for axis in one.axes):
        why = f"a stride is no multiple of the {field.bytes} bytes of {field.name}"
        raise AlgebraError("std::mdspan cannot view this layout", why, "choose --as c++")
    strides = ", ".join(str(axis.stride // field.bytes) for axis in one.axes)
    data = f"reinterpret_cast<{scalar(field, CPP)} *>(buffers[{one.buffer}] + {one.offset})"
    mapping = f"{member}_type::mapping_type({member}_type::extents_type{{}}, md_strides<{len(one.axes)}>{{{strides}}})"
    return f"{data}, {mapping}"


def _accessor(layout: Relayout, what: str, one: FieldMap, member: str) -> list[str]:
    names = indices_of(layout)
    arguments = ", ".join(f"[[maybe_unused]] std::size_t {index}" for index in names)
    place = ", ".join(digit(axis, names[axis.dim]) for axis in one.axes)
    body = f"        return {member}_view.data_handle()[{member}_view.mapping()({place})];"
    return [f"    {what} &{member}({arguments}) const", "    {", body, "    }"]
