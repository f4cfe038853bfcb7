"""Functions and variables of an ELF file by its symbol tables, sizes repaired from the unwind table.

All addresses are those of the file (no load base).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from elftools.elf.elffile import ELFFile

from layout_advise.tracer.program.unwind import unwind_ranges

_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])
_TYPE_OBJECT, _TYPE_FUNC, _TYPE_TLS, _TYPE_IFUNC = 1, 2, 6, 10
_SHN_UNDEF, _SHN_ABS = 0, 0xFFF1

# What gcc and clang append to the name of a function they have specialised, split or outlined.
_CLONE = re.compile(
    r"\.(isra|constprop|part|cold|_omp_fn|omp_outlined|lto_priv|localalias|llvm|__uniq)(_debug__)?\.?(\d+)?(?=\.|$)"
)

CloneKind = Literal["isra", "constprop", "part", "cold", "omp", "other"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the file: ``size`` bytes of code at ``start``.

    ``parent`` is the name in the source (``work`` for ``work.constprop.0``, equal to ``name`` otherwise); ``clone`` what the
    compiler made of it (the last suffix). ``anonymous`` functions are known from the unwind table only (stripped files).
    """

    name: str
    start: int
    size: int
    local: bool
    parent: str
    clone: CloneKind | None = None
    anonymous: bool = False

    @property
    def end(self) -> int:
        """First address after the function."""
        return self.start + self.size

    @property
    def piece(self) -> bool:
        """Returns whether it is a part of another function without an entry of its own (``.cold``)."""
        return self.clone == "cold"


@dataclass(frozen=True, slots=True)
class DataSymbol:
    """A variable of the file: ``size`` bytes at ``address``. ``name`` may carry gcc's number (``table.3``)."""

    name: str
    address: int
    size: int
    local: bool

    @property
    def source_name(self) -> str:
        """The name in the source: without the number that gcc gives to function-static variables."""
        return re.sub(r"\.\d+$", "", self.name)


def clone_of(name: str) -> tuple[str, CloneKind | None]:
    """The source function of a compiler-made symbol and the kind of the last suffix (``None``: not a clone)."""
    found = list(_CLONE.finditer(name))
    if not found:
        return name, None
    kinds: dict[str, CloneKind] = {"isra": "isra", "constprop": "constprop", "part": "part", "cold": "cold"}
    kinds |= {"_omp_fn": "omp", "omp_outlined": "omp"}
    return name[: found[0].start()], kinds.get(found[-1].group(1), "other")


def _table(elf: ELFFile) -> tuple[np.ndarray[tuple[int], np.dtype[np.void]], bytes] | None:
    # .symtab has everything; a stripped file keeps .dynsym, i.e. what it exports
    for name in (".symtab", ".dynsym"):
        section = elf.get_section_by_name(name)
        if section is not None and section["sh_type"] != "SHT_NOBITS" and section["sh_size"]:
            strings: bytes = elf.get_section(section["sh_link"]).data()
            data: bytes = section.data()
            return np.frombuffer(data[: len(data) // _SYMBOL.itemsize * _SYMBOL.itemsize], dtype=_SYMBOL), strings
    return None


def _text(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    return strings[offset : end if end >= 0 else None].decode("utf-8", "replace")


def read_functions(elf: ELFFile) -> tuple[Function, ...]:
    """Every function with code in this file, ascending by address, one per address.

    Of several names at one address the global one is kept, then the shortest. Sizes that the symbol table leaves 0
    (hand-written assembly) are taken from the unwind table, else up to the next function. Functions without a symbol
    appear as ``sub_ADDRESS`` if the unwind table has them.
    """
    by_start: dict[int, Function] = {}
    table = _table(elf)
    if table is not None:
        symbols, strings = table
        kind = symbols["info"] & 15
        wanted = (
            ((kind == _TYPE_FUNC) | (kind == _TYPE_IFUNC)) & (symbols["section"] != _SHN_UNDEF) & (symbols["value"] != 0)
        )
        for row in symbols[wanted]:
            name = _text(strings, int(row["name"]))
            parent, clone = clone_of(name)
            function = Function(name, int(row["value"]), int(row["size"]), bool(row["info"] >> 4 == 0), parent, clone)
            present = by_start.get(function.start)
            if present is None or _rank(function) < _rank(present):
                by_start[function.start] = function
    return tuple(_with_sizes(by_start, unwind_ranges(elf), _code_end(elf)))


def _rank(function: Function) -> tuple[bool, bool, int, str]:
    return (function.size == 0, function.local, len(function.name), function.name)


def _code_end(elf: ELFFile) -> dict[int, int]:
    code = (s for s in elf.iter_sections() if s["sh_flags"] & 4 and s["sh_size"])
    return {s["sh_addr"]: s["sh_addr"] + s["sh_size"] for s in code}


def _with_sizes(functions: dict[int, Function], unwind: dict[int, int], sections: dict[int, int]) -> Iterable[Function]:
    starts = sorted(functions)
    for index, start in enumerate(starts):
        if functions[start].size == 0:
            limit = starts[index + 1] if index + 1 < len(starts) else 1 << 63
            inside = [end for begin, end in sections.items() if begin <= start < end]
            limit = min([limit, *inside]) if inside else start
            functions[start] = replace(functions[start], size=unwind.get(start, limit - start))
    ends = [functions[s].end for s in starts]
    for start, size in unwind.items():
        before = bisect_right(starts, start) - 1
        if start not in functions and not (before >= 0 and start < ends[before]):
            name = f"sub_{start:x}"
            functions[start] = Function(name, start, size, True, name, anonymous=True)
    return (functions[s] for s in sorted(functions))


def read_variables(elf: ELFFile) -> tuple[DataSymbol, ...]:
    """Every variable with an address in this file (globals and statics; no thread-local ones), ascending by address."""
    table = _table(elf)
    if table is None:
        return ()
    symbols, strings = table
    wanted = (symbols["info"] & 15 == _TYPE_OBJECT) & (symbols["section"] != _SHN_UNDEF) & (symbols["size"] != 0)
    wanted &= symbols["section"] != _SHN_ABS
    found: dict[tuple[int, int], DataSymbol] = {}
    for row in symbols[wanted]:
        symbol = DataSymbol(
            _text(strings, int(row["name"])), int(row["value"]), int(row["size"]), bool(row["info"] >> 4 == 0)
        )  # aliases (environ, __environ) stand at one address: keep the first by name
        key = (symbol.address, symbol.size)
        if key not in found or (symbol.local, symbol.name) < (found[key].local, found[key].name):
            found[key] = symbol
    return tuple(sorted(found.values(), key=lambda s: (s.address, -s.size)))


def bare_name(name: str) -> str:
    """A demangled name without its parameters and clone remark: ``ns::work<int>(int)`` gives ``ns::work<int>``; a Fortran
    procedure without its module: ``__grid_MOD_step`` gives ``step``."""
    if name.startswith("__") and "_MOD_" in name:
        return name.rpartition("_MOD_")[2]
    # the blank and the parenthesis of "(anonymous namespace)" and of "operator()" are no part of the syntax looked for
    name = name.split(" [clone")[0]
    plain = name.replace("(anonymous namespace)", "_" * 21).replace("operator()", "operator__")
    depth = begin = 0
    for position, letter in enumerate(plain):
        depth += (letter == "<") - (letter == ">")
        if letter == " " and depth <= 0 and "operator" not in plain:  # the type of a template's result stands before it
            begin = position + 1
        if letter == "(" and depth <= 0:
            return name[begin:position]
    return name


def demangle(names: Sequence[str]) -> dict[str, str]:
    """Human names of C++ (and Rust) symbols, in one run of binutils' ``c++filt``; the names themselves without it.

    Compiler suffixes are kept as a remark: ``work(int) [clone .constprop.0]``.
    """
    mangled = [n for n in names if n.startswith(("_Z", "_R")) and "\n" not in n]
    tool = shutil.which("c++filt") if mangled else None
    plain = {n: n for n in names}
    if tool is None:
        return plain
    done = subprocess.run([tool], input="\n".join(mangled) + "\n", capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(mangled):
        return plain
    return plain | dict(zip(mangled, lines, strict=True))
