"""The body of a mock-up: one C statement per lifted item, re-indexed where the plan says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.structure import Axis, FieldMap, Relayout
from layout_advise.mockup.binding import Access, Binding, access_bytes, executed, key_of
from layout_advise.mockup.effects import BITS
from layout_advise.mockup.emit.copies import axis_text, place_text
from layout_advise.mockup.emit.ctext import CTYPE, constant, integer, operation
from layout_advise.mockup.emit.scope import COUNTERS, Scope, identifier
from layout_advise.mockup.lifted import (
    Assign,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Linear,
    Load,
    Loop,
    Operand,
    Store,
    Val,
)
from layout_advise.mockup.remap import Piece, Place, Plan, Site
from layout_advise.mockup.streams import residue


@dataclass(slots=True)
class Settings:
    """What is to be emitted besides the plain computation."""

    check: bool = False
    wrong: frozenset[int] = frozenset()
    """ids of the accesses that get the deliberately wrong map."""
    recorders: dict[int, frozenset[int]] = field(default_factory=dict)
    """id(access) -> lanes in which the access stands for an execution of its reference (see ``Load.lanes``)."""
    pointers: dict[tuple[str, int], str] = field(default_factory=dict)
    """(structure id, field number) -> the C name of the pointer to the field, or to the record that it is in."""
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    """(structure id, field number) -> bytes from that pointer to the field."""
    maps: dict[str, str] = field(default_factory=dict)
    """structure id -> name of its map function (check build)."""
    registers: dict[int, int] = field(default_factory=dict)
    """Number of a live-in value -> what the traced call had there."""
    independent: bool = False
    """Whether the compiler is told which loops' iterations are independent."""


class Writer:
    """Writes bodies; ``lines`` is the result."""

    def __init__(self, scope: Scope, plan: Plan, binding: Binding, settings: Settings) -> None:
        self.scope = scope
        self.plan = plan
        self.binding = binding
        self.settings = settings
        self.lines: list[str] = []
        self.counters = frozenset((*COUNTERS, *(f"i{k}" for k in range(9, 40))))
        self.depth = 1
        self.labels: dict[int, str] = {}
        self.counting: list[str] = []  # names of the counters of the loops around
        self.strip: tuple[Val, str, str] | None = None  # counter, block start, lane: inside a strip-mined loop
        self.copies = 0
        self.temporaries = 0
        self.sites_written: set[int] = set()
        self.cuts: dict[Cut, str] = {}
        self.bases: dict[int, str] = {}
        """Live-in values that addresses start from -> name of the kernel's pointer parameter."""

    # ---- small pieces -------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        """One line at the current indentation."""
        self.lines.append("    " * self.depth + text)

    def text(self, operand: Operand) -> str:
        """An operand; constants in full, values by name."""
        if isinstance(operand, Imm):
            return constant(operand)
        if isinstance(operand, Val):
            return self.scope.names.get(operand.number, f"v{operand.number}")
        return f"x{operand.number}"

    def linear(self, linear: Linear, offset: int = 0, wide: bool = False) -> str:
        """A linear form. Signed, so that the compiler sees strides; ``wide``: modulo 2**64, for values."""
        parts: list[tuple[str, str]] = []
        for atom, coef in linear.terms:
            name = f"(uint64_t){self.text(atom)}" if wide else self.text(atom)
            signed = coef - (1 << 64) if coef >= 1 << 63 else coef
            sign, size = ("-", -signed) if signed < 0 else ("+", signed)
            parts.append((sign, name if size == 1 else f"{integer(size, 'i64')} * {name}"))
        value = (linear.const + offset) & ((1 << 64) - 1)
        signed = value - (1 << 64) if value >> 63 else value
        if signed or not parts:
            parts.append(("-" if signed < 0 else "+", integer(abs(signed), "i64")))
        parts.sort(key=lambda part: part[0])  # "+" sorts before "-"
        head = parts[0][1] if parts[0][0] == "+" else f"-{parts[0][1]}"
        return head + "".join(f" {sign} {text}" for sign, text in parts[1:])

    def pointer_text(self, linear: Linear) -> str:
        """An address as pointer plus offset, so that the compiler knows which term is the base."""
        for atom, coef in linear.terms:
            name = self.scope.names.get(atom.number, "") if isinstance(atom, Val) else ""
            if coef == 1 and isinstance(atom, Val) and name not in self.counters:
                rest = Linear(linear.const, tuple(t for t in linear.terms if t[0] != atom))
                offset = self.linear(rest)
                pointer = self.base(atom)
                return pointer if offset == "0" else f"{pointer} {offset if offset[0] == '-' else '+ ' + offset}"
        return self.linear(linear)

    def base(self, value: Val) -> str:
        """What an address starts from. Live-ins come as pointer parameters: a pointer made from a number tells the compiler
        that it may compute one address from another, and it then walks arrays in another way than the original does."""
        if value.number not in self.scope.live_ins:
            return f"(uint8_t *){self.text(value)}"
        return self.bases.setdefault(value.number, f"base_{self.text(value)}")

    def declare(self, value: Val) -> str:
        """Left side of a definition."""
        name = self.scope.names.setdefault(value.number, f"v{value.number}")
        return name if value.number in self.scope.hoisted else f"const {CTYPE[value.ty]} {name}"

    # ---- items ----------------------------------------------------------------------------------------------------

    def body(self, items: Sequence[Item]) -> None:
        """All items of a body."""
        k = 0
        while k < len(items):
            item = items[k]
            for site in self.plan.sites.get(id(item), ()):
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
        if isinstance(item, Let):
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
        elif isinstance(item, Goto):
            jump = f"goto {self.label(item.label)};"
            self.put(jump if item.condition is None else f"if ({self.text(item.condition)}) {jump}")
        elif isinstance(item, Label):
            self.lines.append("    " * (self.depth - 1) + f"{self.label(item.number)}:;")
        elif isinstance(item, Loop):
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

    # ---- loops ----------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> None:
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
            self.put(f"LA_OPAQUE({trip});")
        start = "0"
        if id(loop) in self.plan.blocks and not self.settings.wrong:
            start = self.stripped(loop, name, trip, self.plan.blocks[id(loop)])
        self.promise(loop)
        self.put(f"for (int64_t {name} = {start}; {name} < {trip}; ++{name}) {{")
        self.counting.append(name)
        self.inner(loop.body)
        self.counting.pop()
        self.put("}")

    def promise(self, loop: Loop) -> None:
        """Tells the compiler what is known of the loop that follows."""
        if loop.independent and self.settings.independent:
            self.put("LA_INDEPENDENT")

    def inner(self, items: Sequence[Item]) -> None:
        """A nested body, one level deeper."""
        self.depth += 1
        self.body(items)
        self.depth -= 1

    def stripped(self, loop: Loop, name: str, trip: str, block: int) -> str:
        """Whole blocks of the AoSoA dimension, where the accesses start at block borders; what remains follows plainly."""
        start = f"{name}0"
        borders = sorted(
            {
                f"d{place.site.number}_{axis.dim}"
                for item in loop.body
                if (place := self.plan.places.get(id(item))) is not None
                for piece in place.pieces
                for axis in piece.map.axes
                if axis.part != "whole"
            }
        )
        self.put(f"int64_t {start} = 0;")
        condition = " | ".join(borders)
        self.put(f"if ((({condition}) & {block - 1}) == 0)")
        self.depth += 1
        self.put(f"for (; {start} + {block} <= {trip}; {start} += {block}) {{")
        self.depth += 1
        self.promise(loop)
        self.put(f"for (int64_t lane = 0; lane < {block}; ++lane) {{")
        self.put(f"    const int64_t {name} = {start} + lane;")
        self.put(f"    (void){name};")
        self.strip, labels, self.copies = (loop.counter, start, "lane"), self.labels, self.copies + 1
        own = [item.number for item in loop.body if isinstance(item, Label)]
        self.labels = labels | {n: f"{self.label(n)}_{self.copies}" for n in own}
        self.counting.append(name)
        self.inner(loop.body)
        self.counting.pop()
        self.strip, self.labels = None, labels
        self.put("}")
        self.depth -= 1
        self.put("}")
        self.depth -= 1
        return start

    # ---- memory ---------------------------------------------------------------------------------------------------

    def cut_indices(self, value: Val) -> None:
        """Where ``value`` is an index of its own in a split dimension, cut it once, here, as source would: not at each
        access in the loops below."""
        if value.number in self.scope.hoisted:
            return
        for place in self.plan.places.values():
            if place.site.number not in self.sites_written:
                continue
            for piece in place.pieces:
                for dim in range(len(place.relayout.structure.dims)):
                    cut = _cut(place, piece, dim)
                    if cut is not None and cut.atom == value.number and cut not in self.cuts:
                        name = self.cuts[cut] = f"q{len(self.cuts)}"
                        index = self.index(place, dim, 0)
                        self.put(f"const int64_t {name} = {' + '.join(axis_text(a, index) for a in cut.axes)};")

    def site(self, site: Site) -> None:
        """Cut the invariant part of some addresses into digits."""
        self.sites_written.add(site.number)
        structure = site.relayout.structure
        rest = f"r{site.number}"
        single = len(structure.dims) == 1
        self.put(f"{'const ' if single else ''}int64_t {rest} = {self.linear(site.offset)}; /* from {structure.name} */")
        start = self.known(site)
        if start is not None:
            self.put(f"if ({rest} != {start}) __builtin_trap(); /* where the traced call starts: known to the compiler */")
        for k, dim in enumerate(structure.dims):
            self.put(f"const int64_t d{site.number}_{k} = {rest} / {dim.stride};")
            if k + 1 < len(structure.dims):
                self.put(f"{rest} %= {dim.stride};")
        maps = {self.pointer(site.relayout, mapped): mapped for mapped in self.maps_at(site)}
        for name, mapped in maps.items():
            terms = " + ".join(f"{a.stride} * d{site.number}_{a.dim}" for a in _whole(mapped))
            self.put(f"uint8_t *const {name}_{site.number} = {name}{' + ' + terms if terms else ''};")

    def known(self, site: Site) -> int | None:
        """The offset at ``site`` in the traced call, where dimensions are split and only registers at the entry decide it.
        A program in the new layout would start from places in it; to cut every index anew is the mock-up's own cost."""
        if all(axis.part == "whole" for mapped in self.maps_at(site) for axis in mapped.axes):
            return None
        values = [(self.settings.registers.get(a.number) if isinstance(a, Val) else None, c) for a, c in site.offset.terms]
        start = site.offset.const
        for value, coef in values:
            if value is None:
                return None
            start += coef * value
        start %= 1 << 64
        return start if start < site.relayout.structure.bytes else None

    def maps_at(self, site: Site) -> list[FieldMap]:
        """The fields that are accessed relative to ``site``, those with the deliberately wrong map left out."""
        found: dict[int, FieldMap] = {}
        for number, place in self.plan.places.items():
            if place.site is site and number not in self.settings.wrong:
                found.update({p.map.field: p.map for p in place.pieces})
        return [found[k] for k in sorted(found)]

    def pointer(self, relayout: Relayout, mapped: FieldMap) -> str:
        """The name of the pointer to a field in its new buffer."""
        return self.settings.pointers[relayout.structure.id, mapped.field]

    def delta(self, place: Place, piece: Piece) -> int:
        """Bytes from the pointer to a piece's field to the piece."""
        return self.settings.offsets[place.relayout.structure.id, piece.map.field] + piece.delta

    def new_place(self, access: Access, place: Place, piece: Piece) -> str:
        """The new address of a piece of an access, as a pointer expression. What is constant stands last: fields of a record
        then differ in the displacement only."""
        if id(access) in self.settings.wrong:
            return self.wrong_place(place, piece)
        inner = len(place.relayout.structure.dims) - 1
        whole = _whole(piece.map)
        text = f"{self.pointer(place.relayout, piece.map)}_{place.site.number}"
        text += "".join(f" + {term}" for term in self.split_terms(place, piece))
        for term in place.terms:
            stride = sum(axis.stride * term.digits[axis.dim] for axis in whole)
            atom = f"({self.text(term.atom)} >> {term.shift})" if term.shift else self.text(term.atom)
            if stride:
                text += f" {'+' if stride > 0 else '-'} {integer(abs(stride), 'i64')} * {atom}"
        constant_ = self.delta(place, piece) + sum(axis.stride * piece.inner for axis in whole if axis.dim == inner)
        return text + (f" + {constant_}" if constant_ > 0 else f" - {-constant_}" if constant_ else "")

    def wrong_place(self, place: Place, piece: Piece) -> str:
        """The element at the other end of the longest dimension, in bounds."""
        counts = [d.count for d in place.relayout.structure.dims]
        indices = [self.index(place, k, piece.inner if k == len(counts) - 1 else 0) for k in range(len(counts))]
        k = counts.index(max(counts))
        indices[k] = f"({counts[k] - 1} - ({indices[k]} & ~INT64_C(1)))"
        moved = place_text(piece.map, indices, self.delta(place, piece) - piece.map.offset)
        return f"{self.pointer(place.relayout, piece.map)} + {moved}"

    def split_terms(self, place: Place, piece: Piece) -> list[str]:
        """The quotients and remainders of split dimensions times their strides; those that were cut already by name."""
        if self.strip is not None:
            return [self.strip_term(place, axis) for axis in piece.map.axes if axis.part != "whole"]
        inner = len(place.relayout.structure.dims) - 1
        terms: list[str] = []
        for dim in range(inner + 1):
            axes = [a for a in piece.map.axes if a.dim == dim and a.part != "whole" and a.stride]
            cut = _cut(place, piece, dim)
            if axes and cut in self.cuts:
                terms.append(self.cuts[cut])
            elif axes:
                index = self.index(place, dim, piece.inner if dim == inner else 0)
                terms += [axis_text(a, index) for a in axes]
        return terms

    def strip_term(self, place: Place, axis: Axis) -> str:
        """Inside a strip the quotient belongs to the block, the remainder is the lane."""
        assert self.strip is not None
        _, start, lane = self.strip
        if axis.part == "mod":
            return f"{axis.stride} * {lane}"
        return f"{axis.stride} * ((d{place.site.number}_{axis.dim} + {start}) >> {axis.block.bit_length() - 1})"

    def index(self, place: Place, dim: int, inner: int) -> str:
        """The digit of one dimension."""
        parts = [f"d{place.site.number}_{dim}"]
        for term in place.terms:
            digit = term.digits[dim]
            atom = f"({self.text(term.atom)} >> {term.shift})" if term.shift else self.text(term.atom)
            if digit:
                parts.append(("+ " if digit > 0 else "- ") + (atom if abs(digit) == 1 else f"{abs(digit)} * {atom}"))
        if inner:
            parts.append(f"+ {inner}")
        return parts[0] if len(parts) == 1 else f"({' '.join(parts)})"

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
        place = self.plan.places.get(id(load))
        ty = load.value.ty
        if place is not None and load.value.number not in self.scope.names:
            field_ = place.relayout.structure.fields[place.pieces[0].map.field]
            self.scope.names[load.value.number] = f"{identifier(field_.name)}_{load.value.number}"
        places = self.pieces(load, place)
        if len(places) == 1:
            cell = self.cell(load, ty) if place is None else _new_cell(place.pieces[0], ty)
            self.put(f"{self.declare(load.value)} = *(const {cell} *)({places[0]});")
            return
        assert place is not None
        bits = " | ".join(
            f"(uint64_t)*(const {_new_cell(p, f'i{8 * p.bytes}')} *)({at})" + (f" << {8 * p.at}" if p.at else "")
            for p, at in zip(place.pieces, places, strict=True)
        )
        whole = f"(int{BITS[ty]}_t)({bits})" if ty[0] == "f" or ty == "i64" else f"({CTYPE[ty]})({bits})"
        self.put(f"{self.declare(load.value)} = {f'la_as_{ty}({whole})' if ty[0] == 'f' else whole};")

    def store(self, store: Store) -> None:
        """A store, in one or several pieces."""
        place = self.plan.places.get(id(store))
        places = self.pieces(store, place)
        value = self.text(store.stored)
        if len(places) == 1:
            cell = self.cell(store, store.ty) if place is None else _new_cell(place.pieces[0], store.ty)
            self.put(f"*({cell} *)({places[0]}) = {value};")
            return
        assert place is not None
        bits = f"la_as_i{BITS[store.ty]}({value})" if store.ty[0] == "f" else value
        for piece, at in zip(place.pieces, places, strict=True):
            cell = _new_cell(piece, f"i{8 * piece.bytes}")
            self.put(f"*({cell} *)({at}) = ({CTYPE[f'i{8 * piece.bytes}']})((uint64_t){bits} >> {8 * piece.at});")

    def pieces(self, access: Access, place: Place | None) -> list[str]:
        """The address of every piece; in a check build recorded and compared first."""
        reference = self.binding.reference_of.get(key_of(access))
        site = reference.id if reference is not None else 0xFFFF
        if self.settings.check:
            self.record(access, place is not None)
        if place is None:
            return [self.pointer_text(access.address)]
        places = [self.new_place(access, place, piece) for piece in place.pieces]
        if self.settings.check:
            name = self.settings.maps[place.relayout.structure.id]
            for piece, at in zip(place.pieces, places, strict=True):
                old = self.old_place(access, piece.at)
                self.put(f"la_compare(&context->check, {old}, {at}, {name}(context, {old}), {site});")
        return places

    def record(self, access: Access, moved: bool) -> None:
        """Tells of the execution of a reference, in the lanes in which the access stands for it."""
        lanes = access.lanes or executed(access)
        for lane in sorted(self.settings.recorders.get(id(access), ())):
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


@dataclass(frozen=True, slots=True)
class Cut:
    """Index ``atom`` (a value's number) of dimension ``dim``, cut as ``axes`` say, relative to a site."""

    site: int
    dim: int
    atom: int
    digit: int
    shift: int
    axes: tuple[Axis, ...]


def _cut(place: Place, piece: Piece, dim: int) -> Cut | None:
    """How the index of a split dimension is cut, where a single loaded or computed value makes it up; else None."""
    axes = tuple(a for a in piece.map.axes if a.dim == dim)
    terms = [t for t in place.terms if t.digits[dim]]
    last = len(place.relayout.structure.dims) - 1
    if all(a.part == "whole" for a in axes) or len(terms) != 1 or (dim == last and piece.inner):
        return None
    atom = terms[0].atom
    if not isinstance(atom, Val):
        return None
    return Cut(place.site.number, dim, atom.number, terms[0].digits[dim], terms[0].shift, axes)


def _whole(mapped: FieldMap) -> list[Axis]:
    """The dimensions that are not split: what does not move in a loop is added to the pointer before it."""
    return [axis for axis in mapped.axes if axis.part == "whole" and axis.stride]


def _new_cell(piece: Piece, ty: str) -> str:
    """Memory type in a new buffer (64-byte aligned): natural where all its strides are multiples of the size."""
    parts = (piece.map.offset + piece.delta, *(axis.stride for axis in piece.map.axes))
    return f"la_{ty}" if all(part % piece.bytes == 0 for part in parts) else f"la_{ty}_u"
