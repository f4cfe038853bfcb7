"""What debug information declares about a memory object: the data that :mod:`layout_advise.tracer` fills in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """An atomic member of the element type, ``bytes`` at ``offset`` from the element's start.

    ``name`` is the path from the element (``pos.x``, ``data[2]``), ``type`` the base type (``double``) where known.
    """

    name: str
    offset: int
    bytes: int
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared type of a memory object.

    ``name`` is the element type's name (``particle``, ``double``); ``bytes`` the size of the whole variable (for a
    pointee: of one element); ``members`` the atomic members of one element, ascending (empty for a scalar);
    ``dims`` the array dimensions of the variable, outermost first (``(1025, 1025, 4, 2)``; empty for a pointee);
    ``element_bytes`` the size of one innermost array element (one structure, or one scalar).
    """

    name: str
    bytes: int
    members: tuple[Member, ...]
    dims: tuple[int, ...]
    element_bytes: int
