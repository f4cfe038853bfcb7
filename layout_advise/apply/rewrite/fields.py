"""The fields of a record, as its declaration has them, and what becomes of them where it is taken apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.apply.rewrite.syntax import CType, Syntax
from layout_advise.errors import SourceError

NUMBER_BYTES = 4
"""Bytes of what stands for a pointer into a pool: a number."""
REF_BYTES = 24
"""Bytes of what stands for a pointer: a base, a count, an index."""


@dataclass(frozen=True, slots=True)
class BitField:
    """A bit field, ``at`` bits behind the first byte of those that stand side by side."""

    name: str
    usr: str
    type: CType
    at: int
    width: int


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of the record; ``offset`` and ``size`` in bytes in the declaration's order, with what stands for pointers to
    the record in their place; ``was_at`` is the offset that the program has now. Bit fields that stand side by side are one
    field, which has the first one's name and all of its ``bits``."""

    name: str
    usr: str
    shape: CType
    offset: int
    size: int
    align: int
    was_at: int
    bits: tuple[BitField, ...] = ()
    apart: bool = False
    """Whether each of the numbers of which it is an array is in an array of its own, over all elements."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the source has for it."""
        return tuple(bit.name for bit in self.bits) or (self.name,)


def up(value: int, to: int) -> int:
    """The next multiple of ``to``."""
    return -(-value // to) * to


def fields_of(record: Syntax, splits: bool = False, pooled: bool = False) -> tuple[RecordField, ...]:
    """The fields of a record; where it ``splits``, pointers to it become longer, or numbers where it is ``pooled``. Raises
    SourceError where one of them cannot be moved by itself."""
    cannot, where = f"cannot rewrite {record.shape.text}", f"{record.file}:{record.line}"
    fields: list[RecordField] = []
    if "(unnamed" in record.shape.text or "(anonymous" in record.shape.text:
        raise SourceError("cannot rewrite a record without a name", where, "give it one")
    beside = False
    for node in record.members():
        if node.kind in ("UNION_DECL", "STRUCT_DECL") and "(anonymous" in node.shape.text:
            raise SourceError(cannot, f"{where}: it has a union or a structure without a name")
        if node.kind != "FIELD_DECL":
            continue
        if node.bits or not node.name:
            fields = _with_bits(fields, node, beside)
            beside = beside or bool(node.name)
            continue
        beside = False
        if node.shape.form == "array" and node.shape.count < 0:
            raise SourceError(cannot, f"{where}: its last member has no size")
        points = (
            splits and node.shape.form == "pointer" and node.shape.of is not None and node.shape.of.record == record.declares
        )
        size, align = (NUMBER_BYTES if pooled else REF_BYTES) if points else node.shape.size, node.shape.align
        align = NUMBER_BYTES if points and pooled else align
        if splits and not points and node.shape.form in ("array", "record") and _holds(node.shape, record.declares):
            raise SourceError(cannot, f"{where}: member {node.name} holds pointers to it")
        at = up(fields[-1].offset + fields[-1].size, align) if fields else 0
        fields.append(RecordField(node.name, node.declares, node.shape, at, size, align, node.offset))
    if record.kind == "UNION_DECL" or not fields:
        raise SourceError(cannot, f"{where}: it is a union or empty")
    return tuple(fields)


def _with_bits(fields: list[RecordField], node: Syntax, beside: bool) -> list[RecordField]:
    """The fields with one bit field more, which may stand ``beside`` the last one. In front of it all members kept their
    places, or moved by whole pointers."""
    if not node.name:
        return fields
    before = fields[-1] if fields else None
    first = before.was_at if before is not None and beside else node.bit // 8
    moved = before.offset - before.was_at if before is not None else 0
    if before is not None and not beside:
        moved += before.size - before.shape.size
    bits = (before.bits if before is not None and beside else ()) + (
        BitField(node.name, node.declares, node.shape, node.bit - first * 8, node.bits),
    )
    size = -(-(bits[-1].at + bits[-1].width) // 8)
    shape = CType("bits", bits[0].type.text, size=size)
    whole = RecordField(bits[0].name, bits[0].usr, shape, first + moved, size, 1, first, bits)
    return [*(fields[:-1] if beside else fields), whole]


def _holds(shape: CType, usr: str) -> bool:
    """True for arrays of pointers to the record; of other records that is not known."""
    of = shape.of
    return of is not None and (
        _holds(of, usr) if of.form == "array" else of.form == "pointer" and of.of is not None and of.of.record == usr
    )


def taken_apart(record: Syntax, field: RecordField) -> RecordField:
    """The field, each number of which gets an array of its own. Raises SourceError where it is no array of numbers."""
    if field.shape.form != "array" or field.shape.of is None or field.shape.of.form != "other":
        why = f"member {field.name} is no array of numbers, whose parts could lie apart"
        raise SourceError(f"cannot rewrite {record.shape.text}", why, "choose another one with --candidate")
    return replace(field, apart=True)
