"""NumPy: a structure's memory as an array, its accessed part as a view, and copies into and out of a new layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.bridges.cute import to_cute
from layout_advise.layoutalgebra.derive.structure import Field, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KINDS = {"float": "f", "double": "f", "_Float16": "f", "real": "f", "bool": "u", "_Bool": "u", "unsigned": "u",
          "complex": "V", "_Complex": "V"}  # fmt: skip
"""By a word of a type's name: ``real`` of ``real(kind=8)``, ``unsigned`` of gcc's ``long unsigned int``."""


def field_dtype(field: Field) -> np.dtype[Any]:
    """The scalar type of a field; bytes without a meaning (``V``) where it is none of NumPy's."""
    import numpy as np

    words = re.findall(r"\w+", field.type or "")
    kinds = {_KINDS[word] for word in words if word in _KINDS}
    kind = "u" if "*" in (field.type or "") else "V" if "V" in kinds else next(iter(kinds), "i")
    if field.bytes not in ((2, 4, 8) if kind == "f" else (1, 2, 4, 8)) or not words or kind == "V":
        return np.dtype(f"V{field.bytes}")
    return np.dtype(f"{kind}{field.bytes}")


def element_dtype(structure: Structure) -> np.dtype[Any]:
    """One element as a structured type: every field, used or not, at its offset; ``itemsize`` is the element's size."""
    import numpy as np

    fields = [*structure.fields, *structure.cold]
    names = [f.name or f"f{f.offset}" for f in fields]
    spec = {"names": names, "formats": [field_dtype(f) for f in fields], "offsets": [f.offset for f in fields]}
    return np.dtype({**spec, "itemsize": structure.element_bytes})  # type: ignore[call-overload,no-any-return]


def as_array(structure: Structure, memory: bytes | bytearray | memoryview | NDArray[np.uint8]) -> NDArray[Any]:
    """The elements in ``memory`` (the block's bytes from ``block_base`` on) as an array of the structure's dimensions.

    A view, writable where ``memory`` is. Raises :class:`AlgebraError` where ``memory`` is too short.
    """
    import numpy as np

    start = structure.base - structure.block_base
    need = start + sum((d.count - 1) * d.stride for d in structure.dims) + structure.element_bytes
    data = np.frombuffer(memory, dtype=np.uint8)
    if len(data) < need:
        raise AlgebraError(f"{len(data)} bytes are too few for {structure.name}", f"it takes {need}", "pass the whole block")
    shape, strides = tuple(d.count for d in structure.dims), tuple(d.stride for d in structure.dims)
    return np.ndarray(shape, dtype=element_dtype(structure), buffer=data, offset=start, strides=strides)


def accessed(term: Term, data: NDArray[Any]) -> NDArray[Any]:
    """The accessed places of a flat array as a view, one dimension for each factor with more than one of them.

    For homogeneous terms; raises :class:`AlgebraError` for others and where ``data`` has not the term's size.
    """
    import numpy as np

    if data.ndim != 1 or len(data) != term.size:
        raise AlgebraError("the array does not fit", f"its shape is {data.shape}, the term has {term.size} places")
    layout = to_cute(term)
    modes = list(zip(layout.shape, layout.stride, strict=True))[::-1]
    step = data.strides[0]
    return np.lib.stride_tricks.as_strided(
        data[layout.offset :], shape=tuple(n for n, _ in modes), strides=tuple(s * step for _, s in modes)
    )


def shape_of(term: Term) -> tuple[int, ...]:
    """The factor sizes of a product: the shape of an array of all its places, accessed or not."""
    factors = factors_of(term)
    if not all(isinstance(f, Leaf) for f in factors):
        raise AlgebraError("no shape", f"{term} is a ⊕", "take its terms one by one")
    return tuple(f.size for f in factors)


def to_layout(layout: Relayout, elements: NDArray[Any]) -> list[NDArray[np.uint8]]:
    """The accessed fields of ``elements`` (see :func:`as_array`) copied into the buffers of the new layout.

    Unused bytes of the buffers are 0.
    """
    import numpy as np

    buffers = [np.zeros(buffer.bytes, dtype=np.uint8) for buffer in layout.buffers]
    for one in layout.fields:
        names, where, target = _field(layout, one, elements, buffers)
        target[where] = elements[names]
    return buffers


def from_layout(layout: Relayout, buffers: Sequence[NDArray[np.uint8]], elements: NDArray[Any]) -> None:
    """The accessed fields copied back from the buffers into ``elements``; its other fields stay."""
    for one in layout.fields:
        names, where, source = _field(layout, one, elements, buffers)
        elements[names] = source[where]


def places(layout: Relayout, one: FieldMap) -> NDArray[np.int64]:
    """The byte offset of a field of every element in its buffer; the array has the structure's dimensions."""
    import numpy as np

    total = np.full(tuple(d.count for d in layout.structure.dims), one.offset, dtype=np.int64)
    for axis in one.axes:
        index = np.arange(layout.structure.dims[axis.dim].count, dtype=np.int64)
        total += (axis.stride * axis.digit(index)).reshape(
            [-1 if k == axis.dim else 1 for k in range(len(layout.structure.dims))]
        )
    return total


def _field(
    layout: Relayout, one: FieldMap, elements: NDArray[Any], buffers: Sequence[NDArray[np.uint8]]
) -> tuple[str, NDArray[np.int64], NDArray[Any]]:
    """The field's name, the index of each element's value, and the buffer as values of the field's type."""
    import numpy as np

    field, buffer = layout.structure.fields[one.field], buffers[one.buffer]
    if layout.chosen is not None:
        raise AlgebraError("this layout holds chosen elements only", "an array of all of them cannot be copied into it")
    name, dtype = field.name or f"f{field.offset}", field_dtype(field)
    room = max(len(buffer) - dtype.itemsize + 1, 0)
    values = np.ndarray((room,), dtype=dtype, buffer=buffer, strides=(1,))  # a value may begin at any byte
    return name, places(layout, one), values
