"""Entries of functions by their symbols, read with pyelftools."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.tracer.process.patching import Entry


def entry_of(path: Path, name: str) -> Entry:
    with open(path, "rb") as handle:
        elf = ELFFile(handle)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbol = (table.get_symbol_by_name(name) or [])[0]
        section = elf.get_section(symbol["st_shndx"])
        start = symbol["st_value"] - section["sh_addr"]
        return Entry(path, symbol["st_value"], section.data()[start : start + symbol["st_size"]], name)
