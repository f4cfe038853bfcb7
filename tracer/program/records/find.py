"""Records and variables of a program by their names in the source, in all of its units."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE

from layout_advise.tracer.program.dwarf import DebugInfo
from layout_advise.tracer.program.dwarf_types import pointee, strip, type_name
from layout_advise.tracer.program.elf_checks import DEBUG_INFORMATION, damage_named
from layout_advise.tracer.program.entries.attributes import follow, number, text
from layout_advise.tracer.program.entries.tree import children
from layout_advise.tracer.program.lines import LineTable
from layout_advise.tracer.program.records.members import RECORDS, RecordLayout, record_layout
from layout_advise.tracer.program.records.mentions import units_naming
from layout_advise.tracer.program.records.type_text import plain_name, type_text

REFERENCE = ["base", "count", "at"]
_SCOPES = ("DW_TAG_namespace", "DW_TAG_module", *RECORDS)
_CODE = ("DW_TAG_subprogram", "DW_TAG_lexical_block")
_VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")


@dataclass(frozen=True, slots=True)
class NamedVariable:
    """A variable or parameter. ``function`` is the one around it, empty for globals; ``record`` the name of the record
    that it is or points to, empty for others."""

    name: str
    function: str
    type: str
    record: str


def has_types(debug: DebugInfo) -> bool:
    """Returns whether types are described at all: ``-g1`` and ``.dwo`` files leave them out. Raises BinaryError where the
    debug information is damaged."""
    with damage_named("the program", DEBUG_INFORMATION):
        return debug.present and any(
            die.tag == "DW_TAG_base_type" for unit in debug.info.iter_CUs() for die in children(unit.get_top_DIE())
        )


def find_records(debug: DebugInfo, names: Collection[str]) -> dict[str, tuple[RecordLayout, ...]]:
    """By name (with or without namespaces) the different layouts of the records called so; typedefs of records without
    a name of their own count. Records in functions are looked for where there is no other. Raises BinaryError where the
    debug information is damaged."""
    found: dict[str, dict[RecordLayout, None]] = {plain_name(name): {} for name in names}
    lines = LineTable(debug)
    with damage_named("the program", DEBUG_INFORMATION):
        for inside in (False, True):
            wanted = {name for name, layouts in found.items() if not layouts}
            for scope, die in _entries(debug, inside, wanted) if wanted else ():
                own = text(die)
                qualified = "::".join((*scope, own or ""))
                for name in wanted & {plain_name(own or ""), plain_name(qualified)}:
                    if (one := _layout(debug, lines, die, qualified)) is not None:
                        found[name][one] = None
    return {name: tuple(found[plain_name(name)]) for name in names}


def references(debug: DebugInfo) -> tuple[RecordLayout, ...]:
    """The records that stand for pointers to elements whose members lie in groups, as ``apply`` writes them in C:
    ``NAME_ref`` of a base, a count and an index. Raises BinaryError where the debug information is damaged."""
    found: dict[RecordLayout, None] = {}
    lines = LineTable(debug)
    with damage_named("the program", DEBUG_INFORMATION):
        for scope, die in _entries(debug, False, {"count"}):
            own = text(die) or ""
            named = die.tag in RECORDS and own.endswith("_ref")
            one = _layout(debug, lines, die, "::".join((*scope, own))) if named else None
            if one is not None and [member.name for member in one.members] == REFERENCE:
                found[one] = None
    return tuple(found)


def find_variables(debug: DebugInfo, names: Collection[str]) -> tuple[NamedVariable, ...]:
    """The variables and parameters with these names, in and outside functions, each kind of them once. Raises BinaryError
    where the debug information is damaged."""
    found: dict[NamedVariable, None] = {}
    wanted = set(names)
    with damage_named("the program", DEBUG_INFORMATION):
        for scope, die in _entries(debug, True, wanted) if wanted else ():
            name = text(die)
            if die.tag in _VARIABLES and name in wanted and name is not None:
                kind = follow(die, "DW_AT_type")
                bare = strip(pointee(kind)) or strip(kind)
                record = type_name(pointee(kind) or kind) if bare is not None and bare.tag in RECORDS else ""
                found[NamedVariable(name, scope[-1] if scope else "", type_text(kind), record)] = None
    return tuple(found)


def _layout(debug: DebugInfo, lines: LineTable, die: DIE, name: str) -> RecordLayout | None:
    if die.tag not in (*RECORDS, "DW_TAG_typedef"):
        return None
    declared = lines.file_name(die.cu, number(die, "DW_AT_decl_file") or 0) if isinstance(die.cu, CompileUnit) else None
    return record_layout(die, name, os.path.basename(declared or ""))


def _entries(debug: DebugInfo, inside: bool, names: Collection[str]) -> Iterator[tuple[tuple[str, ...], DIE]]:
    """Entries of units that name one of ``names``, with what is around them: those outside functions, or (``inside``)
    all."""
    for unit in units_naming(debug, names):
        yield from _below(unit.get_top_DIE(), (), inside)
    if debug.present and debug.info.debug_types_sec is not None:  # DWARF 4 with -fdebug-types-section
        for types in debug.info.iter_TUs():
            yield from _below(types.get_top_DIE(), (), inside)


def _below(die: DIE, scope: tuple[str, ...], inside: bool) -> Iterator[tuple[tuple[str, ...], DIE]]:
    for child in children(die):
        yield scope, child
        if child.tag in _SCOPES or (inside and child.tag in _CODE):
            name = text(child)
            yield from _below(child, (*scope, name) if name else scope, inside)
