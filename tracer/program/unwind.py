"""The unwind table of an ELF file: what is a function there, and where a function's frame and return address lie.

The sorted table of ``.eh_frame_hdr`` (LSB core specification, 10.6.2) leads to the record of one function; parsing all of
``.eh_frame`` takes seconds in a large file. Addresses are those of the file.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

RBP, RSP = 6, 7
"""Numbers of the registers in DWARF (System V ABI for AMD64, figure 3.36)."""

# version 1, eh_frame pointer pcrel|sdata4, count udata4, table datarel|sdata4: what every linker writes
_HEADER = b"\x01\x1b\x03\x3b"


@dataclass(frozen=True, slots=True)
class Frame:
    """The canonical frame address as a register (its number in DWARF) and what is added to it; the return address lies in
    the eight bytes below. ``rbp``: where the caller's is saved, from that address on; None: it is still in the register."""

    register: int
    offset: int
    rbp: int | None


@dataclass(frozen=True, eq=False)
class UnwindTable:
    """``starts`` of the functions, ascending, and their ``records``: offsets in ``frames``, the section ``.eh_frame``, which
    lies at ``address``."""

    starts: NDArray[np.int64]
    records: NDArray[np.int64]
    frames: bytes
    address: int
    _known: dict[int, tuple[tuple[int, Frame | None], ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, elf: ELFFile) -> Self | None:
        """That of a file; None where it has none, or one of an unusual encoding."""
        header, frames = elf.get_section_by_name(".eh_frame_hdr"), elf.get_section_by_name(".eh_frame")
        if header is None or frames is None or header["sh_type"] == "SHT_NOBITS":
            return None
        data = header.data()
        if data[:4] != _HEADER or len(data) < 12:
            return None
        count = min(int.from_bytes(data[8:12], "little"), (len(data) - 12) // 8)
        pairs = np.frombuffer(data, dtype="<i4", count=2 * count, offset=12).reshape(count, 2).astype(np.int64)
        address = int(frames["sh_addr"])
        if max(address, header["sh_addr"]) >= 1 << 62:
            return None
        return cls(pairs[:, 0] + header["sh_addr"], pairs[:, 1] + header["sh_addr"] - address, frames.data(), address)

    def ranges(self) -> dict[int, int]:
        """Start and size of every function."""
        found: dict[int, int] = {}
        for start, record in zip(self.starts.tolist(), self.records.tolist(), strict=True):
            size = self._size(start, record)
            if size is not None:
                found[start] = size
        return found

    def frame_at(self, address: int) -> Frame | None:
        """The frame at an instruction; None where the table does not tell, or by an expression only."""
        index = bisect_right(self.starts, address) - 1
        if index < 0:
            return None
        start, record = int(self.starts[index]), int(self.records[index])
        size = self._size(start, record)
        if size is None or address >= start + size:
            return None
        if record not in self._known:
            self._known[record] = tuple(self._rows(record))
        rows = self._known[record]
        row = bisect_right([pc for pc, _ in rows], address) - 1
        return rows[row][1] if row >= 0 else None

    def _size(self, start: int, record: int) -> int | None:
        """Bytes of the function that a record is about; None where it does not use the encoding assumed here
        (pcrel|sdata4), as its own start does not agree then."""
        if not 0 <= record <= len(self.frames) - 16:
            return None
        offset, size = struct.unpack_from("<iI", self.frames, record + 8)
        return size if self.address + record + 8 + offset == start else None

    def _rows(self, record: int) -> list[tuple[int, Frame | None]]:
        """From which addresses on the function's frame is what. The record and the one that it refers to are parsed as a
        section of their own, at the addresses that they have."""
        try:
            common_at = record + 4 - self._word(record + 4)
            common, own = self._entry(common_at), bytearray(self._entry(record))
            struct.pack_into("<I", own, 4, len(common) + 4)
            structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
            section = io.BytesIO(common + own)
            place = self.address + record - len(common)
            entries = CallFrameInfo(section, len(common) + len(own), place, structs, for_eh_frame=True).get_entries()
            decoded = [entry.get_decoded() for entry in entries if isinstance(entry, FDE)]
            return [(row["pc"], _frame(row)) for one in decoded for row in one.table]
        except (DWARFError, ELFError, KeyError, IndexError, ValueError, AssertionError, struct.error):
            return []  # ValueError: pyelftools on DW_CFA_GNU_args_size, which g++ writes for pushed arguments

    def _word(self, at: int) -> int:
        return int(struct.unpack_from("<I", self.frames, at)[0])

    def _entry(self, at: int) -> bytes:
        length = self._word(at)
        if not 0 < length < 0xFFFFFFF0 or at + 4 + length > len(self.frames):
            raise ValueError(at)
        return self.frames[at : at + 4 + length]


def _frame(row: dict[object, object]) -> Frame | None:
    rule, saved = row["cfa"], row.get(RBP)
    register, offset = getattr(rule, "reg", None), getattr(rule, "offset", None)
    if not isinstance(register, int) or not isinstance(offset, int):
        return None
    rbp = getattr(saved, "arg", None) if getattr(saved, "type", None) == "OFFSET" else None
    return Frame(register, offset, rbp if isinstance(rbp, int) else None)


def unwind_ranges(elf: ELFFile) -> dict[int, int]:
    """Start and size of every function in the unwind table; empty where there is none or its encoding is unusual. Entries of
    the PLT sections are left out: they are no functions."""
    table = UnwindTable.of(elf)
    if table is None:
        return {}
    plt = [(s["sh_addr"], s["sh_addr"] + s["sh_size"]) for s in elf.iter_sections() if s.name.startswith(".plt")]
    return {start: size for start, size in table.ranges().items() if not any(low <= start < high for low, high in plt)}
