"""Random states for a lifted function, made from the way it uses its arguments.

Values whose sums are addresses are pointers; what is loaded through a pointer gives the memory behind it its fields, and
what is loaded and used as an address again is a pointer to further memory (unification after Steensgaard, POPL 1996, with
constant offsets, which become a stride where a pointer moves or is indexed). Of functions that are called the same is asked.
Nothing of this is taken on trust: it only decides what random bits are drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from layout_advise.mockup.ir.effects import BITS, Gpr, Lane, Ty
from layout_advise.mockup.ir.lifted import (
    Imm,
    Lifted,
    Linear,
    Load,
    OpaqueCall,
    Operand,
    Store,
)  # fmt: skip
from layout_advise.mockup.machine.call_abi import INTEGERS
from tests.support.lifting.memories import FAR, Entry, Field, Kind, Memory, Place, State, What
from tests.support.lifting.pointers import RSP, Pointers

Callees = Callable[[OpaqueCall], State | None]
"""What a function takes that is called; None where that is not known."""


class _Reader(Pointers):
    def __init__(self, lifted: Lifted, callees: Callees, by_reference: bool) -> None:
        super().__init__(lifted)
        self.by_reference = by_reference
        for item in self.items:
            if isinstance(item, OpaqueCall):
                self._called(item, callees(item) if (item.function or "").split(" ")[0] != "rep" else None)
        self.explain()
        self._contents()

    # ---- calls ------------------------------------------------------------------------------------------------------------

    def _called(self, call: OpaqueCall, state: State | None) -> None:
        if state is None:
            return
        fresh = [self.memories.new() for _ in state.memories]
        for number, memory in zip(fresh, state.memories, strict=True):
            self.memories.stride[number] = memory.stride
            for part in memory.fields:
                target = (fresh[part.kind.memory], part.kind.shift) if part.kind.what == "pointer" else None
                made = Entry(part.bytes, part.kind.what, target, frozenset(part.kind.choices))
                self.memories.fields[number][part.offset] = made
        for place, operand in call.args:
            if isinstance(place, Gpr) and place.number in state.registers:
                self._handed(operand, state.registers[place.number], fresh)
        if call.stack is None:
            return
        top = self.in_frame(Linear(0, ((call.stack, 1),)))
        if top is None:
            return
        last: dict[int, Operand] = {}
        for item in takewhile(lambda item: item is not call, self.items):
            if isinstance(item, Store) and (at := self.in_frame(item.address)) is not None:
                last[at] = item.stored
        for slot, kind in state.slots.items():
            if top + 8 * slot in last:
                self._handed(last[top + 8 * slot], kind, fresh)

    def _handed(self, operand: Operand, kind: Kind, fresh: Sequence[int]) -> None:
        if kind.what == "pointer" and not isinstance(operand, Imm):
            place = self.at(Linear(0, ((operand, 1),)), 8)
            if place is None and operand.ty == "i64" and self.score(operand):
                place = self.pointer(operand)
            if place is not None:
                self.memories.same(place, (fresh[kind.memory], kind.shift))
        elif kind.what == "code":
            self.code.add(operand)
        elif kind.what == "integer":
            self.counts.add(operand)
            self.choices.setdefault(operand, set()).update(kind.choices)

    # ---- what is found ----------------------------------------------------------------------------------------------------

    def _contents(self) -> None:
        """Fields from what is loaded and stored; what lies in a field is then known of the values stored there, too."""
        for _ in range(4):
            self._fields()
            before = len(self.place) + len(self.code)
            for item in self.items:
                if isinstance(item, Store) and item.ty == "i64" and not isinstance(item.stored, Imm):
                    self._stored(item)
            self.explain()
            if len(self.place) + len(self.code) == before:
                return

    def _stored(self, item: Store) -> None:
        place = self.at(item.address, 8)
        if place is None or self.in_frame(item.address) in self.reused:
            return
        memory, offset = self.memories.find(place)
        step = self.memories.stride[memory]
        entry = self.memories.fields[memory].get(offset % step if step else offset)
        if entry is not None and entry.what == "code":
            self.code.add(item.stored)
        elif entry is not None and entry.target is not None and self.score(item.stored):
            self.memories.same(self.pointer(item.stored), entry.target)

    def _fields(self) -> None:
        for item in self.items:
            if isinstance(item, Load):
                place = self.at(item.address, BITS[item.value.ty] // 8)
                operand: Operand = item.value
            elif isinstance(item, Store):
                place = self.at(item.address, BITS[item.ty] // 8)
                operand = item.stored
            else:
                continue
            if place is not None and self.in_frame(item.address) not in self.reused:
                what = self._what(operand)
                target = self.place[operand] if what == "pointer" else None
                choices = frozenset(self.choices.get(operand, ()))
                self.memories.add(place, Entry(max(1, BITS[operand.ty] // 8), what, target, choices))

    def _what(self, operand: Operand) -> What:
        by_type: dict[Ty, What] = {"f64": "double", "f32": "single"}
        if operand in self.code:
            return "code"
        if operand in self.place:
            return "pointer"
        if operand.ty == "i64" and not isinstance(operand, Imm) and operand not in self.counts:
            return "any"
        return by_type.get(operand.ty, "integer")

    def state(self) -> State:
        """The places that the function takes arguments from."""
        numbers: dict[int, int] = {}
        order: list[int] = []

        def kind(what: What, target: Place | None, choices: Iterable[int] = ()) -> Kind:
            if what != "pointer" or target is None:
                return Kind("any" if what == "pointer" else what, choices=tuple(sorted(choices)))
            memory, shift = self.memories.find(target)
            if memory not in numbers:
                numbers[memory] = len(order)
                order.append(memory)
            return Kind("pointer", numbers[memory], shift)

        registers: dict[int, Kind] = {}
        vectors: dict[int, Kind] = {}
        for live in self.lifted.live_ins:
            what = self._what(live.value)
            if isinstance(live.location, Lane):
                if live.location.index == 0 and what in ("double", "single"):
                    vectors[live.location.number] = Kind(what)
            elif live.location != RSP and live.location.number < 16:
                if what == "any" and self.by_reference and live.location in INTEGERS:
                    what, self.place[live.value] = "pointer", (self.memories.new(), 0)
                registers[live.location.number] = kind(what, self.place.get(live.value), self.choices.get(live.value, ()))
        slots: dict[int, Kind] = {}
        if self.memories.frame >= 0:
            for offset, entry in sorted(self.memories.fields[self.memories.frame].items()):
                if offset >= 8 and offset % 8 == 0:
                    what, target = entry.what, entry.target
                    if what == "any" and self.by_reference:
                        what, target = "pointer", (self.memories.new(), 0)
                    slots[offset // 8 - 1] = kind(what, target, entry.choices)
        memories: list[Memory] = []
        while len(memories) < len(order):
            memory = order[len(memories)]
            found = sorted(self.memories.fields[memory].items())
            fields = tuple(Field(at, e.bytes, kind(e.what, e.target, e.choices)) for at, e in found if abs(at) < FAR)
            stride = self.memories.stride[memory]
            memories.append(Memory(stride if stride < FAR else 0, fields))
        return State(registers, vectors, slots, tuple(memories))


def nothing_known(call: OpaqueCall) -> State | None:
    """Of a function that is called nothing is known."""
    del call
    return None


def state_of(lifted: Lifted, callees: Callees = nothing_known, *, by_reference: bool = False) -> State:
    """The arguments of ``lifted``. ``callees`` tells those of a function that it calls; ``by_reference``: arguments of which
    nothing is seen are addresses, as in Fortran."""
    return _Reader(lifted, callees, by_reference).state()
