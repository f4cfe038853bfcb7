"""The head of a line program, before it is read: a damaged one may have more folders and files than there is room for."""

from __future__ import annotations

from typing import IO, Any

from elftools.common.exceptions import ELFParseError
from elftools.common.utils import struct_parse
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.enums import ENUM_DW_FORM
from elftools.dwarf.structs import DWARFStructs

_FORMS: dict[int, str] = {number: name for name, number in ENUM_DW_FORM.items() if isinstance(number, int)}


def _skip(structs: DWARFStructs, form: str, stream: IO[bytes]) -> None:
    parser: Any = structs.Dwarf_dw_form[form]
    struct_parse(parser, stream)


def has_room(info: DWARFInfo, unit: CompileUnit) -> bool:
    """Returns whether the folders and files that the line program of ``unit`` tells of can be in its section (DWARF 5,
    section 6.2.4.1): an entry may have no bytes at all, and to read 2**60 of these has no end."""
    place, section = unit.get_top_DIE().attributes.get("DW_AT_stmt_list"), info.debug_line_sec
    if place is None or section is None or not isinstance(place.value, int):
        return True
    structs, stream = unit.structs, section.stream
    stream.seek(place.value)
    try:
        struct_parse(structs.Dwarf_initial_length(""), stream)
        if struct_parse(structs.Dwarf_uint16(""), stream) < 5:
            return True
        stream.seek(2, 1)  # bytes of an address, and of a segment's number
        struct_parse(structs.Dwarf_offset(""), stream)
        stream.seek(5, 1)
        stream.seek(struct_parse(structs.Dwarf_uint8(""), stream) - 1, 1)
        for _ in ("folders", "files"):
            kinds = struct_parse(structs.Dwarf_uint8(""), stream)
            words: list[int] = [struct_parse(structs.Dwarf_uleb128(""), stream) for _ in range(2 * kinds)]
            count: int = struct_parse(structs.Dwarf_uleb128(""), stream)
            if count > section.size - stream.tell():
                return False
            for _ in range(count):
                for form in words[1::2]:
                    _skip(structs, _FORMS[form], stream)
    except (ELFParseError, KeyError, ValueError):
        return True  # what cannot be read is told where it is read
    return True
