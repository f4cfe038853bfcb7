"""What a lifted function says of its arguments, for random states on which it does something.

Values whose sums are addresses are pointers; what is loaded through a pointer gives the memory behind it its fields, and
what is loaded and used as an address again is a pointer to further memory (unification after Steensgaard, POPL 1996, with
constant offsets, which become a stride where a pointer moves or is indexed). Of functions that are called the same is asked.
Nothing of this is taken on trust: it only decides what random bits are drawn from.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import gcd
from typing import Literal

from layout_advise.mockup.effects import BITS, Gpr, Lane, Ty
from layout_advise.mockup.lifted import (
    Assign,
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    Linear,
    Load,
    Loop,
    OpaqueCall,
    Operand,
    Store,
)  # fmt: skip
from layout_advise.mockup.opaque import INTEGERS

What = Literal["any", "integer", "double", "single", "pointer", "code"]
WHATS: tuple[What, ...] = ("any", "integer", "double", "single", "pointer", "code")
_STRONGER: dict[What, int] = {w: k for k, w in enumerate(("any", "integer", "single", "double", "pointer", "code"))}
RSP = Gpr(4)
_COMPARES = ("eq", "ne", "slt", "sle", "ult", "ule")
_SLOTS = 32
_NODES = 48
_FIELDS = 24
_CHOICES = 6
_KIND = struct.Struct(f"<BBHi{_CHOICES}i")
_FIELD = struct.Struct("<iI")
BYTES = (16 + 16 + _SLOTS) * _KIND.size + 8 + _NODES * (8 + _FIELDS * (_FIELD.size + _KIND.size))
"""Size of a packed :class:`State`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a place holds; of a pointer the memory and how far behind its origin it points; of an integer the numbers
    that it is compared with."""

    what: What
    memory: int = 0
    shift: int = 0
    choices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """``bytes`` at ``offset`` from where a memory begins."""

    offset: int
    bytes: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory behind a pointer: its fields, repeated every ``stride`` bytes unless that is 0."""

    stride: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class State:
    """Where a function takes arguments from: general registers, vector registers (their low half), 8-byte slots of the stack
    above the return address; and the memories that pointers lead to."""

    registers: Mapping[int, Kind]
    vectors: Mapping[int, Kind]
    slots: Mapping[int, Kind]
    memories: tuple[Memory, ...]

    def packed(self) -> bytes:
        """As ``struct state`` of lift_runner.c."""
        parts = [_pack(found.get(k)) for found, n in ((self.registers, 16), (self.vectors, 16)) for k in range(n)]
        parts += [_pack(self.slots.get(k)) for k in range(_SLOTS)]
        memories = self.memories[:_NODES]
        parts.append(struct.pack("<II", 1, len(memories)))
        for memory in (*memories, *(Memory(0, ()),) * (_NODES - len(memories))):
            fields = memory.fields[:_FIELDS]
            parts.append(struct.pack("<iI", memory.stride, len(fields)))
            parts += [_FIELD.pack(f.offset, f.bytes) + _pack(f.kind) for f in fields]
            parts.append(bytes((_FIELDS - len(fields)) * (_FIELD.size + _KIND.size)))
        return b"".join(parts)


def _pack(kind: Kind | None) -> bytes:
    if kind is None or (kind.what == "pointer" and (kind.memory >= _NODES or abs(kind.shift) > 1 << 20)):
        return bytes(_KIND.size)
    choices = kind.choices[:_CHOICES]
    padded = (*choices, *(0,) * (_CHOICES - len(choices)))
    return _KIND.pack(WHATS.index(kind.what), kind.memory, len(choices), kind.shift, *padded)


Place = tuple[int, int]
"""(memory, offset in it)."""
Callees = Callable[[OpaqueCall], State | None]


@dataclass(slots=True)
class _Entry:
    bytes: int
    what: What
    target: Place | None
    choices: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Memories:
    """Union-find over memories whose origins lie at known distances."""

    parent: list[int] = field(default_factory=list)
    delta: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    fields: list[dict[int, _Entry]] = field(default_factory=list)
    pending: list[tuple[Place, Place]] = field(default_factory=list)
    frame: int = -1

    def new(self) -> int:
        self.parent.append(len(self.parent))
        self.delta.append(0)
        self.stride.append(0)
        self.fields.append({})
        return len(self.parent) - 1

    def find(self, place: Place) -> Place:
        memory, offset = place
        while self.parent[memory] != memory:
            offset += self.delta[memory]
            memory = self.parent[memory]
        return memory, offset

    def same(self, one: Place, other: Place) -> None:
        """Both are one place."""
        self.pending.append((one, other))
        self.drain()

    def drain(self) -> None:
        """Carry out what followed from two fields having become one."""
        while self.pending:
            (a, at), (b, bt) = (self.find(p) for p in self.pending.pop())
            if a == b:
                self.repeat((a, 0), at - bt)
                continue
            if b == self.frame:
                (a, at), (b, bt) = (b, bt), (a, at)
            self.parent[b], self.delta[b] = a, at - bt
            moved, self.fields[b] = self.fields[b], {}
            for offset, entry in moved.items():
                self._put(a, offset + at - bt, entry)
            self.repeat((a, 0), self.stride[b])

    def repeat(self, place: Place, step: int) -> None:
        """The memory repeats itself every ``step`` bytes (0: says nothing)."""
        memory, _ = self.find(place)
        if memory == self.frame or step == 0:
            return
        new = gcd(self.stride[memory], abs(step))
        if new != self.stride[memory]:
            self.stride[memory] = new
            old, self.fields[memory] = self.fields[memory], {}
            for offset, entry in old.items():
                self._put(memory, offset, entry)

    def add(self, place: Place, entry: _Entry) -> None:
        """``place`` holds that."""
        memory, offset = self.find(place)
        self._put(memory, offset, entry)
        self.drain()

    def _put(self, memory: int, offset: int, entry: _Entry) -> None:
        if self.stride[memory]:
            offset %= self.stride[memory]
        old = self.fields[memory].get(offset)
        if old is None:
            self.fields[memory][offset] = entry
            return
        if _STRONGER[entry.what] > _STRONGER[old.what]:
            old.what, old.bytes = entry.what, entry.bytes
        if old.target is not None and entry.target is not None:
            self.pending.append((old.target, entry.target))
        old.target = old.target or entry.target
        old.choices |= entry.choices


class _Reader:
    def __init__(self, lifted: Lifted, callees: Callees, by_reference: bool) -> None:
        self.memories = _Memories()
        self.by_reference = by_reference
        self.lifted = lifted
        self.items = list(_all(lifted.body))
        self.made: dict[Operand, Item] = {}
        self.assigned: dict[Operand, list[Operand]] = {}
        self.entry: dict[Operand, Gpr | Lane] = {live.value: live.location for live in lifted.live_ins if live.half is None}
        self.place: dict[Operand, Place] = {}
        self.work: list[Operand] = []
        self.counts: set[Operand] = set()
        self.code: set[Operand] = set()
        self.choices: dict[Operand, set[int]] = {}
        for item in self.items:
            if isinstance(item, Let | LetLinear | Load):
                self.made[item.value] = item
            elif isinstance(item, Assign):
                self.assigned.setdefault(item.variable, []).append(item.operand)
        for operand, location in self.entry.items():
            if location == RSP:
                self.place[operand] = (self.memories.new(), 0)
                self.memories.frame = self.place[operand][0]
        self.reused = self._reused()
        self._addresses()
        for item in self.items:
            if isinstance(item, OpaqueCall):
                self._called(item, callees(item) if (item.function or "").split(" ")[0] != "rep" else None)
        self._explain()
        self._contents()

    def _reused(self) -> set[int]:
        """Offsets in the frame that are stored to more than once: what lies there differs from time to time."""
        stores = [self.in_frame(item.address) for item in self.items if isinstance(item, Store)]
        return {at for at, count in Counter(at for at in stores if at is not None).items() if count > 1}

    def in_frame(self, address: Linear) -> int | None:
        """The constant distance from the stack pointer at the entry; None of other addresses."""
        const, terms = self.flat(address)
        if len(terms) != 1:
            return None
        ((atom, coef),) = terms.items()
        const %= 2**64
        return const - (const >> 63 << 64) if coef == 1 and self.entry.get(atom) == RSP else None

    # ---- which values are pointers, and where to ------------------------------------------------------------------------

    def _addresses(self) -> None:
        for item in self.items:
            if isinstance(item, Load | Store):
                size = BITS[item.value.ty if isinstance(item, Load) else item.ty] // 8
                self.at(item.address, size)
            if isinstance(item, Let) and item.name not in ("select", "eq", "ne", "bitcast") and "returned" not in item.name:
                self.counts.update(item.args)
            if isinstance(item, Let) and item.name in _COMPARES:
                self._compared(item)
            if isinstance(item, OpaqueCall) and not isinstance(item.target, Imm):
                self.code.add(item.target)
        self._explain()

    def _compared(self, item: Let) -> None:
        """A value that is compared with a constant, directly or after a constant was added or bits were cut off."""
        one, other = item.args
        if isinstance(one, Imm):
            one, other = other, one
        if not isinstance(other, Imm) or isinstance(one, Imm) or one.ty not in ("i8", "i16", "i32", "i64"):
            return
        number, bits = other.value, BITS[one.ty]
        for _ in range(4):
            made = self.made.get(one)
            if isinstance(made, LetLinear) and len(made.linear.terms) == 1 and made.linear.terms[0][1] == 1:
                one, number = made.linear.terms[0][0], number - made.linear.const
            elif isinstance(made, Let) and made.name in ("trunc", "lo32", "zext", "sext"):
                one = made.args[0]
            elif isinstance(made, Let) and made.name in ("add", "sub") and isinstance(made.args[1], Imm):
                one, number = made.args[0], number - made.args[1].value * (1 if made.name == "add" else -1)
            else:
                break
            if isinstance(one, Imm):
                return
        number &= (1 << bits) - 1
        number -= (number >> (bits - 1)) << bits
        if abs(number) < 1 << 16:
            self.choices.setdefault(one, set()).add(number)

    def flat(self, linear: Linear, depth: int = 6) -> tuple[int, dict[Operand, int]]:
        """The sum with the sums written out that it is made of."""
        const, found = linear.const, dict[Operand, int]()
        for atom, coef in linear.terms:
            inner = self.made.get(atom)
            if isinstance(inner, LetLinear) and depth > 0 and atom not in self.place:
                more, terms = self.flat(inner.linear, depth - 1)
                const += more * coef
                for other, factor in terms.items():
                    found[other] = found.get(other, 0) + factor * coef
            else:
                found[atom] = found.get(atom, 0) + coef
        return const, found

    def score(self, operand: Operand, seen: frozenset[Operand] = frozenset()) -> int:
        """How much speaks for a pointer; 0: it is none."""
        if operand in self.place:
            return 6
        if operand.ty != "i64" or isinstance(operand, Imm) or operand in seen:
            return 0
        if operand in self.entry:
            return 4 - 2 * (operand in self.counts)
        item = self.made.get(operand)
        if isinstance(item, Load):
            return 4 - 2 * (operand in self.counts)
        if isinstance(item, Let):
            if item.name == "select":
                return self._best(item.args[1:], operand, seen)
            return 3 if item.name == "returned.rax" else 0
        return self._best(self.assigned.get(operand, ()), operand, seen)

    def _best(self, operands: Sequence[Operand], inside: Operand, seen: frozenset[Operand]) -> int:
        seen |= {inside}
        if len(seen) > 6:
            return 0
        scores = [
            self.score(atom, seen)
            for operand in operands
            if not isinstance(operand, Imm)
            for atom, coef in self.flat(Linear(0, ((operand, 1),)))[1].items()
            if coef == 1
        ]
        return max(0, max(scores, default=0) - 1)

    def split(self, linear: Linear) -> tuple[Operand | None, int, list[int]]:
        """(pointer, constant offset, steps of the rest) of an address."""
        const, terms = self.flat(linear)
        ranked = sorted(((self.score(a), -k, a) for k, (a, c) in enumerate(terms.items()) if c == 1), key=lambda t: t[:2])
        base = ranked[-1][2] if ranked and ranked[-1][0] > 0 else None
        const %= 2**64
        const = const - 2**64 if const >> 63 else const
        return base, const, [abs(c) for a, c in terms.items() if a != base]

    def at(self, linear: Linear, size: int) -> Place | None:
        """The place that an address of so many bytes names; None where no pointer is seen in it."""
        base, const, steps = self.split(linear)
        if base is None:
            return None
        memory, offset = self.pointer(base)
        for step in steps:
            self.memories.repeat((memory, 0), step if step >= size else size)
        if steps and self.memories.find((memory, 0))[0] == self.memories.frame:
            return None
        return memory, offset + const

    def pointer(self, operand: Operand) -> Place:
        """The place that a value points to."""
        if operand not in self.place:
            self.place[operand] = (self.memories.new(), 0)
            self.work.append(operand)
        return self.place[operand]

    def _explain(self) -> None:
        while self.work:
            operand = self.work.pop()
            item = self.made.get(operand)
            sources: Sequence[Operand] = self.assigned.get(operand, ())
            if isinstance(item, Let) and item.name == "select":
                sources = item.args[1:]
            for source in sources:
                if not isinstance(source, Imm):
                    self._comes_from(operand, Linear(0, ((source, 1),)))
            if isinstance(item, LetLinear):
                self._comes_from(operand, item.linear)

    def _comes_from(self, operand: Operand, linear: Linear) -> None:
        place = self.at(linear, 8)
        if place is not None:
            self.memories.same(self.place[operand], place)

    # ---- calls ------------------------------------------------------------------------------------------------------------

    def _called(self, call: OpaqueCall, state: State | None) -> None:
        if state is None:
            return
        fresh = [self.memories.new() for _ in state.memories]
        for number, memory in zip(fresh, state.memories, strict=True):
            self.memories.stride[number] = memory.stride
            for part in memory.fields:
                target = (fresh[part.kind.memory], part.kind.shift) if part.kind.what == "pointer" else None
                made = _Entry(part.bytes, part.kind.what, target, frozenset(part.kind.choices))
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
            self._explain()
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
                self.memories.add(place, _Entry(max(1, BITS[operand.ty] // 8), what, target, choices))

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
            fields = tuple(Field(at, e.bytes, kind(e.what, e.target, e.choices)) for at, e in found)
            memories.append(Memory(self.memories.stride[memory], fields))
        return State(registers, vectors, slots, tuple(memories))


def _all(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from _all(item.body)


def nothing_known(call: OpaqueCall) -> State | None:
    """Of a function that is called nothing is known."""
    del call
    return None


def state_of(lifted: Lifted, callees: Callees = nothing_known, *, by_reference: bool = False) -> State:
    """What ``lifted`` takes. ``callees`` tells the same of a function that it calls; ``by_reference``: arguments of which
    nothing is seen are addresses, as in Fortran."""
    return _Reader(lifted, callees, by_reference).state()
