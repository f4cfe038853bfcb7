"""The tree of a unit's entries: those within one, and the one around it.

pyelftools follows each reference to the next sibling, wherever it leads; in a damaged file it may lead back, and then the
walk has no end. Here an entry lies behind the one before it, and within its unit; else the file is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from elftools.common.exceptions import DWARFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.typeunit import TypeUnit

_SIBLINGS = (*(f"DW_FORM_ref{size}" for size in ("", "1", "2", "4", "8", "_udata")), "DW_FORM_ref_addr")


@dataclass(slots=True)
class _Walked:
    """Knowledge of a unit: by an entry's offset where the entries within it end, and the offset of the one around it.

    Entries themselves would keep the unit alive."""

    ends: dict[int, int] = field(default_factory=dict)
    around: dict[int, int] = field(default_factory=dict)


_WALKED: WeakKeyDictionary[CompileUnit | TypeUnit, _Walked] = WeakKeyDictionary()


def children(die: DIE) -> Iterator[DIE]:
    """The entries directly within it. Raises DWARFError where they lead back, or out of the unit."""
    if not die.has_children:
        return
    walked = _WALKED.setdefault(die.cu, _Walked())
    child = _next(die, die.offset + die.size)
    while not child.is_null():
        walked.around[child.offset] = die.offset
        yield child
        child = _next(child, _behind(child, walked))
    walked.ends[die.offset] = child.offset + child.size


def parent(die: DIE) -> DIE | None:
    """The entry around it; ``None`` for a unit's first one, and where there is none at its place in the tree."""
    walked = _WALKED.setdefault(die.cu, _Walked())
    found = die.cu.get_top_DIE()
    while die.offset not in walked.around and found.offset < die.offset:
        inner = [child for child in children(found) if child.offset <= die.offset]
        if not inner:
            return None
        found = inner[-1]
    around = walked.around.get(die.offset)
    return None if around is None else die.cu.get_DIE_from_refaddr(around)


def _behind(die: DIE, walked: _Walked) -> int:
    """The place behind all within it, where the next entry begins. If nothing tells it, all within it is read."""
    known = _told_end(die, walked)
    if known is not None:
        return known
    opened, one = [die], _next(die, die.offset + die.size)
    while opened:
        if one.is_null():
            walked.ends[opened.pop().offset] = at = int(one.offset + one.size)
        elif (known := _told_end(one, walked)) is not None:
            at = known
        else:
            opened.append(one)
            at = int(one.offset + one.size)
        if opened:
            one = _next(one, at)
    return walked.ends[die.offset]


def _told_end(die: DIE, walked: _Walked) -> int | None:
    """The same as the entry says it, or as it is known already; else ``None``."""
    if not die.has_children:
        return int(die.offset + die.size)
    sibling = die.attributes.get("DW_AT_sibling")
    if sibling is None:
        return walked.ends.get(die.offset)
    if sibling.form not in _SIBLINGS:
        raise DWARFError(f"the entry at {die.offset:#x} names its sibling in the form {sibling.form}")
    return int(sibling.value) + (0 if sibling.form == "DW_FORM_ref_addr" else int(die.cu.cu_offset))


def _next(before: DIE, offset: int) -> DIE:
    if offset <= before.offset:
        raise DWARFError(f"the entry after that at {before.offset:#x} lies before it")
    return before.cu.get_DIE_from_refaddr(offset)
