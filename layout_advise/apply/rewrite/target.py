"""What is to be re-laid: a record's fields, in groups, and the names that the new source gets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.apply.rewrite.fields import RecordField, fields_of, taken_apart, up
from layout_advise.apply.rewrite.syntax import CType, Syntax
from layout_advise.errors import SourceError

LINE = 64
FIRST_PAGE = 4096
"""Bytes below which no memory is given out: a base is asked for being there by this, as gcc follows the way on which it is
NULL into accesses that the program makes all the same, and warns of addresses that are then numbers."""

HELPERS = ("ref", "over", "plus", "stepped", "stepping", "minus", "same", "there", "load", "store", "copied", "filled",
           "resized", "sorted", "zeroed", "regrown", "taken", "emptied", "freed", "pool", "written", "read", "ptr", "cptr",
           "cref", "refs", "parts", "places", "array", "vector")  # fmt: skip
"""What the new names end with, but for those of the members."""


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields that stay side by side in one record. ``at`` is where it begins in the re-ordered declaration, ``size``
    its bytes. ``block``: of so many elements each field is an array, one behind the other, and the blocks follow each
    other; of the last block as many as it has; 0: records."""

    fields: tuple[RecordField, ...]
    at: int
    size: int
    align: int
    offsets: tuple[int, ...]
    block: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """The record (``usr``), as the source writes it (``spelling``), and the new layout: ``groups`` one behind the other.
    With one group only the order of the fields changes, and pointers stay pointers. ``aligned``: the record is aligned to
    so many bytes, which pads it; 0: as its fields ask. ``pooled``: elements are allocated one by one, and numbers in a pool
    stand for pointers to them (:mod:`~.pool`)."""

    usr: str
    name: str
    spelling: str
    size: int
    fields: tuple[RecordField, ...]
    groups: tuple[FieldGroup, ...]
    prefix: str
    align: int = 1
    aligned: int = 0
    pooled: bool = False

    @property
    def splits(self) -> bool:
        """True if the parts of an element are apart, so that an address is a base and an index, or it is in a pool."""
        return len(self.groups) > 1 or self.scattered

    @property
    def scattered(self) -> bool:
        """True if a group of members of several neighbours is not always one piece of memory, or they have none."""
        return self.blocked or self.pooled or any(field.apart for field in self.fields)

    @property
    def blocked(self) -> bool:
        """True if there are blocks, so that the parts of neighbours are not always neighbours."""
        return any(group.block for group in self.groups)

    @property
    def reorders(self) -> bool:
        """True if the declaration's fields are not in their old order and places."""
        placed = {f.name: g.at + at for g in self.groups for f, at in zip(g.fields, g.offsets, strict=True)}
        return any(placed[field.name] != field.offset for field in self.fields)

    @property
    def grows(self) -> bool:
        """True if members that point to the record become longer."""
        return any(self.is_pointer(field.shape) for field in self.fields) and self.splits

    @property
    def new_size(self) -> int:
        """Bytes of the re-ordered declaration."""
        last = self.groups[-1]
        return up(last.at + last.size, max(self.align, self.aligned, *(group.align for group in self.groups)))

    @property
    def ref(self) -> str:
        """The type that stands for a pointer to an element."""
        return f"{self.prefix}_ref"

    def accessor(self, field: RecordField) -> str:
        """What the name of the function for a field ends with: the field's name, unless another function has that."""
        name, others = field.name, {name for other in self.fields if other is not field for name in other.names}
        while name in HELPERS or name in others:
            name += "_"
        return name

    def of(self, usr: str) -> RecordField | None:
        """The field that a USR names."""
        return next((f for f in self.fields if f.usr == usr or any(bit.usr == usr for bit in f.bits)), None)

    def is_value(self, shape: CType | None) -> bool:
        """True for the record itself."""
        return shape is not None and shape.form == "record" and shape.record == self.usr

    def is_pointer(self, shape: CType | None) -> bool:
        """True for a pointer to the record."""
        return shape is not None and shape.form == "pointer" and self.is_value(shape.of)

    def is_array(self, shape: CType | None) -> bool:
        """True for an array of the record."""
        return shape is not None and shape.form == "array" and self.is_value(shape.of)

    def concerns(self, shape: CType | None) -> bool:
        """True for the record, a pointer to it or an array of it."""
        return self.is_value(shape) or self.is_pointer(shape) or self.is_array(shape)


def target(
    record: Syntax,
    groups: Sequence[Sequence[str]],
    taken: str,
    blocks: Sequence[int] = (),
    *,
    ordered: bool = False,
    padded: int = 0,
    pooled: bool = False,
    apart: Sequence[str] = (),
) -> Target:
    """The new layout of a record: ``groups`` of field names, each in ``blocks`` of so many elements (0 or nothing: in none),
    and in its own order where they are ``ordered`` or it is the only one; fields in no group come together as the last.
    ``taken`` is all text whose words new names must not repeat. ``padded``: elements get so many bytes, by their alignment;
    only of records in one piece. ``pooled``: they are allocated one by one, and lie in a pool. ``apart``: members that are
    arrays of numbers, each of which gets an array of its own. Raises SourceError where a group names what is not there, or
    another size comes out."""
    groups = [[name.partition("|")[0] for name in group] for group in groups]  # bit fields side by side are one field
    named_all = {name for group in groups for name in group}
    whole = all(named_all.intersection(field.names) for field in fields_of(record))
    fields = fields_of(record, len(groups) > 1 or not whole or any(blocks) or pooled or bool(apart), pooled)
    fields = tuple(taken_apart(record, field) if field.name in apart else field for field in fields)
    known = {name: field for field in fields for name in field.names}
    unknown = sorted(named_all - known.keys())
    if unknown:
        raise SourceError(f"cannot rewrite {record.shape.text}", f"it has no member {unknown[0]}", "trace the program anew")
    named = [list(dict.fromkeys(known[name] for name in group)) for group in groups]
    twice = [field for field in fields if sum(field in group for group in named) > 1]
    if twice:
        first = f"{', '.join(twice[0].names)} are bit fields side by side, and stay together"
        raise SourceError(f"cannot rewrite {record.shape.text}", first, "")
    for group in named:
        if len(group) > 1 and any(field.apart for field in group):
            raise SourceError(f"cannot rewrite {record.shape.text}", "a member that is taken apart is beside others", "")
    rest = [field for field in fields if not any(field in group for group in named)]
    parts = [*named, rest] if rest else named
    own = record.shape.text.removeprefix("struct ").removeprefix("class ").rpartition("::")[2]
    prefix = own
    while re.search(rf"\b{re.escape(prefix)}_({'|'.join((*HELPERS, *known))})_*\b", taken):
        prefix += "_"
    made = Target(
        record.declares,
        own,
        record.shape.text,
        record.shape.size,
        fields,
        _placed(fields, parts, [*blocks, *[0] * len(parts)][: len(parts)], ordered),
        prefix,
        record.shape.align,
        alignment(padded) if padded else 0,
        pooled,
    )
    if pooled and made.blocked:
        raise SourceError(f"cannot rewrite {record.shape.text}", "blocks in a pool cannot be written yet", "")
    if padded and (made.splits or made.new_size != padded or made.aligned <= made.align):
        why = "padded elements whose members are apart" if made.splits else f"its members do not come to {padded} bytes"
        raise SourceError(f"cannot rewrite {record.shape.text}", why, "choose another one with --candidate")
    return made


def alignment(padded: int) -> int:
    """The alignment of a record of that many bytes: the greatest power of two that divides them, up to a line."""
    return min(padded & -padded, LINE)


def _placed(
    fields: Sequence[RecordField], parts: Sequence[Sequence[RecordField]], blocks: Sequence[int], ordered: bool
) -> tuple[FieldGroup, ...]:
    """Where the groups lie: an array for each field needs no other order; else those with the greatest alignment come
    first."""
    if all(len(part) == 1 for part in parts) and len(parts) == len(fields):
        return tuple(FieldGroup((field,), field.offset, field.size, field.align, (0,)) for field in fields)
    groups: list[FieldGroup] = []
    at = 0
    as_given = ordered or (len(parts) == 1 and not any(blocks))
    for part, block in sorted(zip(parts, blocks, strict=True), key=lambda one: -max(field.align for field in one[0])):
        align = max(field.align for field in part)
        offsets, end = [], 0
        inner = part if as_given else sorted(part, key=fields.index)
        for field in inner:
            offsets.append(up(end, field.align))
            end = offsets[-1] + field.size
        at = up(at, align)
        groups.append(FieldGroup(tuple(inner), at, up(end, align), align, tuple(offsets), block if len(part) > 1 else 0))
        at += groups[-1].size
    return tuple(groups)
