"""Lazy access to DWARF: only the compile units that are asked for are parsed, so that a 50 MB debug file stays quick.

Addresses are those of the file. Debugging entries (DIEs) of pyelftools are handed around as ``DIE``; nothing outside
``layout_advise.tracer`` sees them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprOp, DWARFExprParser
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationParser
from elftools.dwarf.ranges import BaseAddressEntry as RangeBase
from elftools.dwarf.ranges import RangeEntry
from elftools.elf.elffile import ELFFile

from layout_advise.tracer.program.entries.attributes import chain, text
from layout_advise.tracer.program.entries.tree import children
from layout_advise.tracer.program.unwind import UnwindTable

_SCOPES = ("DW_TAG_namespace", "DW_TAG_module", "DW_TAG_common_block")
_SPLIT = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")


class DebugInfo:
    """The debugging information of one file; see the module's text. Empty where the file has none."""

    def __init__(self, elf: ELFFile) -> None:
        self._elf = elf
        self._walked: dict[int, tuple[DIE, ...]] = {}
        self._inside: dict[int, tuple[DIE, ...]] = {}
        self._ranges: dict[tuple[bool, int], tuple[tuple[int, int], ...]] = {}

    @cached_property
    def unwinding(self) -> UnwindTable | None:
        """The file's unwind table; it is there without debugging information, too."""
        return UnwindTable.of(self._elf)

    @cached_property
    def _info(self) -> DWARFInfo | None:
        if not self._elf.has_dwarf_info(strict=True):
            return None
        try:
            return self._elf.get_dwarf_info(follow_links=False)
        except (ELFError, DWARFError, OSError, MemoryError):  # a damaged file may claim any size for what is compressed
            return None

    @property
    def present(self) -> bool:
        """Returns whether the file has ``.debug_info``."""
        return self._info is not None and self._info.has_debug_info

    @property
    def info(self) -> DWARFInfo:
        """pyelftools' object; only to be used where :attr:`present`."""
        assert self._info is not None
        return self._info

    def unit_at(self, address: int) -> CompileUnit | None:
        """The compile unit that holds the code at ``address``."""
        if not self.present:
            return None
        starts, entries = self._aranges
        index = bisect_right(starts, address) - 1
        if index >= 0 and entries[index][0] <= address < entries[index][1]:
            return self.info.get_CU_at(entries[index][2])
        # clang writes no .debug_aranges, and a file may mix both compilers
        starts, spans = self._unit_ranges
        for begin, end, offset in reversed(spans[: bisect_right(starts, address)][-64:]):
            if begin <= address < end:
                return self.info.get_CU_at(offset)
        return None

    def unit_ranges(self, address: int) -> tuple[tuple[int, int], ...]:
        """Code ranges (begin, end) of the compile unit that holds ``address``; ``()`` where that is not known."""
        unit = self.unit_at(address)
        return self.ranges(unit.get_top_DIE()) if unit is not None else ()

    @cached_property
    def _aranges(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        try:
            table = self.info.get_aranges()
        except (ELFError, DWARFError, NotImplementedError):
            table = None
        rows = [] if table is None else [(e.begin_addr, e.begin_addr + e.length, e.info_offset) for e in table.entries]
        return [r[0] for r in rows], rows

    @cached_property
    def _unit_ranges(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        rows = [(b, e, cu.cu_offset) for cu in self.info.iter_CUs() for b, e in self.ranges(cu.get_top_DIE())]
        rows.sort()
        return [r[0] for r in rows], rows

    def ranges(self, die: DIE) -> tuple[tuple[int, int], ...]:
        """Code ranges (begin, end) of a unit, a function or a block; ``()`` where it has no code."""
        key = isinstance(die.cu, CompileUnit), die.offset  # units of types stand in a section of their own
        if key not in self._ranges:
            self._ranges[key] = self._parsed_ranges(die)
        return self._ranges[key]

    def _parsed_ranges(self, die: DIE) -> tuple[tuple[int, int], ...]:
        attributes = die.attributes
        if "DW_AT_high_pc" in attributes and "DW_AT_low_pc" in attributes:
            low = int(attributes["DW_AT_low_pc"].value)
            high = attributes["DW_AT_high_pc"]
            # an address in DWARF 2 and 3, a length since
            end = int(high.value) if high.form.startswith("DW_FORM_addr") else low + int(high.value)
            return ((low, end),) if end > low else ()
        if "DW_AT_ranges" not in attributes or not isinstance(die.cu, CompileUnit):
            return ()
        lists = self.info.range_lists()
        if lists is None:
            return ()
        try:
            rows = lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, die.cu)
        except (DWARFError, ELFError, KeyError):
            return ()
        base = self._base(die)
        result = []
        for row in rows:
            if isinstance(row, RangeBase):
                base = row.base_address
            elif isinstance(row, RangeEntry):
                shift = 0 if row.is_absolute else base
                if row.end_offset > row.begin_offset:
                    result.append((row.begin_offset + shift, row.end_offset + shift))
        return tuple(result)

    @staticmethod
    def _base(die: DIE) -> int:
        top = die.cu.get_top_DIE().attributes
        return int(top["DW_AT_low_pc"].value) if "DW_AT_low_pc" in top else 0

    def outer(self, unit: CompileUnit) -> tuple[DIE, ...]:
        """The entries of a unit outside functions and types (namespaces and Fortran modules opened)."""
        if unit.cu_offset not in self._walked:
            self._walked[unit.cu_offset] = tuple(self._open(unit.get_top_DIE()))
        return self._walked[unit.cu_offset]

    def _open(self, die: DIE) -> Iterator[DIE]:
        for child in children(die):
            yield child
            if child.tag in _SCOPES:
                yield from self._open(child)

    def function_at(self, address: int) -> DIE | None:
        """The ``DW_TAG_subprogram`` whose code holds ``address``: the innermost of nested Fortran procedures, and of the
        bodies of parallel regions, which gcc puts into the function of the source though their code lies beside its."""
        unit = self.unit_at(address)
        found: DIE | None = None
        level = self.outer(unit) if unit is not None else ()
        while True:
            inner = next((d for d in level if d.tag == "DW_TAG_subprogram" and self._covers(d, address)), None)
            if inner is None:
                break
            found, level = inner, tuple(children(inner))
        if found is None and unit is not None:
            found = next((d for d in self._nested(unit) if self._covers(d, address)), None)
        return found

    def _nested(self, unit: CompileUnit) -> tuple[DIE, ...]:
        """The functions of a unit that stand in other ones."""
        if unit.cu_offset not in self._inside:
            self._inside[unit.cu_offset] = tuple(d for one in self.outer(unit) for d in _functions_in(one))
        return self._inside[unit.cu_offset]

    def _covers(self, die: DIE, address: int) -> bool:
        return any(begin <= address < end for begin, end in self.ranges(die))

    def inlined_at(self, function: DIE, address: int) -> Iterator[DIE]:
        """The ``DW_TAG_inlined_subroutine`` entries that hold ``address``, outermost first."""
        for child in children(function):
            if child.tag in ("DW_TAG_inlined_subroutine", "DW_TAG_lexical_block") and self._covers(child, address):
                if child.tag == "DW_TAG_inlined_subroutine":
                    yield child
                yield from self.inlined_at(child, address)
                return

    def producer_at(self, address: int) -> str | None:
        """``DW_AT_producer`` of the unit that holds the code at ``address``."""
        unit = self.unit_at(address)
        return text(unit.get_top_DIE(), "DW_AT_producer") if unit is not None else None

    def split_unit(self, unit: CompileUnit) -> bool:
        """Returns whether the unit's information stands in a separate ``.dwo`` file (``-gsplit-dwarf``)."""
        return any(name in unit.get_top_DIE().attributes for name in _SPLIT)

    def location(self, die: DIE, address: int | None = None, name: str = "DW_AT_location") -> list[DWARFExprOp]:
        """The location expression of a variable that is valid at the code address ``address``, parsed; ``[]`` if none.

        ``address`` may be ``None`` for variables that live in one place.
        """
        attribute = next((h.attributes[name] for h in chain(die) if name in h.attributes), None)
        if attribute is None or not self.present:
            return []
        parser = LocationParser(self.info.location_lists())
        version = die.cu["version"]
        if not parser.attribute_has_location(attribute, version):
            return []
        try:
            found = parser.parse_from_attribute(attribute, version, die)
        except (DWARFError, ELFError, KeyError, AssertionError):
            return []
        expression = self._valid(found, die, address) if isinstance(found, list) else found.loc_expr
        return DWARFExprParser(die.cu.structs).parse_expr(expression) if expression else []

    def _valid(self, rows: Sequence[object], die: DIE, address: int | None) -> list[int]:
        base = self._base(die)
        for row in rows:
            if isinstance(row, BaseAddressEntry):
                base = row.base_address
            elif isinstance(row, LocationEntry) and address is not None:
                shift = 0 if row.is_absolute else base
                if row.begin_offset + shift <= address < row.end_offset + shift:
                    return row.loc_expr
        return []

    def static_address(self, die: DIE) -> int | None:
        """The address of a variable that lives in one place for the whole run, else ``None``."""
        operations = self.location(die)
        if len(operations) != 1:
            return None
        operation = operations[0]
        if operation.op_name == "DW_OP_addr":
            return int(operation.args[0])
        if operation.op_name in ("DW_OP_addrx", "DW_OP_GNU_addr_index"):  # clang, DWARF 5
            return int(self.info.get_addr(die.cu, operation.args[0]))
        return None


def _functions_in(die: DIE) -> Iterator[DIE]:
    """The functions that stand in one, at any depth."""
    for child in children(die) if die.tag in ("DW_TAG_subprogram", "DW_TAG_lexical_block") else ():
        if child.tag == "DW_TAG_subprogram":
            yield child
        yield from _functions_in(child)
