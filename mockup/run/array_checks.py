"""Whether an array has the size and the types of a structure's block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.bridges.arrays import field_dtype
from layout_advise.layoutalgebra.derive.structure import Structure


def unfit(structure: Structure, array: NDArray[Any]) -> str | None:
    """Returns why ``array`` cannot be the block of ``structure``: its size, its type, read-only; else None."""
    if not structure.placed:
        return "its elements lie apart; pass their memory by address"
    if not array.flags.c_contiguous:
        return "its array is not contiguous"
    if not array.flags.writeable:
        return "its array is read-only"
    if array.nbytes != structure.bytes:
        return f"its array has {array.nbytes:,} bytes, the structure {structure.bytes:,}"
    if array.dtype == np.uint8:
        return None
    if structure.block_base not in (0, structure.base):
        return f"elements begin {structure.base - structure.block_base} bytes into the block; pass the block's bytes (uint8)"
    return _other_type(structure, array.dtype)


def _other_type(structure: Structure, dtype: np.dtype[Any]) -> str | None:
    """Where a field has not the type that an array of ``dtype`` gives it."""
    fields = dtype.fields
    if fields is not None and dtype.itemsize != structure.element_bytes:
        return f"a record of its array has {dtype.itemsize} bytes, an element {structure.element_bytes}"
    for field in structure.fields:
        wanted = field_dtype(field)
        if fields is None:
            given, offset = dtype, field.offset // dtype.itemsize * dtype.itemsize
        elif field.name in fields:
            given, offset = fields[field.name][:2]
        else:
            return f"its array has no field {field.name}"
        same = given.itemsize == field.bytes if wanted.kind == "V" else given == wanted
        if not same or offset != field.offset:
            return f"its field {field.name} is {wanted} at {field.offset}, that of the array {given} at {offset}"
    return None
