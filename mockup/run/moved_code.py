"""Functions of assembly text further into a cache line: what a compiler made once serves for code at every place."""

from __future__ import annotations

import re

_NAMES = re.compile(r"^\s*\.type\s+([\w.$]+),\s*@function", re.MULTILINE)
# what stands between a function's label and its first instruction that is to run
_ENTRY = re.compile(
    r"^([\w.$]+):[^\n]*\n(?:(?:\.LFB\d+:|\.Lfunc_begin\d+:|\s*\.cfi_[^\n]*|\s*endbr64|\s*#[^\n]*)\n)*", re.MULTILINE
)


def moved_code(assembly: str, by: int) -> str:
    """``assembly`` of gcc or clang with ``by`` bytes at the entry of each function that do nothing, where the compiler puts
    them for ``-fpatchable-function-entry``; parts of functions that are seldom run (``.cold``) have none. They are as few
    instructions as may be: gcc's 48 take longer than a call of 5 ns."""
    names = {name for name in _NAMES.findall(assembly) if not name.endswith(".cold")}
    pad = f"\t.nops\t{by}\n" if by else ""
    return _ENTRY.sub(lambda entry: entry[0] + pad if entry[1] in names else entry[0], assembly)
