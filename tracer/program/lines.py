"""From a code address to file and line, through ``.debug_line``; one line program is parsed per compile unit asked for."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.lineprogram import LineProgram

from layout_advise.tracer.program.dwarf import DebugInfo
from layout_advise.tracer.program.entries.attributes import number, text
from layout_advise.tracer.program.entries.line_headers import has_room


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in the source; ``file`` as the compiler recorded it, ``line`` from 1 (0: made up by the compiler)."""

    file: str
    line: int

    def short(self) -> str:
        """``orig.c:63``."""
        return f"{os.path.basename(self.file)}:{self.line}"

    @property
    def in_system_header(self) -> bool:
        """Returns whether it is code of a library that was compiled into the program, as ``std::vector``."""
        return self.file.startswith(("/usr/include/", "/usr/lib/")) or "/include/c++/" in self.file


@dataclass(frozen=True, slots=True)
class InlinedAt:
    """At ``call`` the function ``function`` was inlined."""

    function: str
    call: SourceLine


_Row = tuple[int, int, int, int]  # begin, end, file number, line


class LineTable:
    """The line tables of one file."""

    def __init__(self, debug: DebugInfo) -> None:
        self._debug = debug
        self._programs: dict[int, LineProgram | None] = {}
        self._rows: dict[int, tuple[list[int], list[_Row]]] = {}

    def line(self, address: int) -> SourceLine | None:
        """File and line of the instruction at ``address`` (of the innermost inlined function)."""
        unit = self._debug.unit_at(address)
        if unit is None:
            return None
        starts, rows = self._table(unit)
        index = bisect_right(starts, address) - 1
        if index < 0 or not rows[index][0] <= address < rows[index][1]:
            return None
        name = self.file_name(unit, rows[index][2])
        return SourceLine(name, rows[index][3]) if name else None

    def inlined(self, address: int) -> tuple[InlinedAt, ...]:
        """The chain of inlined calls at ``address``, innermost first; ``()`` where nothing was inlined."""
        function = self._debug.function_at(address)
        unit = self._debug.unit_at(address)
        if function is None or unit is None:
            return ()
        calls = []
        for die in self._debug.inlined_at(function, address):
            file = self.file_name(unit, number(die, "DW_AT_call_file") or 0)
            call = SourceLine(file or "?", number(die, "DW_AT_call_line") or 0)
            calls.append(InlinedAt(text(die) or "?", call))
        return tuple(reversed(calls))

    def _program(self, unit: CompileUnit) -> LineProgram | None:
        if unit.cu_offset not in self._programs:
            try:
                info = self._debug.info
                program = info.line_program_for_CU(unit) if has_room(info, unit) else None
            except (DWARFError, ELFError, KeyError):
                program = None
            self._programs[unit.cu_offset] = program
        return self._programs[unit.cu_offset]

    def _table(self, unit: CompileUnit) -> tuple[list[int], list[_Row]]:
        if unit.cu_offset not in self._rows:
            rows: list[_Row] = []
            program = self._program(unit)
            previous = None
            for entry in program.get_entries() if program is not None else ():
                state = entry.state
                if state is None:
                    continue
                if previous is not None and state.address > previous.address:
                    rows.append((previous.address, state.address, previous.file, previous.line))
                previous = None if state.end_sequence else state
            rows.sort()
            self._rows[unit.cu_offset] = [r[0] for r in rows], rows
        return self._rows[unit.cu_offset]

    def file_name(self, unit: CompileUnit, index: int) -> str | None:
        """The path of file number ``index`` of the unit's line program, joined with its directory."""
        program = self._program(unit)
        if program is None:
            return None
        version = program.header.version
        files = program.header.file_entry or ()  # a damaged header has none
        # files and directories count from 1 up to DWARF 4 (directory 0 is the compilation's), from 0 since DWARF 5
        position = index if version >= 5 else index - 1
        if not 0 <= position < len(files):
            return None
        directories = program.header.include_directory or ()
        number_of = files[position].dir_index
        where = (number_of if version >= 5 else number_of - 1) if isinstance(number_of, int) else -1
        directory = _decode(directories[where]) if 0 <= where < len(directories) else ""
        compiled_in = text(unit.get_top_DIE(), "DW_AT_comp_dir") or ""
        return os.path.normpath(os.path.join(compiled_in, directory, _decode(files[position].name)))


def _decode(name: object) -> str:
    """A name as text; damaged tables have none, or something else."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name if isinstance(name, str) else ""
