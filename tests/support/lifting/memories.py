"""Memory behind pointers, for random states: what its fields hold, and which memories are one (see lift_state.py)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Literal

What = Literal["any", "integer", "double", "single", "pointer", "code"]
WHATS: tuple[What, ...] = ("any", "integer", "double", "single", "pointer", "code")
_BY_STRENGTH: tuple[What, ...] = ("any", "integer", "single", "double", "pointer", "code")
_STRONGER = {what: strength for strength, what in enumerate(_BY_STRENGTH)}
FAR = 1 << 26
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
    """The contents of a place: of a pointer the memory and the offset from its origin; of an integer the numbers
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
    """The sources of a function's arguments: general registers, vector registers (their low half), 8-byte slots of the stack
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
    if kind is None or (kind.what == "pointer" and (kind.memory >= _NODES or abs(kind.shift) >= FAR)):
        return bytes(_KIND.size)
    choices = kind.choices[:_CHOICES]
    padded = (*choices, *(0,) * (_CHOICES - len(choices)))
    return _KIND.pack(WHATS.index(kind.what), kind.memory, len(choices), kind.shift, *padded)


Place = tuple[int, int]
"""(memory, offset in it)."""


@dataclass(slots=True)
class Entry:
    """A field as far as it is known by now."""

    bytes: int
    what: What
    target: Place | None
    choices: frozenset[int] = frozenset()


@dataclass(slots=True)
class Memories:
    """Union-find over memories whose origins lie at known distances."""

    parent: list[int] = field(default_factory=list)
    delta: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    fields: list[dict[int, Entry]] = field(default_factory=list)
    pending: list[tuple[Place, Place]] = field(default_factory=list)
    frame: int = -1

    def new(self) -> int:
        """One more memory."""
        self.parent.append(len(self.parent))
        self.delta.append(0)
        self.stride.append(0)
        self.fields.append({})
        return len(self.parent) - 1

    def find(self, place: Place) -> Place:
        """The memory that it has become one with, and the offset there."""
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

    def add(self, place: Place, entry: Entry) -> None:
        """``place`` holds that."""
        memory, offset = self.find(place)
        self._put(memory, offset, entry)
        self.drain()

    def _put(self, memory: int, offset: int, entry: Entry) -> None:
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
