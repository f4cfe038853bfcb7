"""The memory of a stopped program as the objects that it consists of, found by address."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from layout_advise.tracer.objects.heap_blocks import HeapBlocks
from layout_advise.tracer.objects.members import Record, record_of
from layout_advise.tracer.objects.memory_object import Key, MemoryObject
from layout_advise.tracer.objects.object_names import Types, named, numbered
from layout_advise.tracer.objects.pointers import EntryState, Pointer, Read, all_pointers, variables
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.program.variables import RSP
from layout_advise.tracer.trace.trace import Allocation, Life, Trace

LARGE = 64 << 10
"""Blocks of this many bytes or more have a stack each, of smaller ones the first of each site (``LA_LARGE`` in agent.h)."""

USER_END = 1 << 47
"""Where a process's memory ends (Documentation/arch/x86/x86_64/mm.rst). One whose first thread is gone tells no mappings."""


class ProgramMemory:
    """The objects of a stopped program, found by address."""

    def __init__(self, trace: Trace, main: ElfBinary, read: Read) -> None:
        self.known: dict[Key, MemoryObject] = {}
        self._at: dict[int, MemoryObject] = {}
        self._modules = Modules(trace.mappings, main)
        self._blocks = HeapBlocks(trace)
        self._sites: dict[tuple[int, ...], str | None] = {}
        self._trace = trace
        self._entry = EntryState(trace.registers, self._modules, read, self._block_end)
        self._direct, self._held = variables(self._entry)
        self.records: list[Record] = []
        self._pieces: list[MemoryObject] = []
        self._types = Types()

    def _block_end(self, address: int) -> int | None:
        found = self._blocks.at_entry(address)
        return found.address + found.bytes if found is not None else None

    def life(self, key: Key) -> Life | None:
        """The fate in the call of an object that was found, where it is a heap block and blocks were watched."""
        return self.known[key].life

    def take_apart(self, records: Sequence[Record]) -> None:
        """From now on the pieces of ``records`` are objects of their own."""
        self.known, self._at, self.records = {}, {}, []
        self._pieces = sorted((piece for record in records for piece in record.pieces), key=lambda piece: piece.base)

    def end_at(self, address: int, found: MemoryObject) -> int:
        """The first address after ``address`` that is not of the object ``found`` there: in a mapping lie blocks, too."""
        block = self._blocks.next_start(address) if found.kind == "mapped" else None
        return found.end if block is None else min(found.end, block)

    def _piece(self, address: int) -> MemoryObject | None:
        number = bisect_right(self._pieces, address, key=lambda piece: piece.base) - 1
        found = self._pieces[number] if number >= 0 else None
        return found if found is not None and address < found.end else None

    def at(self, address: int) -> MemoryObject:
        """The object around ``address``, not named or typed yet unless a symbol or a caller's variable tells."""
        if address not in self._at:  # references go to the same places many times
            found = self._found(address)
            self._at[address] = self.known.setdefault(found.key, found)
        return self._at[address]

    def _found(self, address: int) -> MemoryObject:
        return (
            self._piece(address)
            or self._heap(address)
            or self._static(address)
            or self._stack(address)
            or self._mapped(address)
            or self._gap(address)
        )

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
                declared = self._types.of(variable.type)
                if declared is not None and address < variable.address + declared.bytes:
                    start = variable.address
                    return MemoryObject("stack", variable.name, start, declared.bytes, declared, start)
        return None

    def _mapped(self, address: int) -> MemoryObject | None:
        mapping = self._modules.mapping_at(address)
        if mapping is None:
            return None
        name = os.path.basename(mapping.path) or "anonymous mapping"
        life: Life | None = None
        if name == "[heap]":  # what the call allocates and frees again leaves no block
            name = "heap memory of no block"
            life = "born" if self._trace.watched and self._blocks.lie_in(mapping.start, mapping.end) else None
        start, end = self._blocks.last_end(address) or 0, self._blocks.next_start(address) or USER_END
        start, end = max(start, mapping.start), min(end, mapping.end)  # from block to block: they are no part of it
        return MemoryObject("mapped", name, start, end - start, None, start, life=life)

    def _gap(self, address: int) -> MemoryObject:
        """What lies between two mappings: nothing when the call begins; the kernel gives it to the call."""
        start = max((m.end for m in self._trace.mappings if m.end <= address), default=0)
        end = min((m.start for m in self._trace.mappings if m.start > address), default=max(USER_END, address + 1))
        return MemoryObject("mapped", "memory that the call gets", start, end - start, None, start, life="born")

    @cached_property
    def _pointers(self) -> list[Pointer]:
        return all_pointers(self._entry, self._direct, self._held)

    def described(self, objects: list[MemoryObject]) -> tuple[MemoryObject, ...]:
        """The same objects with the names and types that the source gives them."""
        pointers = self._pointers
        order = sorted(range(len(pointers)), key=lambda k: pointers[k].value)
        values = [pointers[k].value for k in order]
        described = []
        for found in objects:  # a table of pointers may lead to as many objects: not each pointer is tried with each of them
            inside = sorted(order[bisect_left(values, found.base) : bisect_left(values, found.end)])
            if found.kind == "mapped":  # a pointer to a block in it says nothing of what lies beside that block
                inside = [k for k in inside if self._blocks.at(pointers[k].value) is None]
            called, die = named(found, [pointers[k] for k in inside], self._held, self._types)
            described.append(called)
            if die is not None and (record := record_of(called, die)) is not None:
                self.records.append(record)
        return numbered(described)
