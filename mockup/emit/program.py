"""The body of a mock-up: one C statement per lifted item, re-indexed where the plan says so."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.mockup.emit.c_text import CTYPE, constant, operation
from layout_advise.mockup.emit.openmp_c import atomic_text, given_text, runtime_text
from layout_advise.mockup.emit.places import ElementPlaces
from layout_advise.mockup.emit.scope import identifier
from layout_advise.mockup.evidence.binding import Access, access_bytes, accesses, executed, key_of
from layout_advise.mockup.evidence.streams import residue
from layout_advise.mockup.ir.effects import BITS, Lane
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    LiftedLoop,
    Load,
    OpaqueCall,
    RuntimeCall,
    Store,
    Val,
    everything,
)
from layout_advise.mockup.machine.call_abi import register_name
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.plan import ElementPlace

MOST_PEELED = 16
"""Loops of so few iterations a compiler may write out: how many there are is kept from it (``docs/decisions/0048``)."""


class BodyWriter(ElementPlaces):
    """Writes bodies; ``lines`` is the result."""

    def body(self, items: Sequence[Item]) -> None:
        """All items of a body."""
        k = 0
        while k < len(items):
            item = items[k]
            for site in self.plan.sites.get(item.uid, ()):
                self.site(site)
            if isinstance(item, Assign):
                end = k + 1
                while end < len(items) and isinstance(nxt := items[end], Assign) and nxt.group == item.group:
                    end += 1
                self.moves([a for a in items[k:end] if isinstance(a, Assign)])
                k = end
                continue
            self.item(item)
            if isinstance(item, Let | LetLinear | Load):
                self.cut_indices(item.value)
            k += 1

    def item(self, item: Item) -> None:
        """One item other than an Assign."""
        if isinstance(item, Let | LetLinear) and not self.scope.uses.get(item.value.number):
            return  # nobody reads it
        if isinstance(item, Let) and item.name.startswith("returned."):
            self.put(f"{self.declare(item.value)} = call.{_handed(item.name.removeprefix('returned.'))};")
        elif isinstance(item, Let) and item.name.startswith("given."):
            self.put(f"{self.declare(item.value)} = {given_text(item.name)};")
        elif isinstance(item, Let):
            args = [self.text(a) for a in item.args]
            self.put(f"{self.declare(item.value)} = {operation(item.name, item.value.ty, args, [a.ty for a in item.args])};")
        elif isinstance(item, LetLinear):
            self.put(f"{self.declare(item.value)} = (int64_t)({self.linear(item.linear, wide=True)});")
        elif isinstance(item, Load):
            self.load(item)
        elif isinstance(item, Store):
            self.store(item)
        elif isinstance(item, Call):
            args_ = ", ".join(self.text(a) for a in item.args)
            self.put(f"{self.declare(item.value)} = la_libm_{item.function}({args_});")
        elif isinstance(item, OpaqueCall):
            self.opaque(item)
        elif isinstance(item, Atomic):
            (place,) = self.pieces(item, self.plan.places.get(item.uid))
            self.put(atomic_text(item, place, [self.text(a) for a in item.args]))
        elif isinstance(item, RuntimeCall):
            self.put(runtime_text(item, [self.text(a) for a in item.args]))
        elif isinstance(item, Goto):
            jump = f"goto {self.label(item.label)};"
            self.put(jump if item.condition is None else f"if ({self.text(item.condition)}) {jump}")
        elif isinstance(item, Label):
            self.lines.append("    " * (self.depth - 1) + f"{self.label(item.number)}:;")
        elif isinstance(item, LiftedLoop):
            self.loop(item)

    def label(self, number: int) -> str:
        """The C label; labels in a second copy of a loop body get a suffix."""
        return self.labels.get(number, f"L{number}" if number >= 0 else f"exit{-number}")

    def moves(self, group: Sequence[Assign]) -> None:
        """Parallel moves: through temporaries where one reads what another writes."""
        written = {a.variable.number for a in group}
        clash = any(
            not isinstance(a.operand, Imm | Val) and a.operand.number in written - {a.variable.number} for a in group
        )
        if not clash:
            for assign in group:
                self.put(f"{self.text(assign.variable)} = {self.text(assign.operand)};")
            return
        first = self.temporaries
        self.temporaries += len(group)
        for k, assign in enumerate(group):
            self.put(f"const {CTYPE[assign.variable.ty]} t{first + k} = {self.text(assign.operand)};")
        for k, assign in enumerate(group):
            self.put(f"{self.text(assign.variable)} = t{first + k};")

    def opaque(self, call: OpaqueCall) -> None:
        """A call of machine code: registers through a record, see ``opaque.h``; or a string instruction."""
        if (call.function or "").startswith("rep "):
            handed = ", ".join(self.text(operand) for _, operand in call.args)
            self.put(f"la_{(call.function or '').replace(' ', '_')}({handed});")
            return
        self.put(f"/* {(call.function or 'a function known at run time only').replace('*/', '')} */")
        for place, operand in call.args:
            self.put(f"call.{_handed(register_name(place))} = {self.text(operand)};")
        wide = any(isinstance(place, Lane) and place.index > 1 for place, _ in call.args)
        self.put(f"call.wide = {int(wide)};")
        stack = "0" if call.stack is None else self.text(call.stack)
        self.put(f"la_opaque(&call, {self.text(call.target)}, {stack});")

    # ---- loops ----------------------------------------------------------------------------------------------------

    def loop(self, loop: LiftedLoop) -> None:
        """A ``for``; strip-mined where the plan found a block."""
        name = self.scope.names[loop.counter.number]
        if loop.trip is None:
            self.put(f"for (int64_t {name} = 0;; ++{name}) {{")
            self.inner(loop.body)
            self.put("}")
            return
        trip = self.text(loop.trip)
        if isinstance(loop.trip, Imm):
            self.temporaries += 1
            trip = f"n{self.temporaries}"
            self.put(f"int64_t {trip} = {constant(loop.trip)};")
            if loop.trip.value <= MOST_PEELED:
                self.put(f"LA_OPAQUE({trip});")
        start = self.begun(loop, name, trip)
        self.promise(loop)
        self.put(f"for (int64_t {name} = {start}; {name} < {trip}; ++{name}) {{")
        self.counting.append(name)
        before = dict(self.elements)
        self.depth += 1
        self.point_to_elements(loop)
        self.depth -= 1
        self.inner(loop.body)
        self.elements = before
        self.counting.pop()
        self.put("}")

    def begun(self, loop: LiftedLoop, name: str, trip: str) -> str:
        """What is written before the plain loop, which starts where that ends."""
        if loop.uid in self.plan.blocks and not self.context.wrong:
            return self.stripped(loop, name, trip, self.plan.blocks[loop.uid])
        return "0"

    def start(self, name: str) -> str:
        """A name for where the plain loop over ``name`` starts; loops beside each other count by the same one."""
        start = f"{name}0" if f"{name}0" not in self.starts else f"{name}0_{len(self.starts)}"
        self.starts.add(start)
        return start

    def promise(self, loop: LiftedLoop) -> None:
        """Tells the compiler what is known of the loop that follows."""
        if loop.independent and (self.context.independent or loop.uid in self.context.known):
            self.put("LA_INDEPENDENT")

    def inner(self, items: Sequence[Item]) -> None:
        """A nested body, one level deeper."""
        self.depth += 1
        self.body(items)
        self.depth -= 1

    def stripped(self, loop: LiftedLoop, name: str, trip: str, block: int) -> str:
        """Whole blocks of the AoSoA dimension, where the accesses start at block borders; what remains follows plainly."""
        start = self.start(name)
        borders = sorted(
            {
                f"d{place.site.number}_{axis.dim}"
                for item in accesses(loop.body)
                if (place := self.plan.places.get(item.uid)) is not None
                for piece in place.pieces
                for axis in piece.map.axes
                if axis.part != "whole"
            }
        )
        self.put(f"int64_t {start} = 0;")
        condition = f"(({' | '.join(borders)}) & {block - 1}) == 0" if borders else "1"
        number, count = f"{name}b", f"{name}n"
        self.put(f"if ({condition}) {{")
        self.depth += 1
        # counted in blocks: of what is shifted to the right gcc does not see that it runs evenly
        self.put(f"const int64_t {count} = {trip} / {block};")
        self.put(f"for (int64_t {number} = 0; {number} < {count}; ++{number}) {{")
        self.depth += 1
        self.promise(loop)
        self.put(f"for (int64_t lane = 0; lane < {block}; ++lane) {{")
        self.put(f"    const int64_t {name} = {block} * {number} + lane;")
        self.put(f"    (void){name};")
        self.strip, labels, self.copies = (number, block, "lane"), self.labels, self.copies + 1
        own = [item.number for item in everything(loop.body) if isinstance(item, Label)]
        self.labels = labels | {n: f"{self.label(n)}_{self.copies}" for n in own}
        self.counting.append(name)
        self.inner(loop.body)
        self.counting.pop()
        self.strip, self.labels = None, labels
        self.put("}")
        self.depth -= 1
        self.put("}")
        self.put(f"{start} = {block} * {count};")
        self.depth -= 1
        self.put("}")
        return start

    # ---- memory ---------------------------------------------------------------------------------------------------

    def old_place(self, access: Access, at: int = 0) -> str:
        """The access's address in the old layout."""
        return self.linear(access.address, at)

    def cell(self, access: Access, ty: str) -> str:
        """The memory type: natural alignment only where the trace proves it."""
        size = access_bytes(access)
        streams = [(self.binding.streams.get((pc, operand)), part) for pc, operand, part in executed(access)]
        aligned = all(stream is not None and residue(stream, -part, size) == 0 for stream, part in streams)
        return f"la_{ty}" if aligned or size == 1 else f"la_{ty}_u"

    def load(self, load: Load) -> None:
        """A load, in one or several pieces."""
        place = self.plan.places.get(load.uid)
        self.name_load(load, place)
        places = self.pieces(load, place)
        self.put(f"{self.declare(load.value)} = {self.loaded(load, place, places)};")

    def name_load(self, load: Load, place: ElementPlace | None) -> None:
        """What is loaded is called by its field."""
        if place is not None and load.value.number not in self.scope.names:
            field_ = place.relayout.structure.fields[place.pieces[0].map.field]
            self.scope.names[load.value.number] = f"{identifier(field_.name)}_{load.value.number}"

    def loaded(self, load: Load, place: ElementPlace | None, places: Sequence[str]) -> str:
        """What is at the ``places`` of the pieces, as one value."""
        ty = load.value.ty
        if len(places) == 1:
            cell = self.cell(load, ty) if place is None else _new_cell(place.pieces[0], ty)
            return f"*(LA_GUARDED {cell} *)({places[0]})" if load.guarded else self.cell_at(cell, places[0], "const ")
        assert place is not None
        bits = " | ".join(
            f"(uint64_t)*(const {_new_cell(p, f'i{8 * p.bytes}')} *)({at})" + (f" << {8 * p.at}" if p.at else "")
            for p, at in zip(place.pieces, places, strict=True)
        )
        whole = f"(int{BITS[ty]}_t)({bits})" if ty[0] == "f" or ty == "i64" else f"({CTYPE[ty]})({bits})"
        return f"la_as_{ty}({whole})" if ty[0] == "f" else whole

    def store(self, store: Store) -> None:
        """A store, in one or several pieces."""
        place = self.plan.places.get(store.uid)
        for line in self.stored(store, place, self.pieces(store, place), self.text(store.stored)):
            self.put(line)

    def stored(self, store: Store, place: ElementPlace | None, places: Sequence[str], value: str) -> list[str]:
        """The statements that store ``value`` to the ``places`` of the pieces."""
        if len(places) == 1:
            cell = self.cell(store, store.ty) if place is None else _new_cell(place.pieces[0], store.ty)
            return [f"{self.cell_at(cell, places[0])} = {value};"]
        assert place is not None
        bits = f"la_as_i{BITS[store.ty]}({value})" if store.ty[0] == "f" else value
        return [
            f"*({_new_cell(p, f'i{8 * p.bytes}')} *)({at}) = ({CTYPE[f'i{8 * p.bytes}']})((uint64_t){bits} >> {8 * p.at});"
            for p, at in zip(place.pieces, places, strict=True)
        ]

    def cell_at(self, cell: str, place: str, qualifier: str = "") -> str:
        """The memory of the type ``cell`` at ``place``; in a record that an index picks as the member of a structure: gcc
        takes what is a constant behind a pointer to it for no gather."""
        element, _, offset = place.partition(" + ")
        inside = element in self.elements.values() and offset.isdigit()
        if inside and (cell.endswith("_u") or int(offset) % (int(cell.removeprefix("la_")[1:]) // 8) == 0):
            return f"LA_MEMBER({cell}, {element}, {offset})"
        return f"*({qualifier}{cell} *)({place})"

    def pieces(self, access: Access, place: ElementPlace | None) -> list[str]:
        """The address of every piece; in a check build recorded and compared first."""
        reference = self.binding.reference_of.get(key_of(access))
        site = reference.id if reference is not None else 0xFFFF
        if self.context.check:
            self.record(access, place is not None)
        if place is None:
            return [self.pointer_text(access.address)]
        places = [self.new_place(access, place, piece) for piece in place.pieces]
        if self.context.check:
            name = self.context.maps[place.relayout.structure.id]
            for piece, at in zip(place.pieces, places, strict=True):
                old = self.old_place(access, piece.at)
                self.put(f"la_compare(&context->check, {old}, {at}, {name}(context, {old}), {site});")
        return places

    def record(self, access: Access, moved: bool) -> None:
        """Tells of the execution of a reference, in the lanes in which the access stands for it."""
        lanes = access.lanes or executed(access)
        for lane in sorted(self.context.recorders.get(access.uid, ())):
            executed_ = lanes[lane]
            assert executed_ is not None
            pc, operand, part = executed_
            reference = self.binding.reference_of.get((pc, operand))
            site = reference.id if reference is not None else 0xFFFF
            if len(lanes) > 1:
                self.put(f"if ({self.counting[-1]} % {len(lanes)} == {lane}) {{")
            self.put(f"la_record(&context->check, {self.old_place(access, -part)}, {site});")
            if moved:
                self.put("context->check.remapped++;")
            if len(lanes) > 1:
                self.put("}")


def _handed(name: str) -> str:
    """The member of ``struct la_call`` that stands for a register."""
    number, _, lane = name.removeprefix("xmm").partition(".")
    return name if name[0] == "r" else f"vector[{number}][{lane or 0}]"


def _new_cell(piece: RunPiece, ty: str) -> str:
    """Memory type in a new buffer (64-byte aligned): natural where all its strides are multiples of the size."""
    parts = (piece.map.offset + piece.delta, *(axis.stride for axis in piece.map.axes))
    return f"la_{ty}" if all(part % piece.bytes == 0 for part in parts) else f"la_{ty}_u"
