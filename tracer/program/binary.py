"""One ELF file: what is where in it, and what its debug information says.

All addresses are those of the file; add the load base (:meth:`ElfBinary.load_base`) to get run-time addresses.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Self, TypeVar

from elftools.elf.constants import P_FLAGS, SH_FLAGS
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import NoteSection, SymbolTableSection

from layout_advise.errors import BinaryError
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program import function_code
from layout_advise.tracer.program import producer as producers
from layout_advise.tracer.program.dwarf import DebugInfo
from layout_advise.tracer.program.dwarf_types import ResultKind, result_kind
from layout_advise.tracer.program.elf_checks import (
    check_dynamic,
    check_executable,
    check_file,
    check_header,
    naming_damage,
    parse,
    without_damaged,
)
from layout_advise.tracer.program.function_names import named, near_names
from layout_advise.tracer.program.lines import InlinedAt, LineTable, SourceLine
from layout_advise.tracer.program.symbols import (
    DataSymbol,
    Function,
    bare_name,
    demangle,
    read_functions,
    read_variables,
)
from layout_advise.tracer.program.unwind import Frame
from layout_advise.tracer.trace.trace import Mapping

_T = TypeVar("_T")


class ElfBinary:
    """A program or shared library. Everything is read on first use and kept."""

    def __init__(self, path: Path, elf: ELFFile) -> None:
        self.path = path
        self._elf = elf
        self.debug = DebugInfo(elf)
        self._lines = LineTable(self.debug)
        self._called = dict[int, bool]()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, static: bool = False) -> Self:
        """The program at ``path``; :class:`BinaryError` says why it cannot be analysed (see ``elf_checks``). ``static``: it
        may be linked statically."""
        binary = cls.open_module(path)
        check_dynamic(binary.path, binary._elf, static)
        check_executable(binary.path)
        return binary

    @classmethod
    def open_module(cls, path: str | os.PathLike[str]) -> Self:
        """A program or a shared library that a process has mapped."""
        file = Path(path)
        check_file(file)
        data = file.read_bytes()
        check_header(file, data[:64])
        # in memory: the file may be rebuilt while we work, and no descriptor stays open
        return cls(file, parse(file, io.BytesIO(data)))

    @cached_property
    @naming_damage
    def build_id(self) -> str | None:
        """The linker's build id in hex, or ``None``."""
        section = self._elf.get_section_by_name(".note.gnu.build-id")
        notes = section.iter_notes() if isinstance(section, NoteSection) else ()
        return next((str(note["n_desc"]) for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"), None)

    @cached_property
    @naming_damage
    def dynamic(self) -> bool:
        """Returns whether the dynamic loader starts it."""
        return any(segment["p_type"] == "PT_INTERP" for segment in self._elf.iter_segments())

    @cached_property
    @naming_damage
    def libraries(self) -> tuple[str, ...]:
        """Shared libraries that it needs, without those of the C and compiler runtimes."""
        section = self._elf.get_section_by_name(".dynamic")
        tags = section.iter_tags("DT_NEEDED") if isinstance(section, DynamicSection) else ()
        names = [str(getattr(tag, "needed", "")) for tag in tags]
        runtime = ("libc.", "libm.", "libgcc_s.", "libstdc++.", "libpthread.", "ld-")
        return tuple(n for n in names if not n.startswith(runtime))

    @cached_property
    @naming_damage
    def stripped(self) -> bool:
        """Returns whether the full symbol table is missing: static functions then have no names."""
        return self._elf.get_section_by_name(".symtab") is None

    @cached_property
    @naming_damage
    def warnings(self) -> tuple[str, ...]:
        """Notes on what the report will lack because of how the file was built."""
        if self.stripped:
            return (f"{self.path} is stripped: only exported functions have names and no type is known; rebuild with -g",)
        if not self.debug.present:
            return (f"{self.path} has no debug information: offsets stand for field names; rebuild with -g",)
        if any(self.debug.split_unit(unit) for unit in _first(self.debug.info.iter_CUs(), 16)):
            return (
                f"{self.path} keeps its debug information in .dwo files, which are not read; rebuild without -gsplit-dwarf",
            )
        return ()

    @cached_property
    @naming_damage
    def functions(self) -> tuple[Function, ...]:
        """Every function, ascending by address."""
        return read_functions(self._elf)

    @cached_property
    @naming_damage
    def variables(self) -> tuple[DataSymbol, ...]:
        """Every variable with a symbol, ascending by address."""
        return read_variables(self._elf)

    @cached_property
    def demangled(self) -> dict[str, str]:
        """Human name of every function symbol."""
        return demangle([f.name for f in self.functions])

    def title(self, function: Function) -> str:
        """The name to show: ``ns::work<int>`` for a C++ function, ``step`` for a Fortran one; ``find`` knows it too."""
        return bare_name(demangle([function.name])[function.name])

    @cached_property
    def _starts(self) -> list[int]:
        return [f.start for f in self.functions]

    def function_at(self, address: int) -> Function | None:
        """The function whose code holds ``address``."""
        index = bisect_right(self._starts, address) - 1
        found = self.functions[index] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def variable_at(self, address: int) -> DataSymbol | None:
        """The variable whose bytes hold ``address``."""
        index = bisect_right(self._variable_starts, address) - 1
        for found in reversed(self.variables[max(0, index - 1) : index + 1]):  # one may lie inside another: step back once
            if found.address <= address < found.address + found.size:
                return found
        return None

    @cached_property
    def _variable_starts(self) -> list[int]:
        return [v.address for v in self.variables]

    def find(self, symbol: str) -> Function:
        """The function that the user calls ``symbol``: a symbol, a source name, a demangled or a Fortran name.

        Raises :class:`BinaryError` with near names where there is none, and with the choices where there are several.
        """
        found = named(symbol, self.functions, self.demangled)
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f.name for f in found[:6])
            raise BinaryError(f"{symbol} is not one function", f"{self.path} has {names}", "give one of these")
        near = near_names(symbol, self.functions, self.demangled)
        hint = f"did you mean {', '.join(near)}?" if near else "nm lists its functions"
        if self.stripped:
            hint += " (the file is stripped: rebuild with -g)"
        raise BinaryError(f"no function {symbol}", f"{self.path} has none of that name", hint)

    @without_damaged(None)
    def line(self, address: int) -> SourceLine | None:
        """File and line of the instruction at ``address``."""
        return self._lines.line(address)

    def user_line(self, address: int) -> SourceLine | None:
        """The innermost line at ``address``, with the calls that were inlined there, that is in no header of the system's;
        where there is none, the innermost."""
        found = self.line(address)
        if found is None or not found.in_system_header:
            return found
        return next((c.call for c in self.inlined(address) if not c.call.in_system_header), found)

    @without_damaged(())
    def inlined(self, address: int) -> tuple[InlinedAt, ...]:
        """The chain of inlined functions at ``address``, innermost first."""
        return self._lines.inlined(address)

    @without_damaged(None)
    def frame_at(self, address: int) -> Frame | None:
        """The frame of the function at an instruction; None where the unwind table does not tell."""
        table = self.debug.unwinding
        return table.frame_at(address) if table is not None else None

    @without_damaged(None)
    def producer_at(self, address: int) -> str | None:
        """``DW_AT_producer`` of the compile unit that holds ``address``, else the compiler's note in ``.comment``."""
        found = self.debug.producer_at(address)
        if found is not None:
            return found
        section = self._elf.get_section_by_name(".comment")
        notes = [n.decode("utf-8", "replace") for n in section.data().split(b"\0") if n] if section is not None else []
        # "GCC: (Debian 12.2.0-14) 12.2.0" names no options; libraries' start files add notes of their own
        if len(set(notes)) != 1:
            return None
        return f"GNU C {notes[0].split()[-1]}" if notes[0].startswith("GCC:") else notes[0]

    def compiler(self, function: Function) -> producers.Compiler:
        """The compiler and flags to compile a mock-up of ``function`` with."""
        code = (self.read(function.start, function.size),)
        return producers.compiler(self.producer_at(function.start), code, self._unit_from(function.start))

    def _unit_from(self, address: int) -> Iterator[bytes]:
        """The code of the compile unit that holds ``address``, from there on, then what lies before, then the rest. Of what
        the linker left out (``--gc-sections``, unused inline functions) debug information keeps ranges that are nowhere."""
        loaded = [s for s in self._elf.iter_segments("PT_LOAD") if s["p_flags"] & P_FLAGS.PF_X]
        inside = [(s["p_vaddr"], s["p_vaddr"] + s["p_filesz"]) for s in loaded]
        ranges = [r for r in self.debug.unit_ranges(address) if any(low <= r[0] and r[1] <= high for low, high in inside)]
        around = [(begin, end) for begin, end in ranges if begin <= address < end]
        pieces = [(address, end) for _, end in around] + [(begin, address) for begin, _ in around]
        for begin, end in (*pieces, *(r for r in ranges if r not in around)):
            yield self.read(begin, end - begin)

    @naming_damage
    def result_kind(self, function: Function) -> ResultKind:
        """The kind of register that holds the result of ``function``, from its debug information; "any" where there is none.
        Clones that the compiler made may return something else than the function, but nothing where that does."""
        die = self.debug.function_at(function.start) if self.debug.present and function.clone != "omp" else None
        kind = "any" if die is None else result_kind(die)
        return kind if function.name == function.parent or kind == "none" else "any"

    @naming_damage
    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes as the file has them (zeros in ``.bss``); :class:`BinaryError` outside the loaded segments."""
        for segment in self._elf.iter_segments("PT_LOAD"):
            offset = address - segment["p_vaddr"]
            if offset >= 0 and offset + size <= segment["p_memsz"]:
                self._elf.stream.seek(segment["p_offset"] + offset)
                held: bytes = self._elf.stream.read(max(0, min(size, segment["p_filesz"] - offset)))
                return held + bytes(size - len(held))
        raise BinaryError(f"{self.path} has no {size} bytes at {address:#x}", "the address is in no loaded segment")

    @naming_damage
    def section_at(self, address: int) -> tuple[str, int, int] | None:
        """Name, address and size of the loaded section that holds ``address``."""
        return next((s for s in self._loaded_sections if s[1] <= address < s[1] + s[2]), None)

    @cached_property
    def _loaded_sections(self) -> tuple[tuple[str, int, int], ...]:
        loaded = (s for s in self._elf.iter_sections() if s["sh_flags"] & SH_FLAGS.SHF_ALLOC)
        return tuple((s.name, s["sh_addr"], s["sh_size"]) for s in loaded)

    @cached_property
    @naming_damage
    def code(self) -> tuple[tuple[int, bytes], ...]:
        """Address and bytes of the sections that hold code."""
        sections = [s for s in self._elf.iter_sections() if s["sh_flags"] & 4 and s["sh_type"] == "SHT_PROGBITS"]
        return tuple((s["sh_addr"], bytes(s.data())) for s in sections)

    def is_called_by_others(self, piece: Function) -> bool:
        """Tells whether a function calls ``piece`` that is not the one it was taken out of, nor it itself."""
        if piece.start not in self._called:
            sites = chain.from_iterable(function_code.call_sites(code, at, piece.start) for at, code in self.code)
            parents = {caller.parent for caller in map(self.function_at, sites) if caller is not None}
            self._called[piece.start] = bool(parents - {piece.parent})
        return self._called[piece.start]

    def exported(self, name: str) -> Function | None:
        """The function of that name in the dynamic symbol table, which may be one of several names of it."""
        table = self._elf.get_section_by_name(".dynsym")
        found = table.get_symbol_by_name(name) if isinstance(table, SymbolTableSection) else None
        return self.function_at(found[0]["st_value"]) if found and found[0]["st_value"] else None

    @cached_property
    def slots(self) -> dict[int, str]:
        """Addresses of the pointers that the loader fills in, with the symbols that it looks up for them."""
        found: dict[int, str] = {}
        for section in self._elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            symbols = self._elf.get_section(section["sh_link"])
            if not isinstance(symbols, SymbolTableSection):
                continue
            for relocation in section.iter_relocations():
                if relocation["r_info_sym"]:
                    found[relocation["r_offset"]] = symbols.get_symbol(relocation["r_info_sym"]).name
        return found

    @naming_damage
    def load_base(self, mappings: Iterable[Mapping]) -> int | None:
        """The load base: added to the file's addresses in a process with these mappings; ``None`` where it is not mapped."""
        mine = os.path.realpath(self.path)
        page = os.sysconf("SC_PAGE_SIZE")
        for mapping in mappings:
            if mapping.path.startswith("/") and os.path.realpath(mapping.path.removesuffix(" (deleted)")) == mine:
                for segment in self._elf.iter_segments("PT_LOAD"):
                    if segment["p_offset"] // page * page <= mapping.offset < segment["p_offset"] + segment["p_filesz"]:
                        return mapping.start - mapping.offset - (segment["p_vaddr"] - segment["p_offset"])
        return None

    def region(
        self, function: Function | str, load_base: int, *, callees: bool = False, called: Collection[int] = ()
    ) -> Region:
        """The function's code at run time, see :func:`layout_advise.tracer.program.function_code.region`."""
        wanted = self.find(function) if isinstance(function, str) else function
        file = function_code.CodeFile(str(self.path), self.read, self.function_at)
        return function_code.region(file, wanted, load_base, callees=callees, pointed=called)


def _first(items: Iterable[_T], count: int) -> Sequence[_T]:
    return [item for item, _ in zip(items, range(count), strict=False)]
