"""Damage to ELF files that knows where their tables are, so that what comes behind the first check is reached too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from elftools.elf.elffile import ELFFile

from tests.support.fuzzing.raw_bytes import ODD_NUMBERS, damaged

_HEADER = (
    (16, 2),
    (18, 2),
    (20, 4),
    (24, 8),
    (32, 8),
    (40, 8),
    (48, 4),
    (52, 2),
    (54, 2),
    (56, 2),
    (58, 2),
    (60, 2),
    (62, 2),
)
_SECTION = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8))
_SEGMENT = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8))
"""Offsets and sizes of the fields of the header, of a section's and of a segment's entry (ELF-64)."""


@dataclass(frozen=True, slots=True)
class ElfFields:
    """A real file: its bytes, ``fields`` (offset, size) of its headers, and the ``pieces`` (begin, end) that are read as
    tables: symbols, relocations, notes, unwinding and debugging information."""

    data: bytes
    fields: tuple[tuple[int, int], ...]
    pieces: tuple[tuple[int, int], ...]


READ = (
    ".debug_",
    ".symtab",
    ".dynsym",
    ".strtab",
    ".dynstr",
    ".eh_frame",
    ".note",
    ".comment",
    ".dynamic",
    ".rela",
    ".shstrtab",
)


def of_file(data: bytes, elf: ELFFile) -> ElfFields:
    """The fields of a file."""
    tables = (
        (_HEADER, 0, 1, 64),
        (_SECTION, elf["e_shoff"], elf["e_shnum"], 64),
        (_SEGMENT, elf["e_phoff"], elf["e_phnum"], 56),
    )
    fields = [(at + size * k + off, n) for kinds, at, count, size in tables for k in range(count) for off, n in kinds]
    sections = [s for s in elf.iter_sections() if s.name.startswith(READ) and s["sh_size"]]
    return ElfFields(data, tuple(fields), tuple((s["sh_offset"], s["sh_offset"] + s["sh_size"]) for s in sections))


def damaged_elf(random: Random, files: Sequence[ElfFields]) -> bytes:
    """One of the files, damaged mostly within one table, sometimes anywhere."""
    file = random.choice(files)
    kind = random.random()
    if kind < 0.15:
        return damaged(random, file.data)
    if kind < 0.4:
        return _fields(random, file)
    begin, end = random.choice(file.pieces)
    piece = damaged(random, file.data[begin:end])[: end - begin].ljust(end - begin, b"\0")
    return file.data[:begin] + piece + file.data[end:]


def _fields(random: Random, file: ElfFields) -> bytes:
    data = bytearray(file.data)
    for _ in range(random.randint(1, 3)):
        at, size = random.choice(file.fields)
        value = int.from_bytes(data[at : at + size], "little")
        other, length = random.choice(file.fields)
        swapped = int.from_bytes(data[other : other + length], "little")
        value = random.choice((value + 1, value - 1, value ^ 1 << random.randrange(8 * size), swapped, *ODD_NUMBERS))
        data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(data)
