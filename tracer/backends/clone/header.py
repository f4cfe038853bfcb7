"""The header of a clone's image: what its words hold, and the code that saves flags and stops the recording."""

from __future__ import annotations

from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.code.operands import RAX, OperandAddress

HEADER_BYTES = 1 << 16

NEXT, END, FULL = 0, 8, 16
CALLED = 256
"""Where the words begin of the calls that go by a register or memory: of each those of the :data:`MOST_CALLED` functions
that it came to last, and one more that is not zero where there were others."""
MOST_CALLED = 4
CALLED_BYTES = 8 * (MOST_CALLED + 1)
MARKS = 2048
"""Where the marks begin: a byte for each piece of code, which becomes 1 once that runs. They fill the rest."""
LIMIT, SAVE1, SAVE2, SAVED_RAX, SAVED_FLAGS, TARGET, SAVED_RCX, LEFT = range(64, 64 + 8 * 8, 8)

KEEP_FLAGS = bytes.fromhex("9f 0f90c0")  # lahf; seto al
GIVE_FLAGS = bytes.fromhex("047f 9e")  # add al, 127 (sets OF again); sahf (the others)
JMP, CALL = b"\xe9", b"\xe8"


def slot(out: Assembler, offset: int) -> OperandAddress:
    """The word at ``offset`` of the header of the image that ``out`` assembles."""
    return OperandAddress(target=out.address + offset)


def mark(out: Assembler, number: int) -> None:
    """The piece of code with this number has been reached."""
    out.operate(b"\xc6", 0, slot(out, MARKS + number), wide=False, imm=b"\x01")


def note_called(out: Assembler, number: int) -> None:
    """Puts the header's target word among those of the call with this number; rax and the flags are lost."""
    done = "noted", out.here
    words = [slot(out, CALLED + CALLED_BYTES * number + 8 * k) for k in range(MOST_CALLED + 1)]
    out.load(RAX, slot(out, TARGET))
    for known in words[:MOST_CALLED]:
        out.operate(b"\x3b", RAX, known)  # cmp rax, [known]
        out.branch(b"\x0f\x84", done)  # je
    for known in words[:MOST_CALLED]:
        out.operate(b"\x87", RAX, known)  # xchg
    out.store(words[MOST_CALLED], RAX)
    out.label(done)


def stop_recording(out: Assembler) -> None:
    """From now on there is no room for records."""
    out.operate(b"\xc7", 0, slot(out, FULL), imm=(1).to_bytes(4, "little"))
    out.operate(b"\xc7", 0, slot(out, LIMIT), imm=bytes(4))
