"""From an old address to the new one in two to ten instructions, modulo 2^64.

There are five forms: ``old + word``; ``old * word + word``; a shift behind that, where the new step is less even than the
old one; the element's number, for blocks; the element's number and the rest, for loops over its fields. Each can be done
once more so that nothing changes: what it takes shows then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from layout_advise.mockup.readdressed.moves import RING, Move, Steps
from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.code.operands import OperandAddress


class AddressForm(Enum):
    """The ways from an old address to the new one, each with the number of registers that it takes."""

    ADDED = "added", 1
    SCALED = "scaled", 1
    SHIFTED = "shifted", 1
    NUMBERED = "numbered", 2
    DIVIDED = "divided", 2


@dataclass(frozen=True, slots=True)
class Word:
    """A word in the image's header: ``value``, and where it is ``placed`` the address of the new arrays' memory."""

    value: int
    placed: bool = False


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction: register number ``on`` is multiplied by ``word``, or that added to it; shifted to the right; or the
    second register becomes a copy of the first one, or is added to it."""

    kind: Literal["multiply", "add", "shift", "copy", "join"]
    on: int = 0
    word: Word = Word(0)
    by: int = 0

    @property
    def idle(self) -> _Step:
        """The same instruction as one after which an address of the user's memory is what it was."""
        if self.kind == "shift":  # of the copy nothing is left, to be added
            return replace(self, by=63 if self.on else 0)
        return replace(self, word=Word(1 if self.kind == "multiply" else 0))

    def write(self, out: Assembler, registers: Sequence[int], at: Callable[[Word], OperandAddress]) -> None:
        """Appends it to ``out``."""
        register = registers[self.on]
        if self.kind == "multiply":
            out.operate(b"\x0f\xaf", register, at(self.word))
        elif self.kind == "add":
            out.operate(b"\x03", register, at(self.word))
        elif self.kind == "shift":
            out.raw(bytes([_rex(0, register), 0xC1, 0xE8 | register & 7, self.by]))
        else:
            to, source, opcode = (registers[1], registers[0], 0x89) if self.kind == "copy" else (*registers[:2], 0x01)
            out.raw(bytes([_rex(source, to), opcode, 0xC0 | (source & 7) << 3 | to & 7]))


def _rex(reg: int, rm: int) -> int:
    return 0x48 | reg >> 3 << 2 | rm >> 3


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The way to the place of a :class:`~layout_advise.mockup.readdressed.moves.Move`."""

    move: Move
    form: AddressForm
    steps: tuple[_Step, ...]

    @property
    def registers(self) -> int:
        """The number of registers that it takes: for the address, and one more."""
        return max(form_of(move).value[1] for move in (self.move, *self.move.others))

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
        for step in self.steps:
            step.write(out, registers, at)

    def again(self, out: Assembler, registers: Sequence[int], at: Callable[[Word], OperandAddress]) -> None:
        """The same instructions once more, after which the first of ``registers`` is what it was."""
        for step in self.steps:
            step.idle.write(out, registers, at)


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
    return Arithmetic(move, form, tuple(_STEPS[form](move)))


def _added(move: Move) -> list[_Step]:
    return [_add(move.offset - move.start, placed=True)]


def _scaled(move: Move) -> list[_Step]:
    factor = move.inverse * (move.steps.stride >> move.even) % RING
    return [_multiply(factor), _add(move.offset - move.start * factor, placed=True)]


def _shifted(move: Move) -> list[_Step]:
    stride = move.steps.stride
    shift = move.even - ((stride & -stride).bit_length() - 1)
    factor = move.inverse * ((stride << shift) >> move.even) % RING
    # the new step times 2^shift, of the element's number
    return [_multiply(factor), _add(-move.start * factor), _Step("shift", by=shift), _add(move.offset, placed=True)]


def _numbered(move: Move) -> list[_Step]:
    steps = move.steps
    number = [_multiply(move.inverse), _add(-move.start * move.inverse)]
    number += [_Step("shift", by=move.even)] if move.even else []
    blocks = [_Step("copy"), _Step("shift", 1, by=steps.block.bit_length() - 1)]
    return [
        *number,
        *blocks,
        _multiply(steps.further - steps.block * steps.stride, on=1),
        _multiply(steps.stride),
        _Step("join"),
        _add(move.offset, placed=True),
    ]


def _divided(move: Move) -> list[_Step]:
    factor, shift = move.quotient
    return [
        _add(-move.start),
        _Step("copy"),
        _multiply(factor, on=1),
        _Step("shift", 1, by=shift),
        *([_multiply(move.apart)] if move.apart != 1 else []),
        _multiply(move.steps.stride - move.step * move.apart, on=1),
        _Step("join"),
        _add(move.offset, placed=True),
    ]


_STEPS: dict[AddressForm, Callable[[Move], list[_Step]]] = {
    AddressForm.ADDED: _added,
    AddressForm.SCALED: _scaled,
    AddressForm.SHIFTED: _shifted,
    AddressForm.NUMBERED: _numbered,
    AddressForm.DIVIDED: _divided,
}


def _multiply(value: int, *, on: int = 0) -> _Step:
    return _Step("multiply", on, Word(value % RING))


def _add(value: int, *, placed: bool = False) -> _Step:
    return _Step("add", 0, Word(value % RING, placed))
