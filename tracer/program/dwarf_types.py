"""A type as DWARF describes it, flattened to atomic members (:class:`layout_advise.layoutalgebra.derive.declared.Declared`).

Names are those of the source: ``struct f1 {...} f1_neuron`` reads ``f1_neuron`` through its typedef, a scalar reads as its
base type whatever typedefs stand before it. A complex number is two members, ``re`` and ``im``: code accesses them singly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from elftools.dwarf.die import DIE

from layout_advise.layoutalgebra.derive.declared import Declared, Member
from layout_advise.tracer.program.entries.attributes import chain, follow, member_offset, number, text
from layout_advise.tracer.program.entries.tree import children

_QUALIFIERS = ("DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type")
_POINTERS = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
_RECORDS = ("DW_TAG_structure_type", "DW_TAG_class_type")
_COLUMN_MAJOR_LANGUAGES = (0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D)  # DW_LANG_Fortran77, 90, 95, 03, 08, 18
_COMPLEX = 3  # DW_ATE_complex_float
_FLOAT = 4  # DW_ATE_float
_INTEGERS = (2, 5, 6, 7, 8, 0x10)  # DW_ATE_boolean, signed, signed_char, unsigned, unsigned_char, UTF
ResultKind = Literal["any", "int", "float", "none"]

MEMBER_LIMIT = 1024
"""An array with more elements inside an element stays one member of type ``double[1000000]``: it is no field."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A :class:`Member` together with the entry of its type (for following pointers)."""

    member: Member
    die: DIE


def strip(die: DIE | None) -> DIE | None:
    """The type without qualifiers and typedefs."""
    for _ in range(64):
        if die is None or die.tag not in (*_QUALIFIERS, "DW_TAG_typedef"):
            return die
        die = follow(die, "DW_AT_type")
    return None


def type_name(die: DIE | None) -> str:
    """The type's name in the source: ``double``, ``node *``, ``f1_neuron``; ``void`` where there is none."""
    if die is None:
        return "void"
    if die.tag in _QUALIFIERS:
        return type_name(follow(die, "DW_AT_type"))
    if die.tag == "DW_TAG_typedef":
        bare = strip(die)
        own = bare is not None and bare.tag in (
            *_RECORDS,
            "DW_TAG_union_type",
            "DW_TAG_enumeration_type",
            "DW_TAG_subroutine_type",
        )
        return text(die) or "?" if own else type_name(bare)
    if die.tag in _POINTERS:
        target = type_name(follow(die, "DW_AT_type"))
        mark = "*" if die.tag == "DW_TAG_pointer_type" else "&"
        return f"{target}{mark}" if target.endswith(("*", "&")) else f"{target} {mark}"
    if die.tag == "DW_TAG_array_type":
        sizes = "".join(f"[{n or ''}]" for n in array_dims(die))
        return type_name(follow(die, "DW_AT_type")) + sizes
    if die.tag == "DW_TAG_subroutine_type":
        return "function"
    return text(die) or "(anonymous)"


def pointee(die: DIE | None) -> DIE | None:
    """The type that a pointer, a reference, or a Fortran array descriptor points to; ``None`` otherwise (and for void)."""
    bare = strip(die)
    if bare is None:
        return None
    if bare.tag in _POINTERS:
        return follow(bare, "DW_AT_type")
    # gfortran: the variable of an allocatable or assumed-shape array is a descriptor that starts with the data's address
    return follow(bare, "DW_AT_type") if is_descriptor(bare) else None


def is_descriptor(die: DIE | None) -> bool:
    """Returns whether the type is a Fortran array that is reached through a descriptor (allocatable, pointer, assumed
    shape)."""
    bare = strip(die)
    return bare is not None and bare.tag == "DW_TAG_array_type" and "DW_AT_data_location" in bare.attributes


def descriptors(die: DIE | None, name: str = "", offset: int = 0) -> Iterator[tuple[str, int, DIE]]:
    """The array descriptors in a variable of this type: name (``%`` between components), offset, entry of the array's type.

    They are no atomic members: DWARF tells where an array's data, bounds and strides stand, not how large a descriptor is.
    """
    bare = strip(die)
    if bare is not None and is_descriptor(bare):
        yield name, offset, bare
    elif bare is not None and bare.tag in _RECORDS:
        for child in children(bare):
            place = member_offset(child)
            if child.tag == "DW_TAG_member" and place is not None:
                below = f"{name}%{text(child)}" if name else text(child) or ""
                yield from descriptors(follow(child, "DW_AT_type"), below, offset + place)


def array_dims(die: DIE) -> tuple[int, ...]:
    """Declared dimensions, outermost (slowest) first; 0 for one that is not constant."""
    dims = []
    for child in children(die):
        if child.tag != "DW_TAG_subrange_type":
            continue
        count, upper = number(child, "DW_AT_count"), number(child, "DW_AT_upper_bound")
        if count is None and upper is not None:
            lower = number(child, "DW_AT_lower_bound")
            count = upper - (lower if lower is not None else int(_column_major(die))) + 1
        # a flexible array has no bound, or, from some compilers, -1
        dims.append(count if count is not None and 0 < count < 1 << 62 else 0)
    return tuple(reversed(dims)) if _column_major(die) else tuple(dims)


def _column_major(die: DIE) -> bool:
    return number(die.cu.get_top_DIE(), "DW_AT_language") in _COLUMN_MAJOR_LANGUAGES


def size_of(die: DIE | None) -> int:
    """Size in bytes; 0 where it is unknown (incomplete types, arrays of unknown length, void)."""
    bare = strip(die)
    if bare is None:
        return 0
    size = number(bare, "DW_AT_byte_size")
    if size is not None:
        return size
    if bare.tag == "DW_TAG_array_type":
        return prod(array_dims(bare)) * size_of(follow(bare, "DW_AT_type"))
    return 8 if bare.tag in _POINTERS else 0


def result_kind(function: DIE) -> ResultKind:
    """The place where a function of this entry leaves its result: "none" for void; "any" where more than one register may
    hold it."""
    bare = strip(follow(function, "DW_AT_type"))
    if bare is None:
        return "none" if not any("DW_AT_type" in holder.attributes for holder in chain(function)) else "any"
    if bare.tag in _POINTERS or bare.tag == "DW_TAG_enumeration_type":
        return "int"
    if bare.tag != "DW_TAG_base_type" or size_of(bare) > 8:
        return "any"
    encoding = number(bare, "DW_AT_encoding")
    return "float" if encoding == _FLOAT else "int" if encoding in _INTEGERS else "any"


def describe(die: DIE | None) -> Declared | None:
    """The type of a variable or of what a pointer points to; ``None`` where it is void or incomplete."""
    dims: tuple[int, ...] = ()
    element = die
    bare = strip(die)
    while bare is not None and bare.tag == "DW_TAG_array_type":
        dims += array_dims(bare)
        element = follow(bare, "DW_AT_type")
        bare = strip(element)
    size = size_of(element)
    if size <= 0 or bare is None or bare.tag == "DW_TAG_subroutine_type":
        return None
    members = tuple(atom.member for atom in atoms(element))
    return Declared(type_name(element), size * prod(d for d in dims if d), members, dims, size)


def arrays_in(die: DIE | None, least: int, name: str = "", offset: int = 0) -> Iterator[tuple[str, int, DIE]]:
    """The arrays of at least so many bytes in a record, and in records in it: name, offset, entry of the array's type."""
    bare = strip(die)
    if bare is None or bare.tag not in _RECORDS:
        return
    for child in children(bare):
        place = member_offset(child)
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or place is None or "DW_AT_bit_size" in child.attributes:
            continue
        kind = follow(child, "DW_AT_type")
        below = name if child.tag == "DW_TAG_inheritance" else _join(name, text(child))
        own = strip(kind)
        if own is None or own.tag != "DW_TAG_array_type":
            yield from arrays_in(own, least, below, offset + place)
        elif not is_descriptor(own) and size_of(own) >= least:
            yield below.removesuffix("._M_elems"), offset + place, own  # of std::array


def atoms(die: DIE | None) -> tuple[Atom, ...]:
    """The atomic members of an element, ascending by offset and disjoint."""
    found = sorted(_atoms(die, "", 0), key=lambda a: (a.member.offset, -a.member.bytes))
    result: list[Atom] = []
    for atom in found:  # an empty base class or [[no_unique_address]] may overlap its neighbour
        if not result or atom.member.offset >= result[-1].member.offset + result[-1].member.bytes:
            result.append(atom)
    return tuple(result)


def _atoms(die: DIE | None, name: str, offset: int, union: bool = False) -> list[Atom]:
    bare = strip(die)
    size = size_of(die)
    if bare is None or size <= 0:
        return []
    if bare.tag in _RECORDS:
        return _record(bare, name, offset, union)
    if bare.tag == "DW_TAG_union_type":
        variants = [(follow(c, "DW_AT_type"), _join(name, text(c))) for c in children(bare) if c.tag == "DW_TAG_member"]
        most = max((size_of(kind) for kind, _ in variants), default=0)
        widest = [_atoms(kind, path, offset, True) for kind, path in variants if size_of(kind) == most]
        return min(widest, key=len, default=[])  # of equally wide ones not the bytes that another one is made of
    if bare.tag == "DW_TAG_array_type" and not is_descriptor(bare):
        return _array(bare, name, offset, union)
    if number(bare, "DW_AT_encoding") == _COMPLEX:
        part = f"{text(bare) or ''}".removeprefix("complex ") or "real"
        halves = ((_join(name, "re"), offset), (_join(name, "im"), offset + size // 2))
        return [Atom(Member(n, o, size // 2, part, union), bare) for n, o in halves]
    assert die is not None
    return [Atom(Member(name, offset, size, type_name(die), union), die)]


def _array(bare: DIE, name: str, offset: int, union: bool) -> list[Atom]:
    element = follow(bare, "DW_AT_type")
    dims, size = array_dims(bare), size_of(element)
    count = prod(dims)
    if count > MEMBER_LIMIT:
        return [Atom(Member(name, offset, count * size, type_name(bare), union), bare)]
    result: list[Atom] = []
    inner = _atoms(element, "", 0, union) if dims and count else []
    for flat in range(count if dims else 0):
        index, rest = "", flat
        for dim in reversed(dims):
            index, rest = f"[{rest % dim}]{index}", rest // dim
        for atom in inner:
            one = atom.member
            path = f"{name}{index}{one.name}" if one.name.startswith("[") else _join(name + index, one.name)
            result.append(Atom(replace(one, name=path, offset=offset + flat * size + one.offset), atom.die))
    return result


def _join(name: str, member: str | None) -> str:
    return f"{name}.{member}" if name and member else member or name


def _record(bare: DIE, name: str, offset: int, union: bool) -> list[Atom]:
    result: list[Atom] = []
    bits: list[tuple[int, int, Atom]] = []
    for child in children(bare):
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or "DW_AT_external" in child.attributes:
            continue
        kind = follow(child, "DW_AT_type")
        if "DW_AT_bit_size" in child.attributes:
            bits.append(_bit_field(child, kind, name, offset, union))
            continue
        place = member_offset(child)
        if place is None and "DW_AT_data_member_location" in child.attributes:
            continue  # a virtual base class: where it lies is known at run time only
        below = name if child.tag == "DW_TAG_inheritance" else _join(name, text(child))
        result += _atoms(kind, below, offset + (place or 0), union)
    return result + _storage_units(bits, result)


def _bit_field(child: DIE, kind: DIE | None, name: str, offset: int, union: bool) -> tuple[int, int, Atom]:
    """First and last bit of a bit field, and its storage unit as an atom."""
    unit = number(child, "DW_AT_byte_size") or size_of(kind)
    width = number(child, "DW_AT_bit_size") or 1
    first = number(child, "DW_AT_data_bit_offset")
    if first is None:  # DWARF 2 and 3 count from the storage unit's most significant bit
        place = member_offset(child) or 0
        first = 8 * place + 8 * unit - (number(child, "DW_AT_bit_offset") or 0) - width
    start = first // (8 * unit) * unit
    member = Member(_join(name, text(child)), offset + start, unit, type_name(kind), union)
    assert kind is not None
    return 8 * offset + first, 8 * offset + first + width - 1, Atom(member, kind)


def _storage_units(bits: list[tuple[int, int, Atom]], others: list[Atom]) -> list[Atom]:
    units: list[Atom] = []
    taken = [(a.member.offset, a.member.offset + a.member.bytes) for a in others]
    for first, last, atom in sorted(bits, key=lambda b: b[0]):
        begin, end = atom.member.offset, atom.member.offset + atom.member.bytes
        if any(low < end and begin < high for low, high in taken):
            begin, end = first // 8, last // 8 + 1  # shares its unit with plain members: only its own bytes
        if units and begin < units[-1].member.offset + units[-1].member.bytes:
            before = units[-1].member
            size = max(end, before.offset + before.bytes) - before.offset
            units[-1] = replace(units[-1], member=replace(before, name=f"{before.name}|{atom.member.name}", bytes=size))
        else:
            units.append(Atom(replace(atom.member, offset=begin, bytes=end - begin), atom.die))
    return units
