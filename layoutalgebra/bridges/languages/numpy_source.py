"""Python with NumPy: strided views of the fields."""

from __future__ import annotations

from layout_advise.layoutalgebra.bridges.arrays import field_dtype
from layout_advise.layoutalgebra.bridges.declarations import identifier
from layout_advise.layoutalgebra.bridges.languages.scalars import digit, extent, left_out
from layout_advise.layoutalgebra.bridges.source import buffers_of, indices_of, members_of
from layout_advise.layoutalgebra.derive.structure import Relayout


def numpy_source(layout: Relayout, name: str) -> str:
    """A class over its buffers: ``s.x`` is a view of a whole field, ``s.x[s.at_x(i)]`` its value of one element, or of an
    array of them."""
    lines = ["import numpy as np", "", "", f"class {identifier(name)}:"]
    lines += [f'    """{layout.term}"""', "", *left_out(layout, "    #")]
    lines += [f"    buffers = {dict(buffers_of(layout))!r}  # bytes", ""]
    lines += ["    def __init__(self, **given):", "        for name, size in self.buffers.items():"]
    lines += ["            setattr(self, name + '_bytes', given.get(name, np.zeros(size, np.uint8)))"]
    fields = members_of(layout)
    for field, one, member in fields:
        buffer = buffers_of(layout)[one.buffer][0]
        shape = ", ".join(str(extent(layout, axis)) for axis in one.axes) + ","
        strides = ", ".join(str(axis.stride) for axis in one.axes) + ","
        kind = field_dtype(field).str
        lines += [f"        self.{member} = np.ndarray(({shape}), {kind!r}, self.{buffer}_bytes, {one.offset}, ({strides}))"]
    for _, one, member in fields:
        names = indices_of(layout)
        place = ", ".join(digit(axis, names[axis.dim], "//") for axis in one.axes) + ","
        lines += ["", "    @staticmethod", f"    def at_{member}({', '.join(names)}):", f"        return ({place})"]
    return "\n".join([*lines, ""])
