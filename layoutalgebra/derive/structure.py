"""A structure of the program's memory, and the map that a candidate layout induces on it.

Coordinates of an access: one index per dimension (outermost first) and a field. Old place, in bytes::

    base + sum(index[k] * dims[k].stride) + field.offset

New place: ``buffer`` and ``offset + sum(axis.stride * axis.index)`` with an index that is a whole dimension's, or the
quotient or remainder of it by a block (AoSoA). A quotient without its remainder is a map of the chosen elements only
(:class:`Chosen`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from layout_advise.layoutalgebra.derive.scattered_elements import ElementBlock, Slots

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = TypeVar("Indices", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension: ``count`` steps of ``stride`` bytes."""

    count: int
    stride: int


@dataclass(frozen=True, slots=True)
class Field:
    """An atomic piece of the innermost element: ``bytes`` bytes at ``offset`` within it.

    ``reads`` and ``writes`` count dynamic accesses in the trace; both 0 where the hotspot does not use the field.
    """

    name: str
    offset: int
    bytes: int
    type: str | None = None
    reads: int = 0
    writes: int = 0

    @property
    def place(self) -> range:
        """The bytes of an element that it has, from the start of each."""
        return range(self.offset, self.offset + self.bytes)


@dataclass(frozen=True, slots=True)
class Structure:
    """A piece of memory as a regular grid of elements.

    ``dims`` outermost first; the last stride is the element's size (the diameter of the innermost ``S``), so
    ``element_bytes == dims[-1].stride``. Each stride is a multiple of the next one, and covers it:
    ``dims[k].stride >= dims[k+1].count * dims[k+1].stride``. ``base`` is the address of element (0, ..., 0); it is at or
    after the start of the memory object ``block_base`` .. ``block_base + bytes``. ``fields`` are those that the hotspot
    accesses, ascending and disjoint; ``cold`` the declared fields of the element that it does not access (known from
    DWARF, empty otherwise).
    """

    id: str
    name: str
    base: int
    bytes: int
    dims: tuple[Dim, ...]
    fields: tuple[Field, ...]
    cold: tuple[Field, ...] = ()
    block_base: int = 0
    kind: Literal["heap", "global", "stack", "mapped"] = "heap"
    type: str | None = None
    alloc_site: str | None = None
    inexact: str | None = None
    """Why no term may be claimed and nothing restructured (truncated trace, inexact set, ...), or ``None``."""
    via: Slots | None = None
    """Set where the elements lie anywhere, behind pointers: ``base`` is only where they are thought to lie together."""
    blocks: tuple[ElementBlock, ...] = ()
    """Set where they lie in several blocks, by ascending addresses: the same holds."""

    @property
    def placed(self) -> bool:
        """Tells whether the elements lie where ``base`` and ``dims`` say."""
        return self.via is None and not self.blocks

    @property
    def single(self) -> bool:
        """Tells whether each element is an object of its own."""
        return self.via is not None or (bool(self.blocks) and len(self.blocks) == self.count)

    @property
    def origin(self) -> int:
        """The amount that code takes off an address to have a place in it: 0 where addresses have to be looked up."""
        return 0 if self.blocks else self.base

    @property
    def element_bytes(self) -> int:
        """Size of the innermost element in bytes."""
        return self.dims[-1].stride

    @property
    def count(self) -> int:
        """Number of innermost elements."""
        total = 1
        for dim in self.dims:
            total *= dim.count
        return total


@dataclass(frozen=True, slots=True)
class Axis:
    """One index of the new layout: of dimension ``dim`` the whole index, its quotient or its remainder by ``block``.

    A remainder is that of the index divided by ``div``: ``index // div % block``.
    """

    dim: int
    part: Literal["whole", "div", "mod"]
    block: int
    stride: int
    div: int = 1

    def digit(self, index: Indices) -> Indices:
        """The part of the dimension's ``index`` (a number, or an array of them) that this axis is."""
        if self.part == "div":
            return index // self.block
        return index // self.div % self.block if self.part == "mod" else index


@dataclass(frozen=True, slots=True)
class FieldMap:
    """The new place of a field, by its number: ``buffers[buffer] + offset + sum(axis.stride * axis.index)``."""

    field: int
    buffer: int
    offset: int
    axes: tuple[Axis, ...]

    def place(self, index: tuple[int, ...]) -> int:
        """Byte offset in the buffer of this field of the element at ``index``."""
        return self.offset + sum(axis.stride * axis.digit(index[axis.dim]) for axis in self.axes)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The elements that one call uses, where these are at most one of each ``block`` neighbours along dimension ``dim``.

    Bit ``k % 8`` of ``bits[k // 8]`` is 1 where position ``k`` is used; positions number dimensions 0 to ``dim``, the last
    one fastest. ``elements`` of them are used. Made by :func:`layout_advise.layoutalgebra.derive.chosen_elements.choose`.
    """

    dim: int
    block: int
    elements: int
    bits: bytes

    def position(self, dims: tuple[Dim, ...], index: tuple[int, ...]) -> int:
        """The number of the position at which the element ``index`` stands."""
        number = 0
        for dim, value in zip(dims[: self.dim + 1], index, strict=False):
            number = number * dim.count + value
        return number

    def holds(self, dims: tuple[Dim, ...], index: tuple[int, ...]) -> bool:
        """True where the element at ``index`` of a structure with ``dims`` is used."""
        number = self.position(dims, index)
        return bool(self.bits[number // 8] >> number % 8 & 1)


@dataclass(frozen=True, slots=True)
class Buffer:
    """One new allocation of the candidate layout."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """Fields of one size that share a term: what the report prints (``parts``)."""

    fields: tuple[str, ...]
    unit_bytes: int
    term: str


class DerivationStep(NamedTuple):
    """A rule with the ``term`` that it leads to; ``undone`` where it is taken from right to left."""

    rule: str
    term: str
    undone: bool = False


@dataclass(frozen=True, slots=True)
class Relayout:
    """The new layout of one structure: one :class:`FieldMap` per accessed field, injective on the accessed elements.

    With ``chosen`` the buffers hold these elements only (the others lie alike in further parts, which the call does not
    use), and the map says nothing about any other.
    """

    structure: Structure
    fields: tuple[FieldMap, ...]
    buffers: tuple[Buffer, ...]
    parts: tuple[Part, ...]
    term: str
    chosen: Chosen | None = None
    rules: tuple[str, ...] = field(default=(), compare=False)
    """The rewriting rules that lead to it, in order."""
    merged: Relayout | None = None
    """Set where the structure shares its records with others: the layout of a structure that has the fields of all of them
    (:mod:`layout_advise.layoutalgebra.merge.records`), whose buffers all of them have."""
    steps: tuple[DerivationStep, ...] = field(default=(), compare=False)
    """The way to it, of the part that takes most rules."""

    def holds(self, index: tuple[int, ...]) -> bool:
        """True where the element at ``index`` is stored in the buffers."""
        return self.chosen is None or self.chosen.holds(self.structure.dims, index)

    @property
    def bytes(self) -> int:
        """Total size of the new buffers."""
        return sum(buffer.bytes for buffer in self.buffers)

    def name_of(self, mapped: FieldMap) -> str:
        """What the field of ``mapped`` is called where it is stored: in a record of several structures also by its own."""
        if self.merged is None:
            return self.structure.fields[mapped.field].name
        there = next(m for m in self.merged.fields if (m.buffer, m.offset) == (mapped.buffer, mapped.offset))
        return self.merged.structure.fields[there.field].name

    @property
    def arrays(self) -> tuple[tuple[str, ...], ...]:
        """The names of the fields that each buffer holds, in their order there. Parts are another thing: one for each size
        of field."""
        fields, ordered = self.structure.fields, sorted(self.fields, key=lambda mapped: mapped.offset)
        return tuple(tuple(fields[m.field].name for m in ordered if m.buffer == k) for k in range(len(self.buffers)))

    @property
    def blocks(self) -> tuple[int, ...]:
        """The elements in a block of each buffer that holds several fields in blocks; 0 for others."""
        own = [[m for m in self.fields if m.buffer == k] for k in range(len(self.buffers))]
        lengths = ([a.block for m in maps for a in m.axes if a.part == "mod"] if len(maps) > 1 else [] for maps in own)
        return tuple(max(each, default=0) for each in lengths)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout of one or several structures, reached by named rules.

    ``families`` as in the report's contract (``soa``, ``aosoa``, ``split``, ``permute``, ``compact``, ``pad``,
    ``reorder``, ``merge``); ``block`` the lane count of ``aosoa``, the longest where arrays have several
    (:attr:`Relayout.blocks`); ``derivation`` the rules used, in order. ``keeps_cold`` tells that a permanent version has to
    keep the unused fields in a second (cold) structure. ``proposers`` are the ways by which it was found.
    """

    id: str
    relayouts: tuple[Relayout, ...]
    families: tuple[str, ...]
    derivation: tuple[str, ...]
    block: int | None = None
    temporary: bool = False
    keeps_cold: bool = False
    cost: dict[str, float] = field(default_factory=dict, compare=False)
    proposers: tuple[str, ...] = field(default=("rules",), compare=False)

    @property
    def stored(self) -> tuple[Relayout, ...]:
        """What is stored anew, each once: structures of their own, and records that several structures were merged into."""
        return tuple(dict.fromkeys(layout.merged or layout for layout in self.relayouts))

    @property
    def bytes(self) -> int:
        """Total size of the new buffers."""
        return sum(layout.bytes for layout in self.stored)


def new_buffers(relayouts: Sequence[Relayout]) -> list[tuple[Structure, Buffer]]:
    """The buffers of ``relayouts`` in their order, each once, with the structure that it is for (the first, where it is for
    several)."""
    return [(r.structure, b) for r, first in zip(relayouts, _is_first(relayouts), strict=True) if first for b in r.buffers]


def first_buffers(relayouts: Sequence[Relayout]) -> list[int]:
    """The number in :func:`new_buffers` of the first buffer of each; merged ones have the same."""
    first: list[int] = []
    merged: dict[Relayout, int] = {}
    total = 0
    for relayout, new in zip(relayouts, _is_first(relayouts), strict=True):
        if relayout.merged is not None:
            first.append(merged.setdefault(relayout.merged, total))
        else:
            first.append(total)
        total += len(relayout.buffers) if new else 0
    return first


def _is_first(relayouts: Sequence[Relayout]) -> list[bool]:
    """Whether each is the first one that has its buffers."""
    merged = [relayout.merged for relayout in relayouts]
    return [one is None or one not in merged[:k] for k, one in enumerate(merged)]
