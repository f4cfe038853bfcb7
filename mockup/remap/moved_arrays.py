"""Plain arrays of which only the begin moves: each of their addresses moves by the same distance, and no index is needed.

Taken as elements they would cost what a source in that layout does not pay: wide accesses to arrays of bytes were written
byte by byte (zstd: the mock-up took three times as long as the program).
"""

from __future__ import annotations

from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Axis, Dim, FieldMap, Relayout
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.mockup.evidence.binding import Access, access_bytes
from layout_advise.mockup.ir.lifted import Linear
from layout_advise.mockup.remap.field_runs import RunPiece

_WORD = 1 << 64


def moves_as_one(relayout: Relayout) -> bool:
    """True if the layout only lets a plain array begin elsewhere."""
    return relayout.rules == (ALIGN,)


def in_bytes(relayout: Relayout) -> Relayout:
    """The same layout, of an array of bytes: of any address an index."""
    structure = relayout.structure
    (mapped,) = relayout.fields
    whole = (Dim(structure.dims[0].count * structure.dims[0].stride, 1),)
    bytes_ = replace(structure, dims=whole, fields=(replace(structure.fields[0], bytes=1),))
    moved = FieldMap(mapped.field, mapped.buffer, mapped.offset, (Axis(0, "whole", 1, 1),))
    return replace(relayout, structure=bytes_, fields=(moved,))


def in_one(access: Access, relayout: Relayout, start: Linear, known: Linear) -> RunPiece:
    """The whole access, whose address is ``start``, from the index that another one of the same terms has: ``known``."""
    beyond = (start.const - known.const + _WORD // 2) % _WORD - _WORD // 2
    return RunPiece(0, access_bytes(access), relayout.fields[0], beyond, 0)
