"""The header of a clone's image: what its words hold, and the code that saves flags and stops the recording."""

from __future__ import annotations

from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.code.operands import OperandAddress

HEADER_BYTES = 1 << 16

NEXT, END, FULL = 0, 8, 16
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


def stop_recording(out: Assembler) -> None:
    """From now on there is no room for records."""
    out.operate(b"\xc7", 0, slot(out, FULL), imm=(1).to_bytes(4, "little"))
    out.operate(b"\xc7", 0, slot(out, LIMIT), imm=bytes(4))
