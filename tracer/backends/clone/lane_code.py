"""The code that finds out which accesses of a gather, a scatter or a masked move are made.

The mask and the index are stored in the header's page and looked at one lane at a time. ``pext`` brings a bit down without
touching the flags; whoever has AVX2 has BMI2.
"""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.code.operands import MaskedElements, OperandAddress

INDEX_AT, MASK_AT = 128, 192
"""Offsets in the header's page of the index (64 bytes) and the mask (8 bytes, or a vector of 32)."""

CONSTANTS_AT = 256
"""The offset at which the constants begin, 8 bytes each."""

_MOST_WITH_WORD = 16
_MOV, _MOVSXD, _MOVZX_WORD = b"\x8b", b"\x63", b"\x0f\xb7"


@dataclass(frozen=True, slots=True)
class LaneCode:
    """Writes to ``out``, for one instruction; ``other`` is the register that it may use. ``constants`` are values and where
    they have to be in the header's page, which stands at ``header``."""

    out: Assembler
    header: int
    constants: dict[int, int]
    lanes: MaskedElements
    other: int

    def look(self) -> None:
        """Stores the index and the mask."""
        lanes = self.lanes
        if lanes.index is not None:
            self._store_vector(lanes.index, INDEX_AT)
        if not lanes.opmask:
            self._store_vector(lanes.mask, MASK_AT)
            return
        self._store_mask()
        if lanes.counted:
            self._load_mask()
            self._extract(sum(lanes.bits))
            self._pext(self.other)
            self.out.store(self._slot(MASK_AT), self.other)

    def memory(self, number: int, memory: OperandAddress) -> OperandAddress:
        """The address of the access; its index is loaded."""
        lanes = self.lanes
        if lanes.index is None:
            return memory
        index = self._slot(INDEX_AT + number * lanes.index_bytes)
        self.out.operate(_MOVSXD if lanes.index_bytes == 4 else _MOV, self.other, index)
        return OperandAddress(base=memory.base, index=self.other, scale=memory.scale, disp=memory.disp)

    def made(self, number: int) -> None:
        """Makes ``other`` 1 if the access is made, else 0."""
        lanes = self.lanes
        if not lanes.opmask:
            sign = self._slot(MASK_AT + (number + 1) * lanes.element_bytes - 4)
            self.out.operate(_MOV, self.other, sign, wide=False)
            self._extract(1 << 31)
            return
        self._load_mask()
        bits = lanes.bits[number]
        self._extract(bits)
        if bits & bits - 1:  # several: as many low ones as there are, and the lowest of these
            self._pext(self.other)
            self._extract(1)

    @property
    def _short(self) -> bool:
        """Returns whether 16 bits of the mask are enough: storing more takes AVX512BW."""
        return max(self.lanes.bits) >> _MOST_WITH_WORD == 0

    def _slot(self, offset: int) -> OperandAddress:
        return OperandAddress(target=self.header + offset)

    def _load_mask(self) -> None:
        short = self._short and not self.lanes.counted
        self.out.operate(_MOVZX_WORD if short else _MOV, self.other, self._slot(MASK_AT), wide=not short)

    def _extract(self, bits: int) -> None:
        """``pext other, other, [bits]``."""
        at = self.constants.setdefault(bits, CONSTANTS_AT + 8 * len(self.constants))
        self._pext(None)
        self.out.relative(self.header + at)

    def _pext(self, by: int | None) -> None:
        """``pext other, other, by``, or with a displacement to come where ``by`` is ``None``."""
        high = self.other >> 3
        low = high if by is not None else 0
        self.out.raw(bytes([0xC4, 0xE2 ^ high << 7 ^ low << 5, (~self.other & 15) << 3 | 0x82, 0xF5]))
        self.out.raw(bytes([(self.other & 7) << 3 | (5 if by is None else 0xC0 | by & 7)]))

    def _store_mask(self) -> None:
        """``kmovw`` or ``kmovq [slot], k``."""
        self.out.raw(b"\xc5\xf8\x91" if self._short else b"\xc4\xe1\xf8\x91")
        self.out.raw(bytes([self.lanes.mask << 3 | 5]))
        self.out.relative(self.header + MASK_AT)

    def _store_vector(self, number: int, offset: int) -> None:
        """``vmovdqu [slot], ymm``, or ``vmovdqu64`` of as many bytes as the instruction has to do with."""
        field = (number & 7) << 3 | 5
        if not self.lanes.opmask:
            self.out.raw(bytes([0xC4, 0xE1 if number < 8 else 0x61, 0x7E, 0x7F, field]))
        else:
            first = 0xF1 ^ (number >> 3 & 1) << 7 ^ (number >> 4) << 4
            length = {16: 0x08, 32: 0x28, 64: 0x48}[self.lanes.vector_bytes]
            self.out.raw(bytes([0x62, first, 0xFE, length, 0x7F, field]))
        self.out.relative(self.header + offset)
