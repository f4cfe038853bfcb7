"""The body of a mock-up: one C statement per lifted item, re-indexed where the plan says so."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.emit.arrays import has_small_lanes
from layout_advise.mockup.emit.c_text import CTYPE, constant, operation
from layout_advise.mockup.emit.calls_c import (
    atomic_text,
    call_lines,
    given_text,
    record_member,
    returned_name,
    runtime_text,
    through_record,
)
from layout_advise.mockup.emit.memory import MemoryWriter
from layout_advise.mockup.evidence.binding import accesses
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
    Operand,
    Prefetch,
    RuntimeCall,
    Store,
    Val,
    WayEnd,
    everything,
)

MOST_PEELED = 16
"""Loops of so few iterations a compiler may write out: how many there are is kept from it (``docs/decisions/0048``)."""

Move = tuple[str, str, str]
"""The C type of a variable, its name, what it is given."""


class BodyWriter(MemoryWriter):
    """Writes bodies; ``lines`` is the result."""

    def body(self, items: Sequence[Item]) -> None:
        """All items of a body."""
        k = 0
        while k < len(items):
            item = items[k]
            for site in self.plan.sites.get(item.uid, ()):
                self.site(site)
            self.ask(self.plan.bounds.get(item.uid, ()))
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
            register = item.name.removeprefix("returned.")
            member = f"call.{record_member(register)}"
            text = member if self.by_record else returned_name(f"back{self.calls}", register)
            self.put(f"{self.declare(item.value)} = {text};")
        elif isinstance(item, Let) and item.name.startswith("given."):
            self.put(f"{self.declare(item.value)} = {given_text(item.name)};")
        elif isinstance(item, Let) and item.uid in self.context.masks:
            self.put(f"{self.declare(item.value)} = {self.byte_mask(self.context.masks[item.uid])};")
        elif isinstance(item, Let):
            self.make_ready(item)
            args = self.compared_codes(item) or [self.text(a) for a in item.args]
            self.put(f"{self.declare(item.value)} = {operation(item.name, item.value.ty, args, [a.ty for a in item.args])};")
            led = self.context.links.codes.get(item.value)
            if led is not None:
                yes, no = (self.code(a, led, self.context.links.shifts.get(item.value, 0)) for a in item.args[1:])
                self.put(f"{self.declare_code(item.value)} = {args[0]} ? {yes} : {no};")
        elif isinstance(item, LetLinear):
            self.put(f"{self.declare(item.value)} = (int64_t)({self.linear(item.linear, wide=True)});")
            if (led := self.context.links.codes.get(item.value)) is not None:
                (atom, _), *_ = item.linear.terms
                code = self.code(atom, led, self.context.links.shifts.get(atom, 0), checked=False)
                self.put(f"{self.declare_code(item.value)} = {code};")
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
        elif isinstance(item, Prefetch):
            self.put(self.prefetch(item))
        elif isinstance(item, RuntimeCall):
            self.put(runtime_text(item, [self.text(a) for a in item.args]))
        elif isinstance(item, Goto):
            jump = f"goto {self.label(item.label)};"
            self.put(jump if item.condition is None else f"if ({self.text(item.condition)}) {jump}")
        elif isinstance(item, Label):
            self.lines.append("    " * (self.depth - 1) + f"{self.label(item.number)}:;")
        elif isinstance(item, WayEnd):
            self.put(f"LA_STOP; /* {item.pc:#x}{': no compared call came here' if item.reason else ''} */")
        elif isinstance(item, LiftedLoop):
            self.loop(item)

    def make_ready(self, item: Let) -> None:
        """Where the original's compiler chose by a conditional move, in a loop with branches, what it chooses between is
        computed whatever is chosen: else gcc may compute one of both only where it is, and jumps, which costs what it cannot
        predict. A loop without branches may become vectors."""
        if item.name == "select" and item.value.ty[0] == "i" and self.branches:
            led, shift = self.context.links.codes.get(item.value), self.context.links.shifts.get(item.value, 0)
            for arm in dict.fromkeys(item.args[1:]):
                if isinstance(arm, Val):
                    self.put(f"LA_READY({self.text(arm) if led is None else self.code(arm, led, shift)});")

    def compared_codes(self, item: Let) -> list[str]:
        """The codes of two links that are compared, in place of the pointers; of one and an address that stays the same in
        all loops, the other's is made once. Empty where they are not links."""
        links = self.context.links
        known: dict[Operand, Structure] = {a: one for a in item.args if (one := links.codes.get(a) or self.brought(a))}
        led = next(iter(known.values()), None) if item.name in ("eq", "ne") else None
        shifts = {links.shifts.get(a, 0) for a in known}
        if led is None or len(shifts) > 1:
            return []
        (shift,) = shifts
        if all(known.get(a, led) is led and (a in known or self._is_fixed(a)) for a in item.args):
            # what has no code is equal to nothing that has one
            checked = all(self.brought(a) for a in item.args)
            return [
                self.code(a, led, shift, checked=checked) if a in known else self.code_of(a, led, shift) for a in item.args
            ]
        return []

    def _is_fixed(self, operand: Operand) -> bool:
        return isinstance(operand, Imm) or (isinstance(operand, Val) and operand.number in self.scope.live_ins)

    def label(self, number: int) -> str:
        """The C label; labels in a second copy of a loop body get a suffix."""
        return self.labels.get(number, f"L{number}" if number >= 0 else f"exit{-number}")

    def moves(self, group: Sequence[Assign]) -> None:
        """Parallel moves: through temporaries where one reads what another writes."""
        written = {a.variable.number for a in group}
        clash = any(
            not isinstance(a.operand, Imm | Val) and a.operand.number in written - {a.variable.number} for a in group
        )
        self.in_parallel([*self.codes_moved(group), *self.values_moved(group)], through=clash)

    def values_moved(self, group: Sequence[Assign]) -> list[Move]:
        """The moves of what is no code of a link."""
        own = (a for a in group if a.variable not in self.context.links.codes)
        return [(CTYPE[a.variable.ty], self.text(a.variable), self.text(a.operand)) for a in own]

    def codes_moved(self, group: Sequence[Assign]) -> list[Move]:
        """The moves of the codes that variables hold in the place of links. They come first: one that is worked out is of a
        value that is not there any more afterwards."""
        links, found = self.context.links, list[Move]()
        for assign in group:
            if (led := links.codes.get(assign.variable)) is not None:
                shift = links.shifts.get(assign.variable, 0)
                found.append(("int64_t", self.code_name(assign.variable), self.code(assign.operand, led, shift)))
        return found

    def in_parallel(self, texts: Sequence[Move], *, through: bool) -> None:
        """The moves one after the other, or ``through`` temporaries."""
        if through:
            kept = [self.temporary("t") for _ in texts]
            for own, (kind, _, text) in zip(kept, texts, strict=True):
                self.put(f"const {kind} {own} = {text};")
            texts = [(kind, name, own) for own, (kind, name, _) in zip(kept, texts, strict=True)]
        for _, name, text in texts:
            self.put(f"{name} = {text};")

    def opaque(self, call: OpaqueCall) -> None:
        """A call of machine code: registers through a record, see ``opaque.h``; or a string instruction."""
        if (call.function or "").startswith("rep "):
            operands = ", ".join(self.text(operand) for _, operand in call.args)
            self.put(f"la_{(call.function or '').replace(' ', '_')}({operands});")
            return
        self.put(f"/* {(call.function or 'a function known at run time only').replace('*/', '')} */")
        handed = {place: self.text(operand) for place, operand in call.args}
        target, stack = self.text(call.target), None if call.stack is None else self.text(call.stack)
        used = {r for number, r in self.scope.returned[call.uid] if self.scope.uses.get(number)}
        self.calls += 1
        lines = call_lines(f"back{self.calls}", handed, used, target, stack)
        self.by_record = not lines
        for line in lines or through_record(handed, target, stack or "0"):
            self.put(line)

    # ---- loops ----------------------------------------------------------------------------------------------------

    def loop(self, loop: LiftedLoop) -> None:
        """A ``for``; strip-mined where the plan found a block."""
        name = self.names[loop.counter.number]
        if loop.trip is None:
            self.put(f"for (int64_t {name} = 0;; ++{name}) {{")
            self.inner(loop.body)
            self.put("}")
            return
        trip = self.text(loop.trip)
        if isinstance(loop.trip, Imm):
            trip = self.temporary("n")
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
        if has_small_lanes(loop):
            self.put("    LA_ONE_AFTER_ANOTHER;")
        self.elements = before
        self.counting.pop()
        self.put("}")

    def begun(self, loop: LiftedLoop, name: str, trip: str) -> str:
        """Returns what is written before the plain loop, which starts where that ends."""
        if loop.uid in self.plan.blocks and not self.context.wrong:
            return self.stripped(loop, name, trip, self.plan.blocks[loop.uid])
        return "0"

    def promise(self, loop: LiftedLoop) -> None:
        """Tells the compiler what is known of the loop that follows."""
        if loop.independent and (self.context.independent or loop.uid in self.context.known):
            self.put("LA_INDEPENDENT")

    def inner(self, items: Sequence[Item]) -> None:
        """A nested body, one level deeper."""
        before, self.branches = self.branches, any(isinstance(item, Label) for item in items)
        self.depth += 1
        self.body(items)
        self.depth -= 1
        self.branches = before

    def stripped(self, loop: LiftedLoop, name: str, trip: str, block: int) -> str:
        """Whole blocks of the AoSoA dimension, where the accesses start at block borders; what remains follows plainly."""
        start = self.given.new(f"{name}0")  # loops beside each other count by the same name
        borders = sorted(
            {
                self.digit(place.site.number, axis.dim)
                for item in accesses(loop.body)
                if (place := self.plan.places.get(item.uid)) is not None
                for piece in place.pieces
                for axis in piece.map.axes
                if axis.part != "whole"
            }
        )
        self.put(f"int64_t {start} = 0;")
        condition = f"(({' | '.join(borders)}) & {block - 1}) == 0" if borders else "1"
        number, count = self.given.new(f"{name}b"), self.given.new(f"{name}n")
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
