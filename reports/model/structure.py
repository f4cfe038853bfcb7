"""The report's part about data structures as they lie in memory now: their fields, who uses them, what threads share.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class ThreadUse(msgspec.Struct, frozen=True):
    """The part of one thread in the accesses to a field; ``thread`` is its number in the team."""

    thread: int
    reads: int
    """Loads of the traced call by this thread."""
    writes: int
    """Stores of the traced call by this thread."""


class FieldUse(msgspec.Struct, frozen=True):
    """A field of the innermost element; ``offset`` and ``bytes`` in bytes, counts are dynamic accesses."""

    name: str
    """As in the debug information; ``f8`` where there is none."""
    type: str | None
    """None where it is not known."""
    offset: int
    bytes: int
    reads: int
    """Loads of the traced call that reach it."""
    writes: int
    """Stores of the traced call that reach it."""
    beside: bool = False
    """Whether only other regions of the run, or other calls, use it: layouts are the same in all of them."""
    threads: tuple[ThreadUse, ...] = ()
    """Of a parallel region by thread; empty where there is one thread, or its accesses are not known exactly."""


class UserReport(msgspec.Struct, frozen=True):
    """A function (as in the source, also where it is inlined) that was seen to use a structure outside the hotspot:
    ``between`` two calls, or ``after`` the last one of the program. ``through`` is the library or system call that made the
    accesses for it. ``reads`` and ``writes`` are those that were looked at one by one, in all periods that were watched: at
    least so many, not all."""

    symbol: str
    """The function's name."""
    file: str | None
    """The source file, where debug information has it."""
    line: int | None
    """The source line, or None."""
    through: str | None
    when: Literal["between", "after"]
    """When it used the structure."""
    reads: int
    writes: int
    fields: tuple[str, ...]
    """The fields that it used."""
    function: str | None = None
    """The linker symbol of the function whose code that is: of the one that it is inlined into, where it is."""


class Placement(msgspec.Struct, frozen=True):
    """Observations that decide where a structure can be converted. ``periods`` times between calls were watched, from the
    return of call ``first_call`` on; in ``used_periods`` of them something was seen to touch the structure. ``last_write``
    before a call and ``first_read`` after one as they were seen. ``gapless``: nothing can have been missed on the pages
    watched, so that no user seen means that there was none."""

    first_call: int
    periods: int
    used_periods: int
    last_write: str | None
    first_read: str | None
    gapless: bool


class FieldPair(msgspec.Struct, frozen=True):
    """Two fields that the traced call uses, and how near to each other it uses them: from the folded order of its accesses,
    in which all of them are."""

    first: str
    """A field's name."""
    second: str
    """The other field's name, after the first one in the alphabet."""
    affinity: float
    """In which part of the iterations that use either field both are used, 0 to 1."""
    distance: int
    """The memory distance: how many bytes the call accesses, wherever they lie, from an access of one field to the nearest
    access of the other, at most."""


class StructureReport(msgspec.Struct, frozen=True):
    """A structure with its layout term in units of ``unit_bytes``."""

    id: str
    """Unique in the region (``s0``)."""
    name: str
    """The variable that leads to it, or where it was allocated."""
    kind: Literal["heap", "global", "stack", "mapped"]
    """Where it lies."""
    type: str | None
    """The element's type, where debug information has it."""
    alloc_site: str | None
    """``file:line`` of the allocation, or None."""
    base: str
    """The first address, hexadecimal."""
    bytes: int
    """Size of the whole, in bytes."""
    element_bytes: int
    """Distance of two elements, in bytes."""
    count: int
    """Number of elements."""
    unit_bytes: int
    layout: str
    """The term of its present layout."""
    fields: tuple[FieldUse, ...]
    """The fields that the regions of the run use."""
    cold_fields: tuple[FieldUse, ...] = ()
    """The fields that none of them uses."""
    declaration: str = ""
    """Its type in C as compiled."""
    dimensions: tuple[int, ...] = ()
    """The lengths of its dimensions, outermost first; those of an element's own cells are not among them. Empty where its
    elements do not follow each other."""
    drawing: str = ""
    """Its layout drawn, as SVG."""
    note: str | None = None
    """Why nothing can be restructured here, or None."""
    used_part: float | None = None
    """The part of the elements that the call uses, where an index array picks them; None where it is not known."""
    users: tuple[UserReport, ...] = ()
    """Other code that used it in one more run of the program, watched from the call on."""
    users_unknown: str | None = None
    """Why that is not known, or not to the end; None where it was watched."""
    placement: Placement | None = None
    """None where no time between two calls was watched."""
    pairs: tuple[FieldPair, ...] = ()
    """Each two fields that are used; empty where the order in which fields are reached is not known, or there are more than
    64 of them."""
    single: bool = False
    """Whether each element is an object of its own, allocated by itself."""

    def __repr__(self) -> str:
        return f"<StructureReport {self.name}: {self.count} elements of {self.element_bytes} bytes>"


class SharedLines(msgspec.Struct, frozen=True):
    """A variable with ``false`` cache lines that ``threads`` of the parallel region use, each with bytes of its own, and at
    least one writes; in ``true`` more lines they use the same bytes. ``fields`` and ``places`` (file:line) are what meets in
    the former; ``structure`` its id where it is one of the structures."""

    name: str
    """The variable."""
    structure: str | None
    false: int
    true: int
    threads: tuple[int, ...]
    fields: tuple[str, ...]
    places: tuple[str, ...]
