"""Data of a record between the program's layout and another one: on the host with NumPy, and on the device as a kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layout_advise.opencl.rewrite.layouts import BufferLayout, TiledCluster
from layout_advise.opencl.source.kernels import BufferMember, BufferRecord

Bytes = NDArray[np.uint8]
IN_KERNEL = "layout_advise_in"
OUT_KERNEL = "layout_advise_out"
_UNITS = {8: "ulong", 4: "uint", 2: "ushort", 1: "uchar"}


def scattered(one: BufferLayout, data: Bytes) -> tuple[Bytes, ...]:
    """The buffers of the new layout with the data of whole elements; what no member has is zero."""
    rows = data[: len(data) // one.record.bytes * one.record.bytes].reshape(-1, one.record.bytes)
    found = []
    for cluster in one.clusters:
        buffer = np.zeros(cluster.bytes(len(rows)), dtype=np.uint8)
        for member, offset in zip(cluster.members, cluster.offsets, strict=True):
            view = _view(buffer, cluster, member, offset)
            part = rows[:, member.offset : member.offset + member.bytes]
            whole = len(rows) // cluster.tile
            view[:whole] = part[: whole * cluster.tile].reshape(whole, cluster.tile, member.bytes)
            if len(rows) > whole * cluster.tile:
                view[whole, : len(rows) - whole * cluster.tile] = part[whole * cluster.tile :]
        found.append(buffer)
    return tuple(found)


def gathered(one: BufferLayout, buffers: Sequence[Bytes], data: Bytes) -> Bytes:
    """A copy of ``data`` with the members as they are in the buffers of the new layout."""
    result = data.copy()
    rows = result[: len(data) // one.record.bytes * one.record.bytes].reshape(-1, one.record.bytes)
    for cluster, buffer in zip(one.clusters, buffers, strict=True):
        for member, offset in zip(cluster.members, cluster.offsets, strict=True):
            view = _view(buffer, cluster, member, offset)
            flat = view.reshape(-1, member.bytes)[: len(rows)]
            rows[:, member.offset : member.offset + member.bytes] = flat
    return result


def _view(buffer: Bytes, cluster: TiledCluster, member: BufferMember, offset: int) -> Bytes:
    """A member's bytes as ``[tile][element][byte]``."""
    tiles = len(buffer) // cluster.stride
    strides = (cluster.stride, member.bytes, 1)
    return np.lib.stride_tricks.as_strided(
        buffer[offset * cluster.tile :], (tiles, cluster.tile, member.bytes), strides, writeable=True
    )


def without_padding(record: BufferRecord, data: Bytes) -> Bytes:
    """The data with the bytes zeroed that no member has: nothing is promised of these."""
    result = data.copy()
    rows = result[: len(data) // record.bytes * record.bytes].reshape(-1, record.bytes)
    for at, size in record.padding:
        rows[:, at : at + size] = 0
    return result


def marshalling_source(one: BufferLayout) -> str:
    """Two kernels, into the new layout and back, of as many work items as there are elements."""
    names = [f"c{k}" for k in range(len(one.clusters))]
    buffers = ", ".join(f"__global uchar *{name}" for name in names)
    texts = []
    for kernel, there in ((IN_KERNEL, True), (OUT_KERNEL, False)):
        lines = [f"__kernel void {kernel}(__global uchar *aos, {buffers})", "{", "    const ulong g = get_global_id(0);"]
        for name, cluster in zip(names, one.clusters, strict=True):
            for member, offset in zip(cluster.members, cluster.offsets, strict=True):
                lines.append(_copied(name, one.record, cluster, member, offset, there))
        texts.append("\n".join([*lines, "}"]))
    return "\n\n".join(texts) + "\n"


def _copied(name: str, record: BufferRecord, cluster: TiledCluster, member: BufferMember, offset: int, there: bool) -> str:
    unit = min(member.align, 8)
    kind, number = _UNITS[unit], member.bytes // unit
    old = f"aos + g * {record.bytes} + {member.offset}"
    if cluster.tile == 1:
        new = f"{name} + g * {cluster.stride} + {offset}"
    else:
        new = (
            f"{name} + g / {cluster.tile} * {cluster.stride} + {offset * cluster.tile} + g % {cluster.tile} * {member.bytes}"
        )
    to, source = (new, old) if there else (old, new)
    return f"    for (int i = 0; i < {number}; i++) ((__global {kind} *)({to}))[i] = ((__global {kind} *)({source}))[i];"
