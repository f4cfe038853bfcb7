"""Addresses and names of machine code as the source has them, in sentences that a user reads."""

from __future__ import annotations

import re

from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import demangle

_PLACE = re.compile(r"\bat 0x([0-9a-f]+)")
_SYMBOL = re.compile(r"\b_[ZR]\w+")


def in_source(text: str, module: ElfBinary, load_base: int) -> str:
    """``text`` with ``at FILE:LINE`` for addresses that the debug information knows (lines of the program's own, where
    headers of the system's are inlined there), and human names for symbols of C++."""

    def place(found: re.Match[str]) -> str:
        line = module.user_line(int(found[1], 16) - load_base)
        return f"at {line.short()}" if line is not None and line.line else found[0]

    symbols = _SYMBOL.findall(text)
    names = demangle(symbols) if symbols else {}
    return _SYMBOL.sub(lambda found: names[found[0]], _PLACE.sub(place, text))
