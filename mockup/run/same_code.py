"""Comparison of two built mock-ups: variants that promise the compiler more are often the same program."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

EXECUTED = (".text", ".rodata", ".data")


def same_code(first: Path, second: Path) -> bool:
    """Returns whether code and data of two shared objects are equal; names and debug information are not looked at."""
    return _code(first, first.stat().st_mtime_ns) == _code(second, second.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _code(path: Path, changed: int) -> tuple[bytes, ...]:
    with path.open("rb") as file:
        elf = ELFFile(file)
        return tuple(
            bytes(section.data())
            for section in elf.iter_sections()
            if section.name.startswith(EXECUTED) and section["sh_type"] == "SHT_PROGBITS"
        )
