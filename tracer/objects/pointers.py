"""The pointers of the source at the entry of the hotspot and their targets: they give heap blocks their names and types.

Looked at are the hotspot's parameters (of a parallel region what its body is handed), the globals of its unit and its
caller's, the caller's live locals, and one level of indirection: the pointer members of what those point to (``s->x``; the
start pointer of a ``std::vector``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from elftools.dwarf.die import DIE

from layout_advise.errors import LayoutAdviseError
from layout_advise.tracer.objects.outlined_arguments import handed_over
from layout_advise.tracer.program.dwarf_types import atoms, descriptors, is_descriptor, pointee, strip
from layout_advise.tracer.program.modules import Module, Modules
from layout_advise.tracer.program.variables import (
    RBP,
    RSP,
    Variable,
    VariablePlace,
    declared_in,
    globals_of,
    locals_at,
    parameters,
)
from layout_advise.tracer.trace.trace import Registers

Read = Callable[[int, int], bytes]

_CALLEE_SAVED = (3, RBP, 12, 13, 14, 15)
_POINTERS = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
_AGGREGATES = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_array_type")
_UNIT_LIMIT = 1 << 20
"""Units larger than this (bytes of .debug_info) are not searched for variables inside functions."""
_OTHER_UNITS = 1 << 20
"""So much of the other units is searched for globals."""
_POINTER_TABLE = 1 << 16
"""So many pointers of a table of pointers (``double **rows``) are followed."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """``name`` held the address ``value``; ``target`` is the entry of the type pointed to (``None``: void)."""

    name: str
    value: int
    target: DIE | None
    level: int


@dataclass(frozen=True, slots=True)
class Held:
    """A variable that stands in memory at run-time address ``address``."""

    name: str
    address: int
    type: DIE


@dataclass(frozen=True, slots=True)
class _Inner:
    """A pointer in a variable: its place there, what it points to, and whether it is one of gfortran's descriptors."""

    name: str
    offset: int
    target: DIE | None
    described: bool


@dataclass(frozen=True, slots=True)
class EntryState:
    """The stopped program at the entry of its hotspot. ``block_end`` gives the end of the heap block around an address."""

    registers: Registers
    modules: Modules
    read: Read
    block_end: Callable[[int], int | None]

    def word(self, address: int) -> int | None:
        """The 8 bytes at ``address``; ``None`` where there is no readable memory."""
        data = self.bytes(address, 8)
        return int.from_bytes(data, "little") if len(data) == 8 else None

    def bytes(self, address: int, size: int) -> bytes:
        """Memory of the program; empty where it cannot be read."""
        mapping = self.modules.mapping_at(address)
        if mapping is None or "r" not in mapping.permissions or mapping.path in ("[vvar]", "[vsyscall]"):
            return b""
        try:
            return self.read(address, min(size, mapping.end - address))
        except (LayoutAdviseError, OSError):
            return b""


def variables(entry: EntryState) -> tuple[list[Pointer], list[Held]]:
    """Pointers held in registers, and variables that stand in memory, those nearest to the hotspot first."""
    pointers: list[Pointer] = []
    held: list[Held] = []
    here = entry.modules.module_at(entry.registers.rip)
    function = here.binary.function_at(entry.registers.rip - here.load_base) if here is not None else None
    if here is not None and function is not None and entry.registers.rip != here.load_base + function.start:
        for variable in locals_at(here.binary.debug, entry.registers.rip - here.load_base):  # a loop in the function
            _place(entry, here, variable, pointers, held, inside=True)
        held += _globals([(here, entry.registers.rip - here.load_base)])
        return pointers, held
    if here is not None and function is not None:
        for variable in parameters(here.binary.debug, function.start, clone=function.clone is not None):
            value = entry.registers.gpr[variable.place.number]
            if variable.place.kind == "indirect":  # Fortran's, of which the register holds the address
                address = value + variable.place.offset
                held.append(Held(variable.name, address, variable.type))
                if _names_block(variable.type):
                    pointers.append(Pointer(variable.name, address, variable.type, 0))
            elif is_pointer(variable.type):
                pointers.append(Pointer(variable.name, value, pointee(variable.type), 0))
    for variable, value in handed_over(entry.registers, entry.modules):
        if variable.place.kind == "indirect":
            held.append(Held(variable.name, value + variable.place.offset, variable.type))
        elif is_pointer(variable.type):
            pointers.append(Pointer(variable.name, value, pointee(variable.type), 0))
    returns = entry.word(entry.registers.gpr[RSP])
    caller = entry.modules.module_at(returns) if returns is not None else None
    if caller is not None and returns is not None:
        for variable in locals_at(caller.binary.debug, returns - 1 - caller.load_base):
            _place(entry, caller, variable, pointers, held)
    sites = [(here, entry.registers.rip)] + ([(caller, returns)] if returns is not None else [])
    held += _globals([(m, pc - m.load_base) for m, pc in sites if m is not None])
    return pointers, held


def _place(
    entry: EntryState, caller: Module, variable: Variable, pointers: list[Pointer], held: list[Held], *, inside: bool = False
) -> None:
    """The address of a local of the hotspot's caller; with ``inside`` of the function that the hotspot is a loop in."""
    place: VariablePlace = variable.place
    gpr = entry.registers.gpr
    if place.kind == "register":
        # at the hotspot's entry the callee-saved registers still hold the caller's values
        if (inside or place.number in _CALLEE_SAVED) and is_pointer(variable.type):
            pointers.append(Pointer(variable.name, gpr[place.number], pointee(variable.type), 0))
    elif place.kind == "indirect" and (inside or place.number in (RSP, *_CALLEE_SAVED)):
        popped = 8 if place.number == RSP and not inside else 0  # the return address is popped in the caller
        start = gpr[place.number] + popped
        held.append(Held(variable.name, start + place.offset, variable.type))
    elif place.kind == "memory":
        held.append(Held(variable.name, caller.load_base + place.offset, variable.type))


def _globals(sites: list[tuple[Module, int]]) -> Iterator[Held]:
    searched: set[tuple[str, int]] = set()
    for module, address in sites:
        debug = module.binary.debug
        unit = debug.unit_at(address)
        if unit is None or (str(module.binary.path), unit.cu_offset) in searched:
            continue
        searched.add((str(module.binary.path), unit.cu_offset))
        for variable in globals_of(debug, unit, inside_functions=unit.size < _UNIT_LIMIT):
            yield Held(variable.name, module.load_base + variable.place.offset, variable.type)
        symbols = {v.name: v.address for v in module.binary.variables}
        for name, kind in declared_in(debug, unit).items():
            if name in symbols:
                yield Held(name, module.load_base + symbols[name], kind)
    for module in {id(m): m for m, _ in sites}.values():
        yield from _other_units(module, searched)


def _other_units(module: Module, searched: set[tuple[str, int]]) -> Iterator[Held]:
    budget = _OTHER_UNITS
    for unit in module.binary.debug.info.iter_CUs() if module.binary.debug.present else ():
        if budget <= 0:
            return
        key = (str(module.binary.path), unit.cu_offset)
        if key in searched or unit.size > budget:
            continue
        searched.add(key)
        budget -= unit.size
        for variable in globals_of(module.binary.debug, unit, inside_functions=False):
            yield Held(variable.name, module.load_base + variable.place.offset, variable.type)


def is_pointer(die: DIE | None) -> bool:
    """Returns whether the type is a pointer or a reference."""
    bare = strip(die)
    return bare is not None and bare.tag in _POINTERS


def _names_block(die: DIE) -> bool:
    """Returns whether what holds a variable of this type is named after it: a lone scalar may be any part of anything."""
    bare = strip(die)
    return bare is not None and bare.tag in _AGGREGATES and not is_descriptor(bare)


def all_pointers(entry: EntryState, direct: list[Pointer], held: list[Held]) -> list[Pointer]:
    """The direct pointers, those in held variables, and one level further on."""
    found = list(direct)
    for variable in held:
        found += _inside(entry, variable.type, variable.address, variable.name, 0)
    for pointer in list(found):
        if is_pointer(pointer.target):
            found += _table(entry, pointer)
        elif pointer.target is not None:
            members = list(_inside(entry, pointer.target, pointer.value, f"{pointer.name}->", 1))
            found += members
            for member in members:
                found += _table(entry, member) if is_pointer(member.target) else ()
    return [p for p in found if p.value]


def _inside(entry: EntryState, kind: DIE, address: int, name: str, level: int) -> Iterator[Pointer]:
    whole = name.removesuffix("->")
    for one in _pointers_in(kind):
        value = entry.word(address + one.offset)
        if not value:
            continue
        if one.described:
            yield Pointer(f"{whole}%{one.name}" if one.name else whole, value, one.target, level)
        else:
            yield Pointer(_source_name(name, one.name), value, one.target, level)


@lru_cache(maxsize=1 << 14)
def _pointers_in(kind: DIE) -> tuple[_Inner, ...]:
    """Kept from one call that is looked at to the next; and a table of pointers may lead to thousands of records of one
    type."""
    described = [_Inner(member, offset, pointee(array), True) for member, offset, array in descriptors(kind)]
    plain = (atom for atom in atoms(kind) if is_pointer(atom.die))
    return (*described, *(_Inner(atom.member.name, atom.member.offset, pointee(atom.die), False) for atom in plain))


def _source_name(name: str, member: str) -> str:
    """``v`` for ``v._M_impl._M_start``: what a library calls its members is not the user's name for the data."""
    user = re.sub(r"\.?(_M_|__begin_|__ptr_|__end_).*$", "", member)
    if name.endswith("->"):
        return name + user if user else name.removesuffix("->")
    return name + user if not user or user.startswith("[") else f"{name}.{user}"


def _table(entry: EntryState, pointer: Pointer) -> Iterator[Pointer]:
    end = entry.block_end(pointer.value)
    count = min((end - pointer.value) // 8, _POINTER_TABLE) if end is not None else 1
    data = entry.bytes(pointer.value, 8 * count)
    for index in range(len(data) // 8):
        value = int.from_bytes(data[8 * index : 8 * index + 8], "little")
        if value:
            yield Pointer(f"{pointer.name}[{index}]", value, pointee(pointer.target), 1)
