"""Zig, Odin and Rust."""

from __future__ import annotations

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.bridges.declarations import identifier
from layout_advise.layoutalgebra.bridges.languages.scalars import SHORT, left_out, require_whole, scalar
from layout_advise.layoutalgebra.bridges.source import buffers_of, byte_place, indices_of, members_of
from layout_advise.layoutalgebra.derive.structure import FieldMap, Relayout

ALLOW = "#[allow(non_snake_case)]"
"""Members keep the names of the source."""


def zig_source(layout: Relayout, name: str) -> str:
    """A struct of buffers with a method for each field: ``s.x(i).*``."""
    lines = [f"// {layout.term}", *left_out(layout, "//"), f"pub const {identifier(name)} = struct {{"]
    lines += [f"    {buffer}: [*]align(64) u8, // {size} bytes" for buffer, size in buffers_of(layout)]
    arguments = "".join(f", {index}: usize" for index in indices_of(layout))
    for field, one, member in members_of(layout):
        what, buffer = scalar(field, SHORT), buffers_of(layout)[one.buffer][0]
        unused = [f"        _ = {index};" for index in _unused(layout, one)]
        lines += ["", f"    pub fn {member}(self: @This(){arguments}) *{what} {{", *unused]
        lines += [f"        return @ptrCast(@alignCast(&self.{buffer}[{byte_place(layout, one)}]));", "    }"]
    return "\n".join([*lines, "};", ""])


def odin_source(layout: Relayout, name: str) -> str:
    """A struct of buffers with a procedure for each field: ``NAME_x(&s, i)^``."""
    tag = identifier(name)
    lines = [f"// {layout.term}", *left_out(layout, "//"), f"{tag} :: struct {{"]
    lines += [f"\t{buffer}: [^]u8, // {size} bytes, aligned to 64" for buffer, size in buffers_of(layout)]
    lines += ["}"]
    arguments = "".join(f", {index}: int" for index in indices_of(layout))
    for field, one, member in members_of(layout):
        what, buffer = scalar(field, SHORT), buffers_of(layout)[one.buffer][0]
        lines += ["", f"{tag}_{member} :: #force_inline proc(s: ^{tag}{arguments}) -> ^{what} {{"]
        lines += [f"\treturn (^{what})(&s.{buffer}[{byte_place(layout, one)}])", "}"]
    return "\n".join([*lines, ""])


def soa_derive_source(layout: Relayout, name: str) -> str:
    """Structures for Rust's crate soa_derive, whose macro makes an array of each member; members that stay together are a
    record. Raises AlgebraError for blocks and several dimensions, which the crate does not have."""
    require_whole(layout, "soa_derive")
    if len(layout.structure.dims) > 1:
        raise AlgebraError("soa_derive has no name for this layout", "it has several dimensions", "choose --as c++")
    tag = "".join(part.capitalize() for part in identifier(name).split("_"))
    lines = ["use soa_derive::StructOfArray;", "", f"// {layout.term}", *left_out(layout, "//")]
    outer, fields = [], members_of(layout)
    for number, (buffer, _) in enumerate(buffers_of(layout)):
        held = sorted((one for one in fields if one[1].buffer == number), key=lambda one: one[1].offset)
        record = min(axis.stride for axis in held[0][1].axes)
        if len(held) > 1 and any(one.offset + field.bytes > record for field, one, _ in held):
            raise AlgebraError("soa_derive has no name for this layout", f"{buffer} holds several arrays", "choose --as c")
        if len(held) == 1:
            outer.append(f"    pub {held[0][2]}: {scalar(held[0][0], SHORT)},")
            continue
        inner = f"{tag}{number}"
        members = [f"    pub {member}: {scalar(field, SHORT)}," for field, _, member in held]
        lines += ["#[derive(Clone, Copy, Debug, Default, PartialEq)]", "#[repr(C)]", ALLOW]
        lines += [f"pub struct {inner} {{", *members, "}", ""]
        outer.append(f"    pub {buffer}: {inner},")
    lines += [
        "#[derive(Clone, Copy, Debug, Default, PartialEq, StructOfArray)]",
        ALLOW,
        f"pub struct {tag} {{",
        *outer,
        "}",
        "",
    ]
    return "\n".join([*lines, f"// let mut all = {tag}Vec::new();", ""])


def _unused(layout: Relayout, one: FieldMap) -> list[str]:
    used = {axis.dim for axis in one.axes}
    return [name for number, name in enumerate(indices_of(layout)) if number not in used]
