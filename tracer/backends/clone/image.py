"""The instrumented copy of a hotspot.

The image holds the code twice (three times where it has jump tables)::

    header | entry | fast copy, slow copy | overflow stubs | plain copy | where indirect jumps go

The *fast* copy records every memory access. The *slow* copy has a segment of its own for every instruction that in the fast
copy stands between the saving and the restoring of the scratch registers: a jump table may lead there, and control goes
back to the fast copy as soon as it can. The *plain* copy records nothing; control moves there, to the same instruction, when
a segment finds no room for all its records, and never records again.

What the clone leaves alone: the flags, the red zone, the stack below it, the vector and mask registers. Only instructions
that leave the flags alone are added; where the room is checked, live flags are kept in rax by ``lahf``/``seto``. Two
registers are parked in the header's page, which no code shares (a store near running code makes the processor throw its
pipeline away).
The header is not per thread: one thread at a time may run the clone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from layout_advise.errors import RefusedError
from layout_advise.tracer.backends.clone import chunk
from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.backends.clone.dispatcher import write_dispatcher
from layout_advise.tracer.backends.clone.header import (
    CALLED,
    CALLED_BYTES,
    END,
    GIVE_FLAGS,
    HEADER_BYTES,
    JMP,
    KEEP_FLAGS,
    LIMIT,
    MARKS,
    NEXT,
    SAVE1,
    SAVE2,
    SAVED_RAX,
    mark,
    slot,
    stop_recording,
)
from layout_advise.tracer.backends.clone.lane_code import LaneCode
from layout_advise.tracer.backends.clone.relocated import Relocated
from layout_advise.tracer.backends.clone.segments import Segment, cut, live_flags, segment
from layout_advise.tracer.code.instructions import Instruction, decode, functions_of, leaders, references_of
from layout_advise.tracer.code.operands import RAX, RCX, RSP, OperandAddress
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.process.stopped_program import CloneImage

MOST_MARKS = HEADER_BYTES - MARKS
"""Pieces of code of which it is noticed whether they run; of further ones nothing is known."""
MOST_NOTICED = (MARKS - CALLED) // CALLED_BYTES
"""Indirect calls of which it is noticed what they call."""
MOST_LEFT = 64
"""Records for which a buffer that is full may have room left: those of one instruction, or of one segment."""


def build_clone(region: Region, address: int) -> CloneImage:
    """The instrumented copy of ``region`` and its callees, to be mapped at ``address`` (a page boundary within 1 GB).

    ``CloneImage.references`` are all memory operands of the code in the order of their addresses. A segment records all
    or nothing: when the record buffer is full, room for fewer than :data:`MOST_LEFT` may be left in it.
    Raises :class:`RefusedError` for code that cannot be copied, by the name of the instruction.
    """
    code = decode(region)
    if region.entry not in code:
        raise RefusedError(f"no clone of {region.symbol}", "its entry is not in its code")
    references = references_of(code)
    if len(references) >= 1 << 16:
        raise RefusedError(f"no clone of {region.symbol}", f"{len(references)} memory operands are too many to number")
    builder = _CloneBuilder(region, code, address)
    text = builder.build()
    return CloneImage(address, text, address + HEADER_BYTES, references, tuple(builder.marks), builder.called)


class _CloneBuilder:
    """The image in the making. Labels are ``(copy, address)`` for instructions and plain strings for the rest."""

    def __init__(self, region: Region, code: Mapping[int, Instruction], address: int) -> None:
        self.region, self.code, self.address = region, code, address
        self.out = Assembler(address)
        self.called = tuple(at for at, insn in code.items() if insn.flow == "call-indirect")[:MOST_NOTICED]
        self.relocated = Relocated(self.out, code, {at: number for number, at in enumerate(self.called)})
        self.constants: dict[int, int] = {}
        self.live = live_flags(code)
        self.ids: dict[int, int] = {}
        number = 0
        for insn in code.values():
            self.ids[insn.address] = number
            number += len(insn.accesses)
        self.marks: dict[int, int] = {}
        self.overflows: list[tuple[Hashable, Instruction, tuple[int, int], bool]] = []
        functions = functions_of(region)
        self.ranges: dict[int, CodeRange] = {r.start: r for function in functions for r in function.ranges}
        self.entries = [function.entry for function in functions]
        self.indirect = any(insn.flow.endswith("indirect") for insn in code.values())
        self.tables = any(insn.flow == "jump-indirect" for insn in code.values())

    # ---- the image ----

    def build(self) -> bytes:
        out = self.out
        out.raw(bytes(HEADER_BYTES))
        self.entry()
        segments = cut(self.code, leaders(self.code, self.entries))
        slow = {insn.address for seg in segments for insn in seg.inside} if self.tables else set()
        for seg in segments:
            self.segment(seg, "fast")
            self.relocated.connect(seg.code[-1], "fast")
        for address in sorted(slow):
            insn = self.code[address]
            self.segment(segment((insn,)), "slow")
            if insn.falls_through:
                self.relocated.go(JMP, "slow" if insn.end in slow else "fast", insn.end)
        for stub in self.overflows:
            self.overflow(*stub)
        for insn in self.code.values():
            chunk.place(out, self.region, "plain", insn.address)
            self.relocated.put(insn, "plain")
            self.relocated.connect(insn, "plain")
        if self.indirect:
            ranges = tuple(self.ranges.values())
            write_dispatcher(out, "fast", ranges, lambda a: ("slow" if a in slow else "fast", a) if a in self.code else None)
            write_dispatcher(out, "plain", ranges, lambda a: ("plain", a) if a in self.code else None)
        for value, place in self.constants.items():
            out.text[place : place + 8] = value.to_bytes(8, "little")
        return out.finish()

    def entry(self) -> None:
        out = self.out
        out.store(slot(out, SAVED_RAX), RAX)
        out.load(RAX, slot(out, END))
        out.store(slot(out, LIMIT), RAX)
        out.load(RAX, slot(out, SAVED_RAX))
        chunk.enter(out, self.region, "fast")

    # ---- one segment ----

    def segment(self, seg: Segment, copy: str) -> None:
        out = self.out
        records = 0
        for position, insn in enumerate(seg.code):
            chunk.place(out, self.region, copy, insn.address)
            if position == 0 or self.tables:  # a jump table may lead to any instruction
                self.mark(insn.address)
            after: Hashable = (copy, insn.address, "after")
            if insn.repeat:  # one round for every iteration; the plain copy can take over between any two
                out.raw(b"\xe3\x02\xeb\x05")  # jrcxz +2; jmp +5
                out.branch(JMP, after)
            if position == seg.first:
                self.head(seg, insn)
            if insn.lanes:
                self.record_lanes(seg, insn)
            for access in () if insn.lanes else insn.accesses:
                self.record(seg.scratch, access.memory, self.ids[insn.address] + access.operand, 8 * records)
                records += 1
            closing = position == seg.last
            if closing and insn.flow != "next":
                self.tail(seg, records)
            self.relocated.put(insn, "fast", once=True)
            if closing and insn.flow == "next":
                self.tail(seg, records)
            if insn.repeat:
                self.again(insn, copy, after)

    def mark(self, address: int) -> None:
        number = self.marks.setdefault(address, len(self.marks)) if len(self.marks) < MOST_MARKS else self.marks.get(address)
        if number is not None:
            mark(self.out, number)

    def head(self, seg: Segment, insn: Instruction) -> None:
        """Saves two registers, checks the room, leaves the place of the next record in the first of them."""
        out, (place, other) = self.out, seg.scratch
        keep = insn.address in self.live
        label: Hashable = ("overflow", len(self.overflows))
        self.overflows.append((label, insn, seg.scratch, keep))
        out.store(slot(out, SAVE1), place)
        out.store(slot(out, SAVE2), other)
        if keep:
            out.store(slot(out, SAVED_RAX), RAX)
            out.raw(KEEP_FLAGS)
        out.load(place, slot(out, NEXT))
        out.lea(other, OperandAddress(base=place, disp=8 * seg.records))
        out.operate(b"\x3b", other, slot(out, LIMIT))
        out.branch(b"\x0f\x87", label)  # ja
        if keep:
            out.raw(GIVE_FLAGS)
            out.load(RAX, slot(out, SAVED_RAX))

    def tail(self, seg: Segment, records: int) -> None:
        out, (place, other) = self.out, seg.scratch
        if records:
            out.lea(place, OperandAddress(base=place, disp=8 * records))
        out.store(slot(out, NEXT), place)
        out.load(place, slot(out, SAVE1))
        out.load(other, slot(out, SAVE2))

    def record(self, scratch: tuple[int, int], memory: OperandAddress, number: int, offset: int) -> None:
        """Stores the address, then the number over its two highest bytes, which are 0 in user space."""
        out, (place, other) = self.out, scratch
        if memory.fs:  # the control block's first word is its own address (System V ABI, TLS variant II)
            out.load(other, OperandAddress(fs=True))
            if memory.base == RSP:  # which no address can have as its index
                raise RefusedError("no clone", "an rsp-relative operand in the thread's control block")
            if memory.target is not None:
                raise RefusedError("no clone", "a rip-relative operand in the thread's control block")
            out.lea(other, OperandAddress(base=other, index=memory.base, disp=memory.disp))
            if memory.index is not None:
                out.lea(other, OperandAddress(base=other, index=memory.index, scale=memory.scale))
        else:
            out.lea(other, memory)
        out.store(OperandAddress(base=place, disp=offset), other)
        out.operate(
            b"\xc7",
            0,
            OperandAddress(base=place, disp=offset + 6),
            wide=False,
            prefix=b"\x66",
            imm=number.to_bytes(2, "little"),
        )

    def record_lanes(self, seg: Segment, insn: Instruction) -> None:
        """Every lane stores its record; the place moves on only past those whose access is made."""
        assert insn.lanes is not None
        lanes, (place, other) = insn.lanes, seg.scratch
        code = LaneCode(self.out, self.address, self.constants, lanes, other)
        code.look()
        for number, access in enumerate(insn.accesses):
            self.record(seg.scratch, code.memory(number, access.memory), self.ids[insn.address] + number, 0)
            code.made(number)
            self.out.lea(place, OperandAddress(base=place, index=other, scale=8))

    def again(self, insn: Instruction, copy: str, after: Hashable) -> None:
        out = self.out
        out.lea(RCX, OperandAddress(base=RCX, disp=-1))
        if insn.name[:4] in ("cmps", "scas"):  # repe ends at a difference, repne at a match
            out.branch(b"\x0f\x85" if insn.repeat == 0xF3 else b"\x0f\x84", after)
        out.branch(JMP, chunk.behind_count(self.region, copy, insn.address))
        out.label(after)

    def overflow(self, label: Hashable, insn: Instruction, scratch: tuple[int, int], keep: bool) -> None:
        """No room: nothing is recorded any more, and control goes on in the plain copy."""
        out, (place, other) = self.out, scratch
        out.label(label)
        if keep:
            out.raw(GIVE_FLAGS)
            out.load(RAX, slot(out, SAVED_RAX))
        out.load(place, slot(out, SAVE1))
        out.load(other, slot(out, SAVE2))
        stop_recording(out)
        out.branch(JMP, chunk.behind_count(self.region, "plain", insn.address))
