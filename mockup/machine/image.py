"""The ELF file around a region, as the lifter needs it: read-only bytes, and the names of call targets."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from layout_advise.errors import BinaryError, NotLiftedError
from layout_advise.mockup.machine.disassembly import MemoryOperand, decode_one
from layout_advise.tracer.program.elf_checks import damage_named

_PF_W = 2
_RELATIVE = 8  # R_X86_64_RELATIVE


@dataclass(frozen=True)
class Image:
    """Segments and symbols of one ELF file; addresses are run-time addresses (``load_base`` added).

    ``functions`` maps the start of a function to its name, ``sizes`` to its bytes, ``slots`` an entry of the global offset
    table to the symbol that the loader puts there, ``pointers`` what is only read once the loader has put an address of
    this file there to that address.
    """

    segments: tuple[tuple[int, bytes, bool], ...] = ()
    functions: dict[int, str] = field(default_factory=dict)
    slots: dict[int, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    pointers: dict[int, int] = field(default_factory=dict)

    def function_code(self, address: int) -> bytes:
        """The code of the function that starts at ``address``; nothing where its size is not known."""
        size = self.sizes.get(address, 0)
        return (self.read(address, size) or b"") if size else b""

    def read(self, address: int, size: int) -> bytes | None:
        """``size`` bytes of the file's image at ``address`` if they cannot change at run time (not writable)."""
        for start, data, constant in self.segments:
            if constant and start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    def pointer(self, address: int) -> int | None:
        """The 8 bytes at ``address`` that are the address of something in this file, if they cannot change at run time."""
        if address in self.pointers:
            return self.pointers[address]
        data = self.read(address, 8)
        return None if data is None else int.from_bytes(data, "little")

    def slot_name(self, address: int) -> str | None:
        """The symbol whose address the loader stores in the 8 bytes at ``address``."""
        return self.slots.get(address)

    def name_of(self, address: int) -> str | None:
        """The function that starts at ``address``; a PLT stub has the name of what it jumps to."""
        if address in self.functions:
            return self.functions[address]
        slot = self._stub(address)
        return None if slot is None else self.slot_name(slot)

    def is_stub(self, address: int) -> bool:
        """Returns whether the code at ``address`` is a PLT stub: it only jumps to the address in a slot."""
        return self._stub(address) is not None

    def _stub(self, address: int) -> int | None:
        """The slot through which a PLT stub jumps."""
        at = address
        for _ in range(3):  # [endbr64] [bnd] jmp [slot]
            code = self._code(at)
            if not code:
                return None
            try:
                insn = decode_one(code, at)
            except NotLiftedError:
                return None
            if insn.mnemonic == "jmp":
                target = insn.operands[0]
                return target.displacement if isinstance(target, MemoryOperand) and target.base is None else None
            at = insn.end
        return None

    def _code(self, address: int) -> bytes:
        for start, data, constant in self.segments:
            if constant and start <= address < start + len(data):
                return data[address - start : address - start + 16]
        return b""


@lru_cache(maxsize=8)
def open_image(path: str, load_base: int) -> Image:
    """The image of the ELF file at ``path``, loaded at ``load_base``; raises :class:`BinaryError` if it cannot be read.

    An empty ``path`` (code that comes from no file) gives an image without names.
    """
    if not path:
        return Image()
    try:
        with Path(path).open("rb") as file, damage_named(path):
            return _parse(ELFFile(file), load_base)
    except OSError as error:
        raise BinaryError(f"cannot read {path}", str(error)) from error


def _parse(elf: ELFFile, base: int) -> Image:
    size = elf.stream.seek(0, os.SEEK_END)
    if any(s["p_offset"] + s["p_filesz"] > size for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"):
        raise ELFError("a segment reaches beyond the end of the file")
    segments = tuple(
        (base + s["p_vaddr"], s.data(), not s["p_flags"] & _PF_W) for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"
    )
    functions: dict[int, str] = {}
    slots: dict[int, str] = {}
    sizes: dict[int, int] = {}
    pointers: dict[int, int] = {}
    sealed = [range(s["p_vaddr"], s["p_vaddr"] + s["p_memsz"]) for s in elf.iter_segments() if s["p_type"] == "PT_GNU_RELRO"]
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            for symbol in section.iter_symbols():
                if symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC") and symbol["st_value"]:
                    functions.setdefault(base + symbol["st_value"], symbol.name)
                    sizes.setdefault(base + symbol["st_value"], symbol["st_size"])
        if isinstance(section, RelocationSection):
            pointers |= _sealed_pointers(section, sealed, base)
        if isinstance(section, RelocationSection) and section["sh_link"]:
            symbols = elf.get_section(section["sh_link"])
            if not isinstance(symbols, SymbolTableSection):
                continue
            for relocation in section.iter_relocations():
                number = relocation["r_info_sym"]
                name = symbols.get_symbol(number).name if number else ""
                if name:
                    slots.setdefault(base + relocation["r_offset"], name.split("@")[0])
    return Image(segments, functions, slots, sizes, pointers)


def _sealed_pointers(section: RelocationSection, sealed: list[range], base: int) -> dict[int, int]:
    """What the loader adds its base to in memory that is read-only afterwards."""
    return {
        base + r["r_offset"]: base + r["r_addend"]
        for r in section.iter_relocations()
        if r["r_info_type"] == _RELATIVE and r.is_RELA() and any(r["r_offset"] in one for one in sealed)
    }
