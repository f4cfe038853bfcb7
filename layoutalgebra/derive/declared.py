"""The declared type of a piece of memory, flattened to atomic members.

Comes from DWARF (``layout_advise.tracer.program.dwarf_types``); read when layouts are derived, since factors may be cut at
sizes that the source declares (design, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """One atomic member of an element: ``bytes`` bytes at ``offset`` within it.

    ``name`` is the path from the element (``P``, ``pos.x``, ``data[2]``, ``data[0].re``), empty where the element itself is
    a scalar. ``type`` is the source's name of the scalar type (``double``, ``node *``). ``union`` tells that the
    member shares its bytes with others (it is the widest one); bit fields stand as one member per storage unit, with the
    names joined by ``|``.
    """

    name: str
    offset: int
    bytes: int
    type: str
    union: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared type of a memory object.

    ``name`` is the element's type (``particle``, ``double``), ``element_bytes`` its size. ``dims`` are the declared array
    dimensions around the element, outermost first (``()`` for a single element, and for a heap block, whose count comes
    from its size); 0 stands for an unknown one (``[]``). ``bytes`` is the size of the whole declared object:
    ``element_bytes`` times the known dims. ``members`` are ascending by offset and disjoint.
    """

    name: str
    bytes: int
    members: tuple[Member, ...]
    dims: tuple[int, ...]
    element_bytes: int
