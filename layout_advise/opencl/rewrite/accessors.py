"""OpenCL C for a layout: the type that stands for a pointer to an element, and a function for each use of it."""

from __future__ import annotations

import re

from layout_advise.opencl.rewrite.layouts import BufferLayout, TiledCluster
from layout_advise.opencl.source.kernels import BufferMember

_HELD = {"atomic_int": "int", "atomic_uint": "uint", "atomic_long": "long", "atomic_ulong": "ulong",
         "atomic_float": "float", "atomic_double": "double"}  # fmt: skip
"""What atomic members hold."""
_ARRAY = re.compile(r"(.*?)\s*((?:\[\d+\])+)")


def buffer_names(layout: BufferLayout) -> tuple[str, ...]:
    """The names of the buffers in what stands for a pointer."""
    return tuple("base" + (str(k) if k else "") for k in range(len(layout.clusters)))


def ref_type(layout: BufferLayout, prefix: str, space: str, record: bool = False) -> str:
    """The type: the buffers, and the number of the element. With ``record`` also the log of accesses."""
    fields = "".join(f"    {space} uchar *{name};\n" for name in buffer_names(layout))
    log = "    __global uint *log;\n" if record else ""
    return f"typedef struct {{\n{fields}{log}    long at;\n}} {prefix}_ref;\n"


def functions(layout: BufferLayout, prefix: str, space: str, notes: dict[str, int] | None = None) -> str:
    """All accessors; with ``notes``, the numbers of the members, each access is noted in the log."""
    parts = []
    for name, cluster in zip(buffer_names(layout), layout.clusters, strict=True):
        for member, offset in zip(cluster.members, cluster.offsets, strict=True):
            note = f"    layout_advise_note(p.log, {notes[member.name]}u);\n" if notes is not None else ""
            parts.append(_place(prefix, space, name, cluster, member, offset, note))
    parts += [write(layout, prefix) for write in (_plus, _stepped, _stepping, _minus, _same)]
    copies = (_load, _store, _put) if space == "__global" else (_load,)
    parts += [write(layout, prefix, space) for write in copies]
    return "\n".join(parts)


def _place(prefix: str, space: str, base: str, cluster: TiledCluster, member: BufferMember, offset: int, note: str) -> str:
    """The address of a member of element ``p.at + k``. Counted in members wherever these fit, as a person would index them:
    drivers optimise less where it is counted in bytes (decision 79)."""
    alias = f"{prefix}_at_{member.name}"
    unit = member.bytes if cluster.stride % member.bytes == 0 and offset * cluster.tile % member.bytes == 0 else 1
    stride, first = cluster.stride // unit, offset * cluster.tile // unit
    behind = f" + {first}" if first else ""
    if cluster.tile == 1:
        where = f"g * {stride}{behind}" if stride > 1 else f"g{behind}"
    else:
        inner = "" if unit > 1 or member.bytes == 1 else f" * {member.bytes}"
        where = f"g / {cluster.tile} * {stride}{behind} + g % {cluster.tile}{inner}"
    address = f"({space} {alias} *)p.{base} + ({where})" if unit > 1 else f"({space} {alias} *)(p.{base} + ({where}))"
    found = _ARRAY.fullmatch(member.type)
    declared = f"typedef {found[1]} {alias}{found[2]};\n" if found else f"typedef {member.type} {alias};\n"
    head = f"static inline {space} {alias} *{prefix}_of_{member.name}({prefix}_ref p, long k)"
    body = f"    const ulong g = (ulong)(p.at + k);\n{note}    return {address};\n"
    return f"{declared}{head}\n{{\n{body}}}\n"


def _function(result: str, head: str, *body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body)
    return f"static inline {result} {head}\n{{\n{lines}}}\n"


def _plus(_: BufferLayout, prefix: str) -> str:
    return _function(f"{prefix}_ref", f"{prefix}_plus({prefix}_ref p, long k)", "p.at += k;", "return p;")


def _stepped(_: BufferLayout, prefix: str) -> str:
    return _function(f"{prefix}_ref", f"{prefix}_stepped({prefix}_ref *p, long k)", "p->at += k;", "return *p;")


def _stepping(_: BufferLayout, prefix: str) -> str:
    body = (f"const {prefix}_ref before = *p;", "p->at += k;", "return before;")
    return _function(f"{prefix}_ref", f"{prefix}_stepping({prefix}_ref *p, long k)", *body)


def _minus(_: BufferLayout, prefix: str) -> str:
    return _function("long", f"{prefix}_minus({prefix}_ref p, {prefix}_ref q)", "return p.at - q.at;")


def _same(_: BufferLayout, prefix: str) -> str:
    body = "return p.base == q.base && p.at == q.at;"
    return _function("int", f"{prefix}_same({prefix}_ref p, {prefix}_ref q)", body)


def _moved(layout: BufferLayout, prefix: str, space: str, own: str, loads: bool = False) -> list[str]:
    """A line for each member, into the buffers or (``loads``) out of them; arrays go element by element, atomic members as
    the numbers that they hold, since a copy is not atomic."""
    lines = []
    for member in layout.record.members:
        address, copy = f"{prefix}_of_{member.name}(p, k)", f"{own}{member.name}"
        place = f"(*{address})"
        if member.type in _HELD:
            held = _HELD[member.type]
            place, copy = f"*({space} {held} *){address}", f"*(__private {held} *)&{copy}"
        found = _ARRAY.fullmatch(member.type)
        sizes = [int(n) for n in re.findall(r"\d+", found[2])] if found else []
        names = [f"i{depth}" for depth in range(len(sizes))]
        loops = " ".join(f"for (int {i} = 0; {i} < {n}; {i}++)" for i, n in zip(names, sizes, strict=True))
        index = "".join(f"[{i}]" for i in names)
        there, here = place + index, copy + index
        lines.append(f"{loops} {here} = {there};".strip() if loads else f"{loops} {there} = {here};".strip())
    return lines


def _load(layout: BufferLayout, prefix: str, space: str) -> str:
    kind = layout.record.name
    lines = _moved(layout, prefix, space, "e.", loads=True)
    return _function(kind, f"{prefix}_load({prefix}_ref p, long k)", f"{kind} e;", *lines, "return e;")


def _store(layout: BufferLayout, prefix: str, space: str) -> str:
    kind = layout.record.name
    lines = _moved(layout, prefix, space, "e.")
    return _function(kind, f"{prefix}_store({prefix}_ref p, long k, {kind} e)", *lines, "return e;")


def _put(layout: BufferLayout, prefix: str, space: str) -> str:
    kind = layout.record.name
    lines = _moved(layout, prefix, space, "e->")
    return _function("void", f"{prefix}_put({prefix}_ref p, long k, const __private {kind} *e)", *lines)
