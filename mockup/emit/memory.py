"""Loads, stores and prefetches of a mock-up, re-indexed where the plan says so, recorded and compared in a check build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import FieldMap, Relayout
from layout_advise.mockup.emit.c_text import CTYPE, integer, within_text
from layout_advise.mockup.emit.copies import place_text
from layout_advise.mockup.emit.packs.byte_masks import ByteMask
from layout_advise.mockup.emit.packs.lined_up import lined_up
from layout_advise.mockup.emit.places import ElementPlaces
from layout_advise.mockup.emit.scope import identifier
from layout_advise.mockup.evidence.binding import Access, access_bytes, executed, key_of
from layout_advise.mockup.evidence.streams import residue
from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Linear, Load, Operand, Prefetch, Store
from layout_advise.mockup.remap.entered_indices import goes_on_alike
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.sites import ElementPlace

_HINTS = {"t0": "0, 3", "": "0, 3", "t1": "0, 2", "t2": "0, 1", "nta": "0, 0", "w": "1, 3", "wt1": "1, 2"}
"""Of prefetches: whether the place will be written, and in how many levels of the cache it is to stay, as gcc has it."""


class MemoryWriter(ElementPlaces):
    """Writes single accesses, in one or several pieces."""

    def old_place(self, access: Access, at: int = 0) -> str:
        """The access's address in the old layout."""
        return self.linear(access.address, at)

    def cell(self, access: Access, ty: str) -> str:
        """The memory type: natural alignment only where the trace proves it."""
        size = access_bytes(access)
        streams = [(self.binding.streams.get((pc, operand)), part) for pc, operand, part in executed(access)]
        aligned = not self.binding.pooled(key_of(access)) and all(
            stream is not None and residue(stream, -part, size) == 0 for stream, part in streams
        )
        return f"la_{ty}" if aligned or size == 1 else f"la_{ty}_u"

    def load(self, load: Load) -> None:
        """A load, in one or several pieces."""
        place = self.plan.places.get(load.uid)
        self.name_load(load, place)
        places = self.pieces(load, place)
        text = self.altered(load, self.loaded(load, place, places))
        led = self.context.links.accesses.get(load.uid)
        if led is not None:
            self.put(f"{self.declare_code(load.value)} = {text};")
            text = self.coded("decode", self.code_name(load.value), led)
        elif load.uid in self.context.again:
            self.names[load.value.number] = f"(({CTYPE[load.value.ty]})({text}))"
            return
        self.put(f"{self.declare(load.value)} = {text};")

    def altered(self, load: Load, text: str) -> str:
        """What was loaded; all of its bits are others where it is wrong on purpose."""
        ty = load.value.ty
        if load.uid not in self.context.altered:
            return text
        return f"la_as_{ty}(~la_as_i{BITS[ty]}({text}))" if ty[0] == "f" else f"({CTYPE[ty]})~({text})"

    def name_load(self, load: Load, place: ElementPlace | None) -> None:
        """Names the loaded value by its field."""
        if place is not None:
            field_ = place.relayout.structure.fields[place.pieces[0].map.field]
            self.called(load.value, f"{identifier(field_.name)}_{load.value.number}")

    def loaded(self, load: Load, place: ElementPlace | None, places: Sequence[str]) -> str:
        """Returns what is at the ``places`` of the pieces, as one value."""
        ty = load.value.ty
        if len(places) == 1:
            cell = self.cell_of(load, place, ty)
            return f"*(LA_GUARDED {cell} *)({places[0]})" if load.guarded else self.cell_at(cell, places[0], "const ")
        assert place is not None
        bits = " | ".join(
            f"(uint64_t)*(const {_new_cell(place, p, f'i{8 * p.bytes}')} *)({at})" + (f" << {8 * p.at}" if p.at else "")
            for p, at in zip(place.pieces, places, strict=True)
        )
        whole = f"(int{BITS[ty]}_t)({bits})" if ty[0] == "f" or ty == "i64" else f"({CTYPE[ty]})({bits})"
        return f"la_as_{ty}({whole})" if ty[0] == "f" else whole

    def store(self, store: Store) -> None:
        """A store, in one or several pieces."""
        place = self.plan.places.get(store.uid)
        led = self.context.links.accesses.get(store.uid)
        value = self.text(store.stored) if led is None else self.code(store.stored, led)
        for line in self.stored(store, place, self.pieces(store, place), value):
            self.put(line)

    def stored(self, store: Store, place: ElementPlace | None, places: Sequence[str], value: str) -> list[str]:
        """The statements that store ``value`` to the ``places`` of the pieces."""
        if len(places) == 1:
            cell = self.cell_of(store, place, store.ty)
            return [f"{self.cell_at(cell, places[0])} = {value};"]
        assert place is not None
        bits = f"la_as_i{BITS[store.ty]}({value})" if store.ty[0] == "f" else value
        return [
            f"*({_new_cell(place, p, ty)} *)({at}) = ({CTYPE[ty]})((uint64_t){bits} >> {8 * p.at});"
            for p, at in zip(place.pieces, places, strict=True)
            for ty in (f"i{8 * p.bytes}",)
        ]

    def cell_of(self, access: Access, place: ElementPlace | None, ty: str) -> str:
        """The memory type of an access in one piece; unaligned where it goes to other memory, too."""
        if place is None:
            return self.cell(access, ty)
        cell, piece = _new_cell(place, place.pieces[0], ty), place.pieces[0]
        typed = (place.relayout.structure.id, piece.map.field) in self.context.typed and not cell.endswith("_u")
        return CTYPE[ty] if typed else cell

    def within(self, access: Access, place: ElementPlace, at: int = 0) -> str:
        """Whether the old address of byte ``at`` of an access is one of the structure's elements."""
        return within_text(self.old_place(access, at), place.relayout.structure)

    def cell_at(self, cell: str, place: str, qualifier: str = "") -> str:
        """The memory of the type ``cell`` at ``place``; in a record that an index picks as the member of a structure: gcc
        takes what is a constant behind a pointer to it for no gather."""
        element, _, offset = place.partition(" + ")
        inside = element in self.elements.values() and offset.isdigit() and cell.startswith("la_")
        if inside and (cell.endswith("_u") or int(offset) % (int(cell.removeprefix("la_")[1:]) // 8) == 0):
            return f"LA_MEMBER({cell}, {element}, {offset})"
        return f"*({qualifier}{cell} *)({place})"

    def pieces(self, access: Access, place: ElementPlace | None) -> list[str]:
        """The address of every piece; in a check build recorded and compared first."""
        reference = self.binding.reference_of.get(key_of(access))
        site = reference.id if reference is not None else 0xFFFF
        if self.context.check:
            self.record(access, place)
        if place is None:
            self.keep_out(access, 0, access_bytes(access), site)
            return [self.pointer_text(access.address)]
        places = [self.new_place(access, place, piece) for piece in place.pieces]
        if self.context.check:
            name = self.context.maps[place.relayout.structure.id]
            for piece, at in zip(place.pieces, places, strict=True):
                old = self.old_place(access, piece.at)
                where = f"if ({self.within(access, place, piece.at)}) " if place.within else ""
                self.put(f"{where}la_compare(&context->check, {old}, {at}, {name}(context, {old}), {site});")
                if (last := piece.bytes - 1) >= _in_element(place, piece):  # one piece of several elements: up to its end
                    end, there = self.old_place(access, piece.at + last), f"{at} + {last}"
                    self.put(f"{where}la_compare(&context->check, {end}, {there}, {name}(context, {end}), {site});")
                if place.within:
                    self.keep_out(access, piece.at, piece.bytes, site, f"if (!{self.within(access, place, piece.at)}) ")
        if place.within is None:
            return places
        return [self.either(access, place, p, at) for p, at in zip(place.pieces, places, strict=True)]

    def either(self, access: Access, place: ElementPlace, piece: RunPiece, new: str) -> str:
        """The address ``new`` of a piece, or where it was of other memory. Where the pointer of the call tells which, and
        what loops add to it is the same in both, it is one pointer that they add it to, as in a source."""
        assert place.within is not None
        entered = self.context.entered.get(place.site.number)
        moved = self.moved_by(place.relayout, piece.map) if not self.context.check else None
        if entered is None or self.context.check:
            inside = self.within(access, place, piece.at)
            if moved is not None and access.uid not in self.context.wrong:
                return f"(uint8_t *)({self.old_place(access, piece.at)} + ({inside} ? {moved} : 0))"
            return f"({inside} ? {new} : (uint8_t *)({self.old_place(access, piece.at)}))"
        if access.uid in self.context.wrong or not goes_on_alike(access, place, entered):
            return f"({self.inside(place.site)} ? {new} : (uint8_t *)({self.old_place(access, piece.at)}))"
        fixed = self.new_place(access, replace(place, along=()), piece)
        old = self.linear(Linear(access.address.const, entered.site.offset.terms), piece.at)
        steps = "".join(f" + {integer(coef, 'i64')} * {self.text(atom)}" for atom, coef in place.along)
        return f"({self.inside(place.site)} ? {fixed} : (uint8_t *)({old})){steps}"

    def byte_mask(self, mask: ByteMask) -> str:
        """The comparison of all bytes at once."""
        texts = [self.bytes_abreast(side, loads) for side, loads in zip((mask.left, mask.right), mask.loads, strict=True)]
        return f"LA_MASK{len(mask.left)}({texts[0]} {mask.sign} {texts[1]})"

    def bytes_abreast(self, side: Sequence[Operand], loads: Sequence[Load]) -> str:
        """Bytes side by side: loaded at once where they lie so in the new layout, too."""
        places = [self.plan.places.get(load.uid) for load in loads]
        known = not self.context.check and not any(a.uid in self.context.wrong | self.context.altered for a in loads)
        if loads and known and lined_up(places, 1):
            (at,) = self.pieces(loads[0], places[0])
            return f"*(const la_i8x{len(side)}_u *)({at})"
        if len(set(side)) == 1:
            return f"((la_i8x{len(side)}){{0}} + (la_i8s){self.text(side[0])})"
        return f"(la_i8x{len(side)}){{{', '.join(f'(la_i8s){self.text(a)}' for a in side)}}}"

    def keep_out(self, access: Access, at: int, size: int, site: int, where: str = "") -> None:
        """Nothing of an access that stays where it is may be what a layout moves: from byte ``at`` on, ``size`` bytes."""
        for name in self.context.watched:
            for part in dict.fromkeys((at, at + size - 1)):
                old = self.old_place(access, part)
                self.put(f"{where}la_compare(&context->check, {old}, 0, {name}(context, {old}), {site});")

    def prefetch(self, item: Prefetch) -> str:
        """The statement. No trace tells where it goes: which layout that is in is what accesses from the same pointer tell,
        or tested each time. Of an element it is the first field; of one in several arrays a source would have to choose,
        too."""
        old = self.linear(item.address)
        place, known = f"(uint8_t *)({old})", self.context.prefetched.get(item.origin.pc)
        for relayout in self._moved():
            there = self._first_field(relayout, relayout.fields[0], old)
            if relayout.structure.id == known:
                place = there
                break
            place = f"({within_text(old, relayout.structure)} ? {there} : {place})"
        return f"__builtin_prefetch({place}, {_HINTS[item.hint]});"

    def _moved(self) -> list[Relayout]:
        """The layouts of whole structures that lie at places of their own."""
        found = {place.relayout.structure.id: place.relayout for place in self.plan.places.values()}
        return [r for r in found.values() if r.structure.placed and r.chosen is None]

    def _first_field(self, relayout: Relayout, mapped: FieldMap, old: str) -> str:
        structure = relayout.structure
        rest = f"(({old}) - {integer(structure.base, 'i64')})"
        indices = []
        for dim in structure.dims:
            indices.append(f"({rest} / {dim.stride})")
            rest = f"({rest} % {dim.stride})"
        delta = self.context.pointers.offsets[structure.id, mapped.field]
        return f"{self.pointer(relayout, mapped)} + {place_text(mapped, indices, delta - mapped.offset)}"

    def record(self, access: Access, place: ElementPlace | None) -> None:
        """Tells of the execution of a reference, in the lanes in which the access stands for it."""
        lanes = access.lanes or executed(access)
        for lane in sorted(self.context.recorders.get(access.uid, ())):
            executed_ = lanes[lane]
            assert executed_ is not None
            pc, operand, part = executed_
            reference = self.binding.reference_of.get((pc, operand))
            site = reference.id if reference is not None else 0xFFFF
            if len(lanes) > 1:
                counter = self.counting[-1 - (access.outward if isinstance(access, Load | Store) else 0)]
                self.put(f"if ({counter} % {len(lanes)} == {lane}) {{")
            self.put(f"la_record(&context->check, {self.old_place(access, -part)}, {site});")
            if place is not None:
                where = f"if ({self.within(access, place)}) " if place.within else ""
                self.put(f"{where}context->check.remapped++;")
            if len(lanes) > 1:
                self.put("}")


def _in_element(place: ElementPlace, piece: RunPiece) -> int:
    """Bytes from where a piece begins to the end of its element."""
    structure = place.relayout.structure
    return structure.element_bytes - structure.fields[piece.map.field].offset - piece.delta % structure.element_bytes


def _new_cell(place: ElementPlace, piece: RunPiece, ty: str) -> str:
    """Memory type in a new buffer (64-byte aligned): natural where all its strides are multiples of the size, and where it
    goes nowhere else, and not anywhere in its field."""
    parts = (piece.map.offset + piece.delta, *(axis.stride for axis in piece.map.axes))
    fixed = place.within is None and not place.site.inside
    aligned = fixed and all(part % piece.bytes == 0 for part in parts)
    return f"la_{ty}" if aligned else f"la_{ty}_u"
