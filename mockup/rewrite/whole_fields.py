"""Fields of which the machine code reads a part are read whole, as in the source.

Of ``flags & MOVING`` compilers read one byte of the four. Where the next element's field lies right behind, as in a
structure of arrays, they still would in scalar code; in vectors they would not, and bytes four apart are no vector:
``entities`` as arrays gained nothing by clang with AVX-512 (by hand 3.9 times), and by gcc 2.2 times (by hand 5.4). Only
what the hotspot does not store is widened: a value stored in parts comes back slower when it is read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Field
from layout_advise.mockup.evidence.binding import access_bytes, accesses, key_of
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.streams import residues
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import Imm, Item, Let, Lifted, LiftedLoop, Load, Operand, Val
from layout_advise.mockup.ir.loop_body import first_free_number, used

_INTEGERS: dict[int, Ty] = {2: "i16", 4: "i32", 8: "i64"}


def whole_fields(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with declared fields that it reads a part of, and nowhere stores, read whole.

    Needs: structures with declared fields, and residues of the traced addresses that tell the field.
    Gives: loads of whole fields; tests of single bits are made in the field's width.
    Keeps: stores and control.
    """
    partly = [a for a in accesses(lifted.body) if isinstance(a, Load) and a.value.ty in ("i8", "i16")]
    if not partly:
        return lifted
    found = {load.uid: field for load in partly if (field := _field_of(load, evidence)) is not None}
    if not found:
        return lifted
    outs = {out.operand for out in lifted.live_outs}
    return replace(lifted, body=_read(tuple(_Widened(found, first_free_number(lifted)).items(lifted.body)), outs))


def _field_of(load: Load, evidence: Evidence) -> tuple[Field, int] | None:
    """The field that a load reads a part of, and where in it that begins."""
    structure = evidence.structure(load)
    if structure is None or load.lanes or load.guarded or load.origin.pack is not None:
        return None
    starts = residues(evidence.binding.streams[key_of(load)], structure.base, structure.element_bytes)
    if starts is None or len(starts) != 1:
        return None
    (start,) = starts
    at = (start + load.part) % structure.element_bytes
    for field in structure.fields:
        inside = at - field.offset
        if inside >= 0 and inside + access_bytes(load) <= field.bytes:
            whole = field.bytes > access_bytes(load) and field.bytes in _INTEGERS
            return (field, inside) if whole and field.type is not None and not field.writes else None
    return None


class _Widened:
    """The pass over one hotspot: statements with ``found`` fields read whole, and bits of them tested in the whole."""

    def __init__(self, found: dict[int, tuple[Field, int]], number: int) -> None:
        self.found = found
        self.next = number
        self.whole: dict[Val, Val] = {}
        """By part of a field: a value of the field's width whose lower bits it is."""
        self.alike: dict[Operand, Val] = {}
        """By value: one of the field's width that is the same number."""

    def items(self, items: Sequence[Item]) -> Iterator[Item]:
        """The statements, loops included."""
        for item in items:
            if isinstance(item, LiftedLoop):
                yield replace(item, body=tuple(self.items(item.body)))
            elif isinstance(item, Load) and item.uid in self.found:
                yield from self._load(item, *self.found[item.uid])
            elif isinstance(item, Let):
                yield from self._let(item)
            else:
                yield item

    def _value(self, ty: Ty) -> Val:
        self.next += 1
        return Val(self.next - 1, ty)

    def _load(self, load: Load, field: Field, inside: int) -> Iterator[Item]:
        ty = _INTEGERS[field.bytes]
        value = self._value(ty)
        address = replace(load.address, const=(load.address.const - inside) % (1 << 64))
        yield replace(load, value=value, address=address, part=load.part - inside)
        if inside:
            whole, value = value, self._value(ty)
            yield Let(value, "lshr", (whole, Imm(ty, 8 * inside)), load.origin)
        self.whole[load.value] = value
        yield Let(load.value, "trunc", (value,), load.origin)

    def _let(self, let: Let) -> Iterator[Item]:
        """A statement, and what it is in the field's width: gcc takes as many elements at once as bytes fit a vector, and
        of the fields' numbers in their width then several vectors each."""
        match let:
            case Let(name="and", args=(Val() as part, Imm(value=mask)) | (Imm(value=mask), Val() as part)) if (
                part in self.whole
            ):
                whole = self.whole[part]
                bits = self.alike[let.value] = self._value(whole.ty)
                yield Let(bits, "and", (whole, Imm(whole.ty, mask)), let.origin)
                yield let
            case Let(name="eq" | "ne", args=(Val() as bits, Imm(value=other))) if bits in self.alike:
                whole = self.alike[bits]
                yield replace(let, args=(whole, Imm(whole.ty, other)))
            case _:
                yield let


def _read(items: Sequence[Item], outs: set[Operand]) -> tuple[Item, ...]:
    """The statements without those that narrow what nobody reads narrow."""
    while True:
        reads = outs.union(used(items))
        kept = _without(items, reads)
        if kept == tuple(items):
            return kept
        items = kept


def _without(items: Sequence[Item], reads: set[Operand]) -> tuple[Item, ...]:
    return tuple(
        replace(item, body=_without(item.body, reads)) if isinstance(item, LiftedLoop) else item
        for item in items
        if not (isinstance(item, Let) and item.name in ("trunc", "and") and item.value not in reads)
    )
