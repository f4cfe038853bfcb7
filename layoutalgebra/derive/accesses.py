"""The input and the result of deriving: a memory object, the references' accesses to it, the structure found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.footprints import Touched
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.terms.term import Term


@dataclass(frozen=True, slots=True)
class MemoryObjectShape:
    """A memory object: ``bytes`` at ``base``; the rest goes into :class:`Structure` as it is."""

    id: str
    name: str
    base: int
    bytes: int
    kind: Literal["heap", "global", "stack", "mapped"] = "heap"
    type: str | None = None
    alloc_site: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """One reference's stream within the object; ``bytes`` of one access."""

    stream: Stream
    bytes: int
    kind: Literal["read", "write", "both"] = "read"


@dataclass(frozen=True, slots=True)
class Derived:
    """The result of :func:`layout_advise.layoutalgebra.derive.derive.derive_structure`.

    ``term`` describes exactly the touched units of ``unit_bytes`` on the structure's grid (``None``: irregular or not
    known exactly). ``fastest`` is the dimension that the innermost loops walk, ``gathered`` whether most accesses have no
    regular order; ``note`` says why no rule applies to a plain array. Where each reference to a plain array goes on by a
    multiple of ``steps`` scalars, and that is no power of two as a compiler's unrolling is, records of so many may be stored
    in it: if they are, only a declaration tells. Where a reference goes to several fields of an element, ``one_field_each``
    describes the same memory in smaller elements, of which each reference has one field: what code can be re-indexed to.
    """

    structure: Structure
    term: Term | None
    unit_bytes: int
    fastest: int
    gathered: bool
    note: str | None = None
    steps: int = 1
    one_field_each: Derived | None = None


@dataclass(frozen=True, slots=True)
class ExactAccess:
    """An access whose addresses are known exactly, with what it touches."""

    access: Access
    what: Touched
