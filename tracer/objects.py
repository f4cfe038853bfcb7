"""Which pieces of the program's memory a trace touches, and what they are called and declared as in the source."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from elftools.dwarf.die import DIE

from layout_advise.layoutalgebra.declared import Declared
from layout_advise.tracer.binary import Binary
from layout_advise.tracer.dwarf_types import describe
from layout_advise.tracer.heapblocks import HeapBlocks
from layout_advise.tracer.members import Record, record_of, split_by
from layout_advise.tracer.modules import Modules
from layout_advise.tracer.pointers import Entry, Held, Pointer, Read, all_pointers, variables
from layout_advise.tracer.spans import Span, addresses, spans
from layout_advise.tracer.trace import Allocation, Life, Trace
from layout_advise.tracer.variables import RSP

Kind = Literal["heap", "global", "stack", "mapped"]
LARGE = 64 << 10
"""Blocks of this many bytes or more have a stack each, of smaller ones the first of each site (``LA_LARGE`` in agent.h)."""
_STACK_NAMES = ("[stack]", "frame of ")
MOST_NUMBERED = 8


@dataclass(frozen=True, slots=True)
class MemoryObject:
    """``bytes`` bytes at run-time address ``base`` that belong together.

    ``type`` describes one element (heap blocks: the count comes from ``bytes``) or the declared array; ``None`` where the
    debug information does not say: it is never guessed. ``element_base`` is the address of the first element (after a
    hand-made alignment it is not ``base``). ``alloc_site`` is ``file:line`` of the allocating call. ``references`` are
    the ids of the trace's references that touch it. Of a heap block ``order`` is its number among all allocations, ``life``
    what becomes of it in the call where that was watched.
    """

    kind: Kind
    name: str
    base: int
    bytes: int
    type: Declared | None = None
    element_base: int = 0
    alloc_site: str | None = None
    references: tuple[int, ...] = ()
    order: int | None = None
    life: Life | None = None

    @property
    def end(self) -> int:
        """First address after the object."""
        return self.base + self.bytes

    @property
    def key(self) -> _Key:
        """What tells it apart: a block may begin where its mapping does."""
        return self.base, self.end


_Key = tuple[int, int]
_UNSURE: dict[Life | None, str] = {
    "freed": "it touches a block that the call frees, and what else the call then puts there",
    "born": "it touches a block that the call allocates",
}


@dataclass(frozen=True, slots=True)
class Touch:
    """A reference touches object number ``object``, ``accesses`` times (``None``: it is not known how often; so it is with
    a block that the call frees, whose memory it may use again)."""

    object: int
    accesses: int | None


@dataclass(frozen=True, slots=True)
class Attribution:
    """``touches[i]`` and ``inexact[i]`` (a reason or ``None``) belong to the trace's reference ``i``."""

    objects: tuple[MemoryObject, ...]
    touches: tuple[tuple[Touch, ...], ...]
    inexact: tuple[str | None, ...]

    def mixed(self, reference: int) -> bool:
        """Whether the reference touches several objects."""
        return len(self.touches[reference]) > 1


def attribute(trace: Trace, main: Binary, read: Read) -> Attribution:
    """The objects that the trace touches, most accesses first, and which reference touches which.

    ``read(address, size)`` reads the memory of the stopped program (``StoppedProgram.read``).
    """
    memory = _Memory(trace, main, read)
    found = _attributed(memory, trace)
    records = tuple(memory.records)
    while records:  # mostly once more; records whose arrays a reference runs over together stay whole
        memory.take_apart(records)
        found = _attributed(memory, trace)
        left = split_by(records, [[found.objects[t.object].base for t in touches] for touches in found.touches])
        if len(left) == len(records):
            break
        records = left
        if not records:
            memory.take_apart(())
            found = _attributed(memory, trace)
    return found


def _attributed(memory: _Memory, trace: Trace) -> Attribution:
    counts: list[dict[_Key, int | None]] = []
    reasons: list[str | None] = []
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        touched: dict[_Key, int | None] = {}
        reason = None
        for span in spans(stream) if stream is not None else ():
            reason = _spread(memory, span, reference.bytes, touched) or reason
        counts.append(touched)
        reasons.append(reason or next((_UNSURE[o] for o in map(memory.life, touched) if o in _UNSURE), None))
    return _assemble(memory, trace, counts, reasons)


def _spread(memory: _Memory, span: Span, size: int, touched: dict[_Key, int | None]) -> str | None:
    """Count the span's accesses for the objects they fall in; returns why that is not exact, if it is not."""
    first = memory.at(span.low)
    if first is not None and span.high + size <= first.end:
        _add(touched, first.key, span.count)
        return None
    every = addresses(span)
    if every is None:
        for found in (first, memory.at(span.high)):
            if found is not None:
                _add(touched, found.key, None)
        return "it touches several objects too often to tell them apart"
    every.sort()
    reason, position = None, 0
    counted = span.count is None or span.count == len(every)  # a set holds each address once: it has no split counts
    while position < len(every):
        found = memory.at(int(every[position]))
        if found is None:
            return f"it touches {int(every[position]):#x}, which belongs to nothing known"
        stop = int(every.searchsorted(found.end))
        if int(every[stop - 1]) + size > found.end:
            reason = f"one access crosses the end of {found.name}"
        _add(touched, found.key, stop - position if counted else None)
        position = stop
    return reason


def _add(touched: dict[_Key, int | None], key: _Key, count: int | None) -> None:
    before = touched.get(key, 0)
    touched[key] = None if before is None or count is None else before + count


def _assemble(memory: _Memory, trace: Trace, counts: list[dict[_Key, int | None]], reasons: list[str | None]) -> Attribution:
    weight: dict[_Key, int] = {}
    users: dict[_Key, list[int]] = {}
    for reference, touched in zip(trace.references, counts, strict=True):
        for key, count in touched.items():
            weight[key] = weight.get(key, 0) + (count or 0)
            users.setdefault(key, []).append(reference.id)
    order = sorted(weight, key=lambda key: (-weight[key], key))
    number = {key: index for index, key in enumerate(order)}
    objects = memory.described([replace(memory.known[key], references=tuple(users[key])) for key in order])
    touches = tuple(
        tuple(Touch(number[key], None if memory.life(key) == "freed" else c) for key, c in sorted(t.items())) for t in counts
    )
    return Attribution(objects, touches, tuple(reasons))


class _Memory:
    """The objects of a stopped program, found by address."""

    def __init__(self, trace: Trace, main: Binary, read: Read) -> None:
        self.known: dict[_Key, MemoryObject] = {}
        self._modules = Modules(trace.mappings, main)
        self._blocks = HeapBlocks(trace)
        self._sites: dict[tuple[int, ...], str | None] = {}
        self._trace = trace
        self._entry = Entry(trace.registers, self._modules, read, self._block_end)
        self._direct, self._held = variables(self._entry)
        self.records: list[Record] = []
        self._pieces: list[MemoryObject] = []

    def _block_end(self, address: int) -> int | None:
        found = self._blocks.at_entry(address)
        return found.address + found.bytes if found is not None else None

    def life(self, key: _Key) -> Life | None:
        """What becomes of an object that was found, where it is a heap block and that was watched."""
        return self.known[key].life

    def take_apart(self, records: Sequence[Record]) -> None:
        """From now on the pieces of ``records`` are objects of their own."""
        self.known, self.records = {}, []
        self._pieces = sorted((piece for record in records for piece in record.pieces), key=lambda piece: piece.base)

    def _piece(self, address: int) -> MemoryObject | None:
        number = bisect_right(self._pieces, address, key=lambda piece: piece.base) - 1
        found = self._pieces[number] if number >= 0 else None
        return found if found is not None and address < found.end else None

    def at(self, address: int) -> MemoryObject | None:
        """The object around ``address``, not named or typed yet unless a symbol or a caller's variable tells."""
        found = (
            self._piece(address)
            or self._heap(address)
            or self._static(address)
            or self._stack(address)
            or self._mapped(address)
        )
        if found is None:
            return None
        return self.known.setdefault(found.key, found)

    def _heap(self, address: int) -> MemoryObject | None:
        piece = self._blocks.at(address)
        if piece is None:
            return None
        if (piece.start, piece.end) in self.known:
            return self.known[piece.start, piece.end]
        block = piece.block
        site = self._site(block)
        name = f"heap block of {site}" if site else f"heap block {block.order}"
        size = piece.end - piece.start
        return MemoryObject("heap", name, piece.start, size, None, piece.start, site, (), block.order, piece.life)

    def _site(self, block: Allocation) -> str | None:
        """The line that allocated: the innermost of the program's own, where a container of a library did it for it."""
        frames = block.stack if block.stack and block.bytes >= LARGE else (block.site,)  # small ones: alike, first or not
        if frames not in self._sites:
            modules = ((pc, self._modules.module_at(pc)) for pc in frames)
            # a frame is a return address: the call is the instruction before it
            lines = [m.binary.user_line(pc - 1 - m.load_base) if m is not None else None for pc, m in modules]
            own = (line for line in lines if line is not None and not line.in_system_header)
            found = next(own, lines[0])
            self._sites[frames] = found.short() if found is not None else None
        return self._sites[frames]

    def _static(self, address: int) -> MemoryObject | None:
        module = self._modules.module_at(address)
        if module is None:
            return None
        symbol = module.binary.variable_at(address - module.load_base)
        if symbol is not None:
            base = symbol.address + module.load_base
            return MemoryObject("global", symbol.source_name, base, symbol.size, None, base)
        held = self._held_at(address)
        if held is not None:  # clang gives string and array literals no symbol
            return replace(held, kind="global")
        section = module.binary.section_at(address - module.load_base)
        if section is None:
            return None
        return MemoryObject(
            "global", section[0], section[1] + module.load_base, section[2], None, section[1] + module.load_base
        )

    def _stack(self, address: int) -> MemoryObject | None:
        mapping = self._modules.mapping_at(address)
        rsp = self._trace.registers.gpr[RSP]
        owner = next((t for t in self._trace.threads if t.owns(address)), None)
        if owner is not None:
            name = f"frame of {self._trace.symbol} in thread {owner.number}"
            return MemoryObject("stack", name, owner.stack, owner.end - owner.stack, None, owner.stack)
        if mapping is None or not (mapping.path == "[stack]" or mapping.start <= rsp < mapping.end):
            return None
        held = self._held_at(address) if address >= rsp + 8 else None
        if held is not None:
            return held
        if mapping.start <= rsp < mapping.end and address < rsp + 8:  # the return address belongs to the hotspot's frame
            start = mapping.start
            return MemoryObject("stack", f"frame of {self._trace.symbol}", start, rsp + 8 - start, None, start)
        start = rsp + 8 if mapping.start <= rsp < mapping.end else mapping.start
        return MemoryObject("stack", "[stack]", start, mapping.end - start, None, start)

    def _held_at(self, address: int) -> MemoryObject | None:
        for variable in self._held:
            if 0 <= address - variable.address < 1 << 40:
                declared = describe(variable.type)
                if declared is not None and address < variable.address + declared.bytes:
                    start = variable.address
                    return MemoryObject("stack", variable.name, start, declared.bytes, declared, start)
        return None

    def _mapped(self, address: int) -> MemoryObject | None:
        mapping = self._modules.mapping_at(address)
        if mapping is None:
            return None
        name = os.path.basename(mapping.path) or "anonymous mapping"
        if name == "[heap]":  # what the call allocates and frees again leaves no block
            name = "heap memory of no block"
        return MemoryObject("mapped", name, mapping.start, mapping.end - mapping.start, None, mapping.start)

    def described(self, objects: list[MemoryObject]) -> tuple[MemoryObject, ...]:
        """The same objects with the names and types that the source gives them."""
        pointers = all_pointers(self._entry, self._direct, self._held)
        order = sorted(range(len(pointers)), key=lambda k: pointers[k].value)
        values = [pointers[k].value for k in order]
        described, types = [], _Types()
        for found in objects:  # a table of pointers may lead to as many objects: not each pointer is tried with each of them
            inside = sorted(order[bisect_left(values, found.base) : bisect_left(values, found.end)])
            if found.kind == "mapped":  # a pointer to a block in it says nothing of what lies beside that block
                inside = [k for k in inside if self._blocks.at(pointers[k].value) is None]
            named, die = _described(found, [pointers[k] for k in inside], self._held, types)
            described.append(named)
            if die is not None and (record := record_of(named, die)) is not None:
                self.records.append(record)
        return _numbered(described)


def _numbered(objects: list[MemoryObject]) -> tuple[MemoryObject, ...]:
    """Blocks of one line (``allocate(a(n), b(n))``) by number; of so many that they are a list's nodes none needs a name."""
    same = Counter(o.name for o in objects if o.alloc_site is not None and o.name.startswith("heap block of "))
    places = {name: sorted(o.base for o in objects if o.name == name) for name, n in same.items() if 1 < n <= MOST_NUMBERED}
    return tuple(
        replace(o, name=f"heap block {places[o.name].index(o.base) + 1} of {o.alloc_site}") if o.name in places else o
        for o in objects
    )


class _Types:
    """Declared types of pointers' targets, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Declared | None] = {}

    def of(self, target: DIE | None) -> Declared | None:
        """What a target's debugging entry declares; ``None`` where it says nothing."""
        if target is None:
            return describe(target)
        key = id(target.dwarfinfo), target.offset
        if key not in self._known:
            self._known[key] = describe(target)
        return self._known[key]


def _described(
    found: MemoryObject, pointers: list[Pointer], held: list[Held], types: _Types
) -> tuple[MemoryObject, DIE | None]:
    """The object with name and type, and the entry of its type where that was found."""
    if found.type is not None or found.name.startswith(_STACK_NAMES) or found.life == "born":  # no pointer led to it yet
        return found, None
    if found.kind == "global":
        own = next((h for h in held if h.address == found.base), None)
        declared = describe(own.type) if own is not None else None
        if own is not None and declared is not None and declared.bytes <= found.bytes:
            return replace(found, name=own.name, type=declared), own.type
        return found, None
    best: tuple[tuple[int, int], Pointer, Declared | None] | None = None
    for pointer in pointers:
        if not found.base <= pointer.value < found.end:
            continue
        declared = types.of(pointer.target)
        if declared is not None and declared.bytes > found.end - pointer.value:
            declared = None
        score = (_worth(declared), pointer.level)
        if best is None or score < best[0]:
            best = score, pointer, declared
    if best is None:
        return found, None
    _, pointer, declared = best
    step = declared.element_bytes if declared is not None else 1
    first = pointer.value - (pointer.value - found.base) // step * step
    first = first if declared is not None else found.base
    return replace(found, name=pointer.name, type=declared, element_base=first), pointer.target if declared else None


def _worth(declared: Declared | None) -> int:
    """How much a pointer's type tells: structures most, then numbers, then bytes, which may be anything; void nothing."""
    if declared is None:
        return 3
    if len(declared.members) > 1:
        return 0
    return 2 if declared.element_bytes == 1 else 1
