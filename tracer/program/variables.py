"""Variables of the program and where they live: parameters at a function's entry, locals at a call, globals of a unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprOp

from layout_advise.tracer.program.dwarf import DebugInfo
from layout_advise.tracer.program.dwarf_types import size_of, strip
from layout_advise.tracer.program.elf_checks import without_damaged
from layout_advise.tracer.program.entries.attributes import follow, text
from layout_advise.tracer.program.entries.tree import children

# DWARF numbers the registers rax rdx rcx rbx rsi rdi rbp rsp (System V ABI, figure 3.36); here they count as encoded.
_ENCODED = (0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15)
RSP, RBP = 4, 5
_INTEGER_ARGUMENTS = (7, 6, 2, 1, 8, 9)  # rdi rsi rdx rcx r8 r9


@dataclass(frozen=True, slots=True)
class VariablePlace:
    """The location of a variable. ``register``: its value is in general register ``number`` (as encoded). ``memory``: it
    stands at the file address ``offset``. ``indirect``: it stands at the value of register ``number`` plus ``offset``."""

    kind: Literal["register", "memory", "indirect"]
    number: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the source with the entry of its type."""

    name: str
    role: Literal["parameter", "local", "global"]
    place: VariablePlace
    type: DIE


@without_damaged(())
def parameters(debug: DebugInfo, entry: int, *, clone: bool) -> tuple[Variable, ...]:
    """The formal parameters of the function at ``entry`` and where they are at its first instruction.

    The location lists say so in optimised code. Unoptimised code says where the parameter is *after* the prologue; then
    the calling convention decides (integers and pointers in rdi rsi rdx rcx r8 r9), unless the function is a clone, whose
    parameters the compiler may have changed. Fortran hands over addresses: the parameter itself stands where a register
    points (``indirect``). Parameters whose place is not known are left out.
    """
    function = debug.function_at(entry)
    if function is None:
        return ()
    result = []
    integers, abi = 0, not clone
    for die in (c for c in children(function) if c.tag == "DW_TAG_formal_parameter"):
        kind, name = follow(die, "DW_AT_type"), text(die)
        listed = _place(debug, debug.location(die, entry), None)
        convention = _class(kind)
        abi = abi and convention != "unknown"
        if convention == "integer":
            integers += 1
        by_abi = _INTEGER_ARGUMENTS[integers - 1] if convention == "integer" and 0 < integers <= 6 else None
        place = listed or (VariablePlace("register", by_abi) if abi and by_abi is not None else None)
        if name is not None and kind is not None and place is not None and place.kind != "memory":
            result.append(Variable(name, "parameter", place, kind))
    return tuple(result)


def _class(kind: DIE | None) -> Literal["integer", "other", "unknown"]:
    """The argument class of System V, as far as it is simple: small aggregates may go either way (``unknown``)."""
    bare = strip(kind)
    if bare is None:
        return "unknown"
    if bare.tag in ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type"):
        return "other" if size_of(bare) > 16 else "unknown"
    if bare.tag == "DW_TAG_base_type":
        encoding = bare.attributes["DW_AT_encoding"].value if "DW_AT_encoding" in bare.attributes else 0
        return "other" if encoding in (3, 4) else ("integer" if size_of(bare) <= 8 else "unknown")
    return "integer"


def _register(operations: list[DWARFExprOp]) -> int | None:
    if len(operations) == 1 and operations[0].op_name.startswith("DW_OP_reg"):
        number = operations[0].op - 0x50
        return _ENCODED[number] if 0 <= number < 16 else None
    return None


@without_damaged(())
def locals_at(debug: DebugInfo, address: int) -> tuple[Variable, ...]:
    """Parameters and locals of the function that is at ``address`` (in the middle of it: a call's return address minus 1).

    Only variables in callee-saved registers or memory are of use to the caller: the others are gone.
    """
    function = debug.function_at(address)
    if function is None:
        return ()
    base = _frame_base(debug, function, address)
    result = []
    for die in _scoped(debug, function, address):
        kind, name = follow(die, "DW_AT_type"), text(die)
        place = _place(debug, debug.location(die, address), base)
        if kind is not None and name is not None and place is not None:
            result.append(Variable(name, "local", place, kind))
    return tuple(result)


def _scoped(debug: DebugInfo, die: DIE, address: int) -> Iterator[DIE]:
    for child in children(die):
        if child.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter"):
            yield child
        elif child.tag in ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine"):
            covered = debug.ranges(child)
            if not covered or any(begin <= address < end for begin, end in covered):
                yield from _scoped(debug, child, address)


def _place(debug: DebugInfo, operations: list[DWARFExprOp], base: VariablePlace | None) -> VariablePlace | None:
    if len(operations) != 1:
        return None
    operation = operations[0]
    register = _register(operations)
    if register is not None:
        return VariablePlace("register", register)
    if operation.op_name == "DW_OP_addr":
        return VariablePlace("memory", offset=operation.args[0])
    if operation.op_name == "DW_OP_fbreg" and base is not None:
        return VariablePlace("indirect", base.number, base.offset + operation.args[0])
    if operation.op_name.startswith("DW_OP_breg") and operation.op - 0x70 < 16:
        return VariablePlace("indirect", _ENCODED[operation.op - 0x70], operation.args[0])
    return None


def _frame_base(debug: DebugInfo, function: DIE, address: int) -> VariablePlace | None:
    operations = debug.location(function, address, "DW_AT_frame_base")
    if len(operations) == 1 and operations[0].op_name == "DW_OP_call_frame_cfa":
        return _canonical_frame(debug, address)
    register = _register(operations)  # clang -O0: rbp
    return VariablePlace("indirect", register, 0) if register is not None else None


def _canonical_frame(debug: DebugInfo, address: int) -> VariablePlace | None:
    """The canonical frame address at ``address`` as a register plus an offset, from the unwind table."""
    frame = debug.unwinding.frame_at(address) if debug.unwinding is not None else None
    if frame is None or not 0 <= frame.register < 16:
        return None
    return VariablePlace("indirect", _ENCODED[frame.register], frame.offset)


@lru_cache(maxsize=1 << 12)
def globals_of(debug: DebugInfo, unit: CompileUnit, *, inside_functions: bool) -> tuple[Variable, ...]:
    """Variables of the unit with a fixed address; with ``inside_functions`` function-static ones too (parses the unit)."""
    result = []
    outer = debug.outer(unit)
    # a Fortran main program's or module procedure's arrays are static variables inside a function
    found = (d for o in outer for d in _statics(o)) if inside_functions else iter(outer)
    for die in found:
        if die.tag == "DW_TAG_variable":
            address, kind, name = debug.static_address(die), follow(die, "DW_AT_type"), text(die)
            if address is not None and kind is not None and name is not None:
                result.append(Variable(name, "global", VariablePlace("memory", offset=address), kind))
    return tuple(result)


def _statics(die: DIE) -> Iterator[DIE]:
    yield die
    if die.tag in ("DW_TAG_subprogram", "DW_TAG_lexical_block"):
        for child in children(die):
            yield from _statics(child)


def declared_in(debug: DebugInfo, unit: CompileUnit) -> dict[str, DIE]:
    """Types of the variables that the unit only declares (``extern``), by name: their address is the symbol's."""
    found = {}
    for die in debug.outer(unit):
        if die.tag == "DW_TAG_variable" and "DW_AT_location" not in die.attributes:
            kind, name = follow(die, "DW_AT_type"), text(die, "DW_AT_linkage_name") or text(die)
            if kind is not None and name is not None:
                found[name] = kind
    return found
