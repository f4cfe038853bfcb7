"""The attributes of an entry of debugging information (DIE), and the entries that these refer to."""

from __future__ import annotations

from collections.abc import Iterator

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.die import DIE

_PLUS_UCONST = 0x23  # DW_OP_plus_uconst


def follow(die: DIE, name: str) -> DIE | None:
    """The entry that attribute ``name`` refers to, looked for in the abstract origin and the specification as well."""
    for holder in chain(die):
        if name in holder.attributes:
            try:
                return holder.get_DIE_from_attribute(name)
            except (DWARFError, ELFError, NotImplementedError, KeyError):
                return None
    return None


def chain(die: DIE) -> Iterator[DIE]:
    """The entry, then what it is a concrete copy of (abstract origin) or the definition of (specification)."""
    seen = 0
    current: DIE | None = die
    while current is not None and seen < 8:
        yield current
        seen += 1
        link = next((a for a in ("DW_AT_abstract_origin", "DW_AT_specification") if a in current.attributes), None)
        try:
            current = current.get_DIE_from_attribute(link) if link else None
        except (DWARFError, ELFError, NotImplementedError, KeyError):
            return


def text(die: DIE, name: str = "DW_AT_name") -> str | None:
    """A string attribute, looked for along :func:`chain`."""
    for holder in chain(die):
        if name in holder.attributes:
            value = holder.attributes[name].value
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else None
    return None


def number(die: DIE, name: str) -> int | None:
    """A constant attribute, looked for along :func:`chain`; ``None`` where it is an expression or absent."""
    for holder in chain(die):
        if name in holder.attributes:
            attribute = holder.attributes[name]
            constant = isinstance(attribute.value, int) and not attribute.form.startswith(("DW_FORM_ref", "DW_FORM_sec"))
            return int(attribute.value) if constant else None
    return None


def member_offset(die: DIE) -> int | None:
    """The byte at which a member or base class begins; DWARF 2 writes it as ``DW_OP_plus_uconst``. ``None`` where it is
    known at run time only (virtual bases), or absent."""
    attribute = die.attributes.get("DW_AT_data_member_location")
    value = attribute.value if attribute is not None else None
    if not isinstance(value, list):
        return number(die, "DW_AT_data_member_location")
    if not value or value[0] != _PLUS_UCONST:
        return None
    offset = 0
    for place, byte in enumerate(value[1:]):  # ULEB128
        offset |= (byte & 0x7F) << (7 * place)
    return offset
