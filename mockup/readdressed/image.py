"""A copy of a region's machine code in which moved accesses go to a new layout, as bytes for a place in memory.

The image is laid out as a tracing clone's, with one copy that records nothing::

    header: words of the address arithmetic, saved registers | entry | code | where indirect jumps go

Of each moved operand the old address is made in a free register, and the new one of it; then the instruction goes to what
that register points to. All other instructions are those of the original: no compiler made anything of it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from layout_advise.errors import RefusedError
from layout_advise.mockup.evidence.binding import Key
from layout_advise.mockup.machine.disassembly import MemoryOperand, decode_one
from layout_advise.mockup.readdressed.arithmetic import Arithmetic, Word, arithmetic_of
from layout_advise.mockup.readdressed.moves import RING, Moves
from layout_advise.mockup.readdressed.operand import at_register
from layout_advise.mockup.readdressed.pieces import in_pieces
from layout_advise.mockup.readdressed.registers import RegisterUse, registers_of
from layout_advise.mockup.readdressed.stretches import MovedStretch, stretches
from layout_advise.tracer.backends.clone import chunk
from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.backends.clone.dispatcher import write_dispatcher
from layout_advise.tracer.backends.clone.header import (
    GIVE_FLAGS,
    HEADER_BYTES,
    KEEP_FLAGS,
    MARKS,
    SAVED_FLAGS,
    SAVED_RAX,
    slot,
)
from layout_advise.tracer.backends.clone.relocated import Relocated
from layout_advise.tracer.backends.clone.segments import live_flags
from layout_advise.tracer.code.instructions import Instruction, decode, functions_of
from layout_advise.tracer.code.operands import RAX, RSP, OperandAccess, OperandAddress
from layout_advise.tracer.code.region import Region

COPY = "plain"
STOP = b"\x0f\x0b"
"""``ud2``: an access that was never traced, and may be one to what is re-laid."""
SAVED = 256
"""The place in the header of the registers that are put aside."""
MOST_WORDS = (HEADER_BYTES - MARKS) // 8
HINTED = 0
"""The number of a prefetch's only operand."""
LOOP_STEP = 32
"""Loops begin in the copy where they did, modulo so many bytes."""
_NOPS = tuple(map(bytes.fromhex, ("", "90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000")))
"""Instructions that do nothing, by their length."""


@dataclass(frozen=True, slots=True)
class CodeImage:
    """The bytes of the copy, for ``address``, where ``entry`` is entered. ``words`` are those that need the place of the new
    arrays, by their distance from the start. ``moved`` are the addresses of the instructions whose operand is moved, and how
    its new place is made."""

    address: int
    entry: int
    image: bytes
    words: Mapping[int, Word]
    moved: tuple[tuple[int, str], ...]


def build_image(region: Region, moves: Moves, address: int, *, shift: int = 0, twice: bool = False) -> CodeImage:
    """The copy of ``region`` and its callees for ``address`` (a page boundary within 1 GB of it). Its loops begin ``shift``
    bytes further into a line than those of the original. ``twice``: all that is done for an address is done once more.

    Raises RefusedError where an instruction cannot be copied or moved.
    """
    known = _known(region)
    code = _with_hints(known.code, moves)
    all_moves = {**moves.of, **{(at, HINTED): move for at, move in moves.hints.items() if at in code and code[at].accesses}}
    arithmetic = {key: arithmetic_of(move) for key, move in all_moves.items()}
    builder = _Builder(region, replace(known, code=code), moves, arithmetic, address, shift, twice)
    image = builder.build()
    return CodeImage(address, address + HEADER_BYTES, image, builder.words, tuple(builder.moved))


@dataclass(frozen=True, slots=True)
class _Known:
    """The code of a region, as it is for every layout."""

    code: Mapping[int, Instruction]
    registers: RegisterUse
    flags: frozenset[int]


@lru_cache(maxsize=2)
def _known(region: Region) -> _Known:
    code = decode(region)
    return _Known(code, registers_of(region), frozenset(live_flags(code)))


def _with_hints(code: Mapping[int, Instruction], moves: Moves) -> Mapping[int, Instruction]:
    """The code with those prefetches that are moved as accesses; others stay as they are."""
    hints = {at: access for at in moves.hints if at in code and (access := _hint_at(code[at])) is not None}
    return {at: replace(insn, accesses=(hints[at],)) if at in hints else insn for at, insn in code.items()}


def _hint_at(insn: Instruction) -> OperandAccess | None:
    """The place that a prefetch names; None where no general registers make it up."""
    operand = next((o for o in decode_one(insn.code, insn.address).operands if isinstance(o, MemoryOperand)), None)
    if operand is None or operand.base is None or operand.segment or operand.narrow or operand.vector_index is not None:
        return None
    index = operand.index.number if operand.index is not None else None
    displacement = (operand.displacement + (1 << 63)) % (1 << 64) - (1 << 63)
    return OperandAccess(HINTED, "read", 1, OperandAddress(operand.base.number, index, operand.scale, displacement))


@dataclass(slots=True)
class _Builder:
    region: Region
    known: _Known
    moves: Moves
    arithmetic: Mapping[Key, Arithmetic]
    address: int
    shift: int
    twice: bool
    words: dict[int, Word] = field(default_factory=dict)
    moved: list[tuple[int, str]] = field(default_factory=list)
    places: dict[Word, int] = field(default_factory=dict)
    out: Assembler = field(init=False)
    at: dict[int, MovedStretch] = field(default_factory=dict)

    def build(self) -> bytes:
        """All of it."""
        self.out = out = Assembler(self.address)
        self._look()
        relocated = Relocated(out, self.known.code)
        heads = {
            i.target
            for i in self.known.code.values()
            if i.flow == "branch" and i.target is not None and i.target <= i.address
        }
        out.raw(bytes(HEADER_BYTES))
        chunk.enter(out, self.region, COPY)
        for insn in self.known.code.values():
            if insn.address in heads:
                self.pad((insn.address + self.shift - out.here) % LOOP_STEP)
            chunk.place(out, self.region, COPY, insn.address)
            self.instruction(insn, relocated)
            relocated.connect(insn, COPY)
        if any(insn.flow.endswith("indirect") for insn in self.known.code.values()):
            ranges = {r.start: r for function in functions_of(self.region) for r in function.ranges}
            write_dispatcher(out, COPY, tuple(ranges.values()), lambda a: (COPY, a) if a in self.known.code else None)
        for word, place in self.places.items():
            if not word.placed:
                out.text[place : place + 8] = (word.value % RING).to_bytes(8, "little")
        return out.finish()

    def _look(self) -> None:
        """Finds the instructions that are moved, and the registers for it."""
        for (address, operand), how in self.arithmetic.items():
            insn = self.known.code.get(address)
            if insn is None:
                raise RefusedError("no copy of the code", f"the access at {address:#x} is made by code that is not copied")
            memory = next(a.memory for a in insn.accesses if a.operand == operand)
            plain = len(insn.accesses) == 1 and insn.flow == "next" and not insn.repeat and insn.lanes is None
            if not plain or memory.fs or memory.narrow:
                raise RefusedError(
                    f"`{insn.name}` at {address:#x} is not re-indexed", "its address is not an operand of its own"
                )
            self.moved.append((address, str(how)))
        for one in stretches(self.known.code, self.arithmetic, self.known.registers, self.known.flags):
            self.at |= dict.fromkeys(one.distances, one)

    def pad(self, size: int) -> None:
        """Bytes that do nothing, in as few instructions as may be."""
        while size:
            step = min(size, len(_NOPS) - 1)
            self.out.raw(_NOPS[step])
            size -= step

    def instruction(self, insn: Instruction, relocated: Relocated) -> None:
        """One instruction, its memory operand moved where that goes to what is re-laid."""
        stretch = self.at.get(insn.address)
        if stretch is not None:
            self.access(insn, stretch)
        elif any(self._may_move(insn, a) for a in insn.accesses):
            self.out.raw(STOP)
        else:
            relocated.put(insn, COPY)

    def _may_move(self, insn: Instruction, access: OperandAccess) -> bool:
        """Tells whether what was never traced may go to what is re-laid: not what is in the frame, or at a fixed address."""
        memory = access.memory
        known = (insn.address, access.operand) in self.moves.kept
        return (
            bool(self.moves.of)
            and not known
            and memory.base != RSP
            and memory.target is None
            and not memory.fs
            and insn.flow == "next"
        )

    def access(self, insn: Instruction, stretch: MovedStretch) -> None:
        """The instruction at the new address, which is made before the first one of a stretch."""
        out, registers = self.out, stretch.registers
        if stretch.how.move.others:
            self.several_ways(insn, stretch)
            return
        if insn.address == stretch.first:
            for register, number in stretch.saved * (1 + self.twice):
                out.store(slot(out, SAVED + 8 * number), register)
            self.make_address(stretch, stretch.how)
        out.raw(self.moved_code(insn, registers[0], stretch.distances[insn.address]))
        early, late = stretch.saved_twice
        for register, number in early if insn.address == stretch.first else ():
            self.give_back(register, number)
        for register, number in late if insn.address == stretch.last else ():
            self.give_back(register, number)

    def make_address(self, stretch: MovedStretch, how: Arithmetic) -> None:
        """The new address, in the first register of a stretch."""
        self.out.lea(stretch.registers[0], stretch.memory)
        for number, work in enumerate((how.write, how.again)[: 1 + self.twice]):
            if number:  # the address itself once more, too
                self.out.lea(stretch.registers[0], OperandAddress(stretch.registers[0]))
            self.keep_flags(stretch.flags)
            work(self.out, stretch.registers, self.word)
            self.give_flags(stretch.flags)

    def several_ways(self, insn: Instruction, stretch: MovedStretch) -> None:
        """An access of which words go different ways: one way after the other."""
        for register, number in stretch.saved * (1 + self.twice):
            self.out.store(slot(self.out, SAVED + 8 * number), register)
        for move in (stretch.how.move, *stretch.how.move.others):
            self.make_address(stretch, arithmetic_of(move))
            self.out.raw(in_pieces(insn.code, stretch.registers[0], 0, move.pieces))
        for register, number in stretch.saved:
            self.give_back(register, number)

    def moved_code(self, insn: Instruction, register: int, distance: int) -> bytes:
        """The instruction at ``[register + distance]``, or what makes up for it where that is in pieces."""
        (access,) = insn.accesses
        pieces = self.arithmetic[insn.address, access.operand].move.pieces
        if pieces:
            return in_pieces(insn.code, register, distance, pieces)
        return at_register(insn.code, register, distance)

    def give_back(self, register: int, number: int) -> None:
        """A register that was put aside."""
        place = slot(self.out, SAVED + 8 * number)
        self.out.load(register, place)
        if self.twice:
            self.out.store(place, register)
            self.out.load(register, place)

    def keep_flags(self, live: bool) -> None:
        """The flags are put aside, and rax is what it was."""
        if live:
            out = self.out
            out.store(slot(out, SAVED_RAX), RAX)
            out.raw(KEEP_FLAGS)
            out.store(slot(out, SAVED_FLAGS), RAX)

    def give_flags(self, live: bool) -> None:
        """The flags are what they were."""
        if live:
            out = self.out
            out.load(RAX, slot(out, SAVED_FLAGS))
            out.raw(GIVE_FLAGS)
            out.load(RAX, slot(out, SAVED_RAX))

    def word(self, word: Word) -> OperandAddress:
        """The place of a word of the arithmetic."""
        at = self.places.get(word)
        if at is None:
            at = self.places[word] = MARKS + 8 * len(self.places)
            if len(self.places) > MOST_WORDS:
                raise RefusedError("no copy of the code", "too many accesses are moved")
            if word.placed:
                self.words[at] = word
        return slot(self.out, at)
