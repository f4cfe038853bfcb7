"""New addresses as the processor works them out, against the layout's own definition."""

from __future__ import annotations

import ctypes
import mmap

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layout_advise.mockup.readdressed.arithmetic import AddressForm, Arithmetic, Word, arithmetic_of, form_of
from layout_advise.mockup.readdressed.moves import RING, Move, Steps
from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.code.decoder import disassemble
from layout_advise.tracer.code.operands import RAX, OperandAddress

_CODE, _ARRAYS = 2048, 0x7F12_3456_7000
_PAIRS = ((0, 2), (0, 11), (11, 0), (9, 10), (8, 1), (6, 12))


@st.composite
def moves(draw: st.DrawFn) -> Move:
    """A move to records of any kind, or to blocks of them."""
    stride = draw(st.integers(1, 40))
    block = draw(st.sampled_from((0, 0, 2, 4, 8, 64)))
    steps = Steps(stride, block, draw(st.integers(stride * block, 4 * stride * block))) if block else Steps(stride)
    return Move(draw(st.integers(1, 1 << 46)), draw(st.integers(1, 300)), draw(st.integers(0, 1 << 20)), steps)


def run(how: Arithmetic, registers: tuple[int, int], old: int, *, twice: bool) -> int:
    """What the code makes of an old address."""
    with mmap.mmap(-1, 1 << 14, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
        begin = ctypes.c_char.from_buffer(memory)
        base = ctypes.addressof(begin)
        out, words = Assembler(base + _CODE), dict[Word, int]()

        def at(word: Word) -> OperandAddress:
            return OperandAddress(target=base + words.setdefault(word, 8 * len(words)))

        saved = [(b"\x50", b"\x58"), (b"\x41\x54", b"\x41\x5c")]  # rax, r12
        out.raw(saved[1][0])
        out.lea(registers[0], OperandAddress(base=7))
        how.write(out, registers, at)
        if twice:
            how.again(out, registers, at)
        out.lea(RAX, OperandAddress(base=registers[0]))
        out.raw(saved[1][1] + b"\xc3")
        code = out.finish()
        memory[_CODE : _CODE + len(code)] = code
        for word, place in words.items():
            value = (word.value + (_ARRAYS if word.placed else 0)) % RING
            memory[place : place + 8] = value.to_bytes(8, "little")
        found = int(ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(base + _CODE)(old))
        del begin
    return found


@st.composite
def moves_over_fields(draw: st.DrawFn) -> tuple[Move, int, int]:
    """A move of a reference to several places of an element, an element, and one of its places."""
    step, count = draw(st.integers(2, 300)), draw(st.integers(1, 1 << 20))
    move = Move(
        draw(st.integers(1, 1 << 46)),
        step,
        draw(st.integers(0, 1 << 20)),
        Steps(draw(st.integers(1, 40))),
        draw(st.integers(-(1 << 20), 1 << 20)),
        count * step,
    )
    return move, draw(st.integers(0, count - 1)), draw(st.integers(0, step - 1))


@settings(max_examples=300, deadline=None)
@given(moves_over_fields(), st.sampled_from(_PAIRS), st.booleans())
def test_a_loop_over_fields_finds_each_of_them(case: tuple[Move, int, int], registers: tuple[int, int], twice: bool) -> None:
    move, k, distance = case
    assume(move.quotient[0] * move.bytes < RING)
    place = run(arithmetic_of(move), registers, move.start + move.step * k + distance, twice=twice)
    assert place == _ARRAYS + move.offset + move.steps.at(k) + move.apart * distance


@settings(max_examples=300, deadline=None)
@given(moves(), st.sampled_from(_PAIRS), st.integers(0, 1 << 20), st.booleans())
def test_the_processor_comes_to_the_layouts_place(move: Move, registers: tuple[int, int], k: int, twice: bool) -> None:
    place = run(arithmetic_of(move), registers, move.start + move.step * k, twice=twice)
    assert place == _ARRAYS + move.offset + move.steps.at(k)


@given(moves(), st.sampled_from(_PAIRS))
def test_done_again_it_is_as_much_work(move: Move, registers: tuple[int, int]) -> None:
    how, texts = arithmetic_of(move), []
    for write in (how.write, how.again):
        out = Assembler(0x10000)
        write(out, registers, lambda word: OperandAddress(target=0x8000))
        texts.append([insn.mnemonic for insn in disassemble(bytes(out.text), 0x10000)])
    assert texts[0] == texts[1]


def test_a_move_takes_no_more_than_it_needs() -> None:
    assert form_of(Move(64, 24, 0, Steps(24))) is AddressForm.ADDED
    assert form_of(Move(64, 24, 0, Steps(8))) is AddressForm.SCALED
    assert form_of(Move(64, 24, 0, Steps(4))) is AddressForm.SHIFTED
    assert form_of(Move(64, 24, 0, Steps(8, 4, 96))) is AddressForm.NUMBERED
