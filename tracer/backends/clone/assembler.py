"""A small x86-64 encoder for the handful of instructions that the clone adds, with labels.

Every branch it makes is 32 bits wide, so nothing has to be relaxed: code is laid down once and labels are filled in last.
"""

from __future__ import annotations

from collections.abc import Hashable

from layout_advise.errors import RefusedError
from layout_advise.tracer.code.operands import RSP, OperandAddress


def _fits(value: int) -> bool:
    return -(1 << 31) <= value < 1 << 31


class Assembler:
    """Code that will stand at ``address``; ``text`` is what there is of it."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.text = bytearray()
        self.labels: dict[Hashable, int] = {}
        self.fixups: list[tuple[int, Hashable]] = []

    @property
    def here(self) -> int:
        """Run-time address of the next byte."""
        return self.address + len(self.text)

    def label(self, key: Hashable) -> None:
        """Names the next byte."""
        self.labels[key] = len(self.text)

    def raw(self, code: bytes) -> None:
        """Appends bytes."""
        self.text += code

    def relative(self, target: int, after: int = 0) -> None:
        """Appends the 32-bit distance to ``target`` from the end of the instruction (``after`` more bytes follow)."""
        distance = target - (self.here + 4 + after)
        if not _fits(distance):
            raise RefusedError(
                f"no clone at {self.address:#x}", f"{target:#x} is more than 2 GB away", "choose an address near the code"
            )
        self.text += distance.to_bytes(4, "little", signed=True)

    def branch(self, opcode: bytes, target: Hashable | int) -> None:
        """A jump, call or conditional jump (``opcode`` without displacement) to an address or a label (any other key)."""
        self.text += opcode
        if isinstance(target, int):
            self.relative(target)
        else:
            self.fixups.append((len(self.text), target))
            self.text += bytes(4)

    def operate(
        self, opcode: bytes, reg: int, memory: OperandAddress, *, wide: bool = True, prefix: bytes = b"", imm: bytes = b""
    ) -> None:
        """An instruction with a ModRM memory operand; ``reg`` is the register or the opcode's extension."""
        rex = 0x48 if wide else 0x40
        rex |= (reg >> 3) << 2 | (memory.index or 0) >> 3 << 1 | (memory.base or 0) >> 3
        self.text += b"\x67" * memory.narrow + b"\x64" * memory.fs + prefix + bytes([rex]) + opcode
        field = (reg & 7) << 3
        if memory.target is not None:
            self.text.append(field | 5)
            self.relative(memory.target, len(imm))
        else:
            self.text += _address_bytes(field, memory)
        self.text += imm

    def load(self, reg: int, memory: OperandAddress) -> None:
        """``mov reg, [memory]``."""
        self.operate(b"\x8b", reg, memory)

    def store(self, memory: OperandAddress, reg: int) -> None:
        """``mov [memory], reg``."""
        self.operate(b"\x89", reg, memory)

    def lea(self, reg: int, memory: OperandAddress) -> None:
        """``lea reg, [memory]``."""
        if memory.target is None and not memory.narrow and not _fits(memory.disp):
            self.constant(reg, memory.disp)  # the absolute 64-bit form of mov
        else:
            self.operate(b"\x8d", reg, memory)

    def constant(self, reg: int, value: int) -> None:
        """``movabs reg, value``."""
        self.text += bytes([0x48 | reg >> 3, 0xB8 | reg & 7]) + (value & (1 << 64) - 1).to_bytes(8, "little")

    def finish(self) -> bytes:
        """The code with all labels filled in."""
        for at, key in self.fixups:
            distance = self.labels[key] - (at + 4)
            self.text[at : at + 4] = distance.to_bytes(4, "little", signed=True)
        self.fixups.clear()
        return bytes(self.text)


def _address_bytes(field: int, memory: OperandAddress) -> bytes:
    """ModRM (with ``field`` in the middle), SIB and displacement; always 32 bits of displacement but for a bare base."""
    disp = memory.disp
    if memory.narrow:  # capstone gives the displacement of a 32-bit address either way
        disp = (disp + (1 << 31)) % (1 << 32) - (1 << 31)
    if not _fits(disp):
        raise RefusedError("no clone", f"the displacement {disp:#x} does not fit in 32 bits")
    offset = disp.to_bytes(4, "little", signed=True)
    scale = {1: 0, 2: 1, 4: 2, 8: 3}[memory.scale] << 6
    index = 4 if memory.index is None else memory.index & 7  # 4 in the SIB byte means none
    if memory.base is None:
        return bytes([field | 4, scale | index << 3 | 5]) + offset
    base = memory.base & 7
    short = -128 <= disp < 128
    mode = 0x40 if short else 0x80
    tail = disp.to_bytes(1, "little", signed=True) if short else offset
    if memory.index is None and base != RSP:
        return bytes([mode | field | base]) + tail
    return bytes([mode | field | 4, scale | index << 3 | base]) + tail
