"""The units of a program that name something at all, found by their bytes: parsing a unit takes a thousand times as long."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from elftools.dwarf.compileunit import CompileUnit

from layout_advise.tracer.program.dwarf import DebugInfo

MOST_PLACES = 10_000
"""A name that ends so many strings of the table is looked for in all units."""


def units_naming(debug: DebugInfo, names: Collection[str]) -> Iterator[CompileUnit]:
    """The units in which one of the names may occur; all those that are sure not to have one are left out.

    A name stands in the unit itself, or in the table of strings, whose offset (also into the end of a longer string) stands
    in the unit. Units that number their strings (``DW_FORM_strx``) cannot be told.
    """
    if not debug.present:
        return
    endings = [_ending(name) for name in names]
    section = debug.info.debug_str_sec
    table = _bytes(section.stream, 0, section.size) if section is not None else b""
    places = [found.start() for ending in endings for found in ending.finditer(table)]
    marks = [place.to_bytes(4, "little") for place in places] if len(places) <= MOST_PLACES else None
    for unit in debug.info.iter_CUs():
        numbered = "DW_AT_str_offsets_base" in unit.get_top_DIE().attributes
        if numbered or marks is None or unit.structs.dwarf_format != 32:
            yield unit
            continue
        assert debug.info.debug_info_sec is not None
        data = _bytes(debug.info.debug_info_sec.stream, unit.cu_offset, unit.size)
        if any(mark in data for mark in marks) or any(ending.search(data) for ending in endings):
            yield unit


def _ending(name: str) -> re.Pattern[bytes]:
    """The last part of a name as the end of a string, however a compiler writes it (``box<double, 4UL> >``)."""
    last = re.sub(r"^.*::(?![^<]*>)", "", name)
    text = re.escape(re.sub(r"\s*([<>,])\s*", r"\1", last)).replace(r"\ ", " ")
    text = re.sub(r"(\d)(?=,|>)", r"\1[uUlL]*", text)
    return re.compile(re.sub(r"([<>,])", r" ?\1 ?", text).encode() + rb"\x00")


def _bytes(stream: object, start: int, length: int) -> bytes:
    stream.seek(start)  # type: ignore[attr-defined]
    data = stream.read(length)  # type: ignore[attr-defined]
    assert isinstance(data, bytes)
    return data
