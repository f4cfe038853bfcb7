"""From an old address to the new one in two to ten instructions, modulo 2^64.

There are five forms: ``old + word``; ``old * word + word``; a shift behind that, where the new step is less even than the
old one; the element's number, for blocks; the element's number and the rest, for loops over its fields. Each can be done
once more so that nothing changes: what it takes shows then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from layout_advise.mockup.readdressed.moves import RING, Move, Steps
from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.code.operands import OperandAddress


class AddressForm(IntEnum):
    """The ways from an old address to the new one, by how much is done."""

    ADDED = 0
    SCALED = 1
    SHIFTED = 2
    NUMBERED = 3
    DIVIDED = 4


@dataclass(frozen=True, slots=True)
class Word:
    """A word in the image's header: ``value``, and where it is ``placed`` the address of the new arrays' memory."""

    value: int
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The way to the place of a :class:`~layout_advise.mockup.readdressed.moves.Move`. ``shift`` and ``block_shift`` are
    numbers in the code, everything else is a word."""

    move: Move
    form: AddressForm
    shift: int = 0
    block_shift: int = 0

    @property
    def registers(self) -> int:
        """The number of registers that it takes: for the address, and one more."""
        return 2 if any(form_of(move) >= AddressForm.NUMBERED for move in (self.move, *self.move.others)) else 1

    def __str__(self) -> str:
        m = self.move
        steps = f"{m.steps.stride} * k"
        if m.steps.block:
            steps = f"{m.steps.further} * (k / {m.steps.block}) + {m.steps.stride} * (k % {m.steps.block})"
        over = (" + d", f" + {m.apart} * d") if m.bytes else ("", "")
        pieces = f", in {len(m.pieces)} pieces" if m.pieces else ""
        pieces += "".join(f"; {arithmetic_of(other)}" for other in m.others)
        return f"{m.start:#x} + {m.step} * k{over[0]} is at {m.offset} + {steps}{over[1]}{pieces}"

    def write(self, out: Assembler, registers: Sequence[int], at: Callable[[Word], OperandAddress]) -> None:
        """Makes the new address of the old one in the first of ``registers``; ``at`` is where a word is. Flags change."""
        move, t = self.move, registers[0]
        place = Word(move.offset, placed=True)
        if self.form is AddressForm.ADDED:
            _add(out, t, at(Word(move.offset - move.start, placed=True)))
            return
        if self.form is AddressForm.SCALED:
            factor = move.inverse * (move.steps.stride >> move.even) % RING
            _multiply(out, t, at(Word(factor)))
            _add(out, t, at(Word((move.offset - move.start * factor) % RING, placed=True)))
            return
        if self.form is AddressForm.SHIFTED:  # the new step times 2^shift, of the element's number
            factor = move.inverse * ((move.steps.stride << self.shift) >> move.even) % RING
            _multiply(out, t, at(Word(factor)))
            _add(out, t, at(Word(-move.start * factor % RING)))
            _shift(out, t, self.shift)
            _add(out, t, at(place))
            return
        u = registers[1]
        if self.form is AddressForm.DIVIDED:
            _add(out, t, at(Word(-move.start % RING)))
            _copy(out, u, t)
            _multiply(out, u, at(Word(move.quotient[0])))
            _shift(out, u, self.shift)
            if move.apart != 1:
                _multiply(out, t, at(Word(move.apart % RING)))
            _multiply(out, u, at(Word((move.steps.stride - move.step * move.apart) % RING)))
            _add_register(out, t, u)
            _add(out, t, at(place))
            return
        factor = move.inverse
        _multiply(out, t, at(Word(factor)))
        _add(out, t, at(Word(-move.start * factor % RING)))
        if move.even:
            _shift(out, t, move.even)
        _copy(out, u, t)
        _shift(out, u, self.block_shift)
        beyond = move.steps.further - move.steps.block * move.steps.stride
        _multiply(out, u, at(Word(beyond % RING)))
        _multiply(out, t, at(Word(move.steps.stride)))
        _add_register(out, t, u)
        _add(out, t, at(place))

    def again(self, out: Assembler, registers: Sequence[int], at: Callable[[Word], OperandAddress]) -> None:
        """As many of the same instructions as :meth:`write` has, after which the first of ``registers`` is what it was: an
        address of the user's memory."""
        t, one, zero = registers[0], at(Word(1)), at(Word(0))
        if self.form is AddressForm.ADDED:
            _add(out, t, zero)
            return
        if self.form is AddressForm.DIVIDED:
            self._divided_again(out, registers, one, zero)
            return
        _multiply(out, t, one)
        _add(out, t, zero)
        if self.form is AddressForm.SCALED:
            return
        _shift(out, t, 0)
        if self.form is AddressForm.NUMBERED:
            u = registers[1]
            _copy(out, u, t)
            _shift(out, u, 63)
            _multiply(out, u, one)
            _multiply(out, t, one)
            _add_register(out, t, u)
        _add(out, t, zero)

    def _divided_again(self, out: Assembler, registers: Sequence[int], one: OperandAddress, zero: OperandAddress) -> None:
        t, u = registers
        _add(out, t, zero)
        _copy(out, u, t)
        _multiply(out, u, one)
        _shift(out, u, 63)
        if self.move.apart != 1:
            _multiply(out, t, one)
        _multiply(out, u, one)
        _add_register(out, t, u)
        _add(out, t, zero)


def form_of(move: Move) -> AddressForm:
    """The least form that the move needs."""
    if move.bytes:
        return AddressForm.ADDED if move.apart == 1 and move.steps == Steps(move.step) else AddressForm.DIVIDED
    if move.steps.block:
        return AddressForm.NUMBERED
    if move.steps.stride == move.step:
        return AddressForm.ADDED
    return AddressForm.SCALED if move.steps.stride % (1 << move.even) == 0 else AddressForm.SHIFTED


def arithmetic_of(move: Move) -> Arithmetic:
    """The way to the move's places."""
    form = form_of(move)
    if form is AddressForm.DIVIDED:
        return Arithmetic(move, form, move.quotient[1])
    stride = move.steps.stride
    shift = move.even - ((stride & -stride).bit_length() - 1) if stride else 0
    return Arithmetic(move, form, shift, move.steps.block.bit_length() - 1)


def _rex(reg: int, rm: int) -> int:
    return 0x48 | reg >> 3 << 2 | rm >> 3


def _multiply(out: Assembler, register: int, word: OperandAddress) -> None:
    out.operate(b"\x0f\xaf", register, word)


def _add(out: Assembler, register: int, word: OperandAddress) -> None:
    out.operate(b"\x03", register, word)


def _shift(out: Assembler, register: int, by: int) -> None:
    out.raw(bytes([_rex(0, register), 0xC1, 0xE8 | register & 7, by]))


def _copy(out: Assembler, to: int, source: int) -> None:
    out.raw(bytes([_rex(source, to), 0x89, 0xC0 | (source & 7) << 3 | to & 7]))


def _add_register(out: Assembler, to: int, source: int) -> None:
    out.raw(bytes([_rex(source, to), 0x01, 0xC0 | (source & 7) << 3 | to & 7]))
