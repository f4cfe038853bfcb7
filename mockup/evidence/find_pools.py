"""Finds the blocks of the heap that hold elements of one kind: what one reference reaches in turn, in elements of one size.

A type declares the element; else the arrays among the blocks show its size, or all blocks have the same one and hold one
element each. Where these do not agree nothing is said to belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from layout_advise.layoutalgebra.derive.scattered_elements import ElementBlock
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.tracer.objects.attribution import Attribution
from layout_advise.tracer.objects.memory_object import MemoryObject

MOST_BLOCKS = 1 << 15
"""More blocks are looked up too slowly, and make too large a table."""
NEARLY_ALL = 7 / 8
"""Of a block with so many of the elements a layout is tried by itself: it takes less to test an address for one block."""
FEWEST_ELEMENTS = 4
"""Of fewer elements there is nothing to arrange: they are a handful of lines in any order."""
LARGEST_ELEMENT = 4096
"""Larger blocks (rows of a matrix, buffers) are arrays of which the elements are not known."""


@dataclass(frozen=True, slots=True)
class FoundPool:
    """Elements of ``element`` bytes in ``blocks``; ``objects`` are the numbers of the memory objects that these are in, most
    accesses first."""

    element: int
    blocks: tuple[ElementBlock, ...]
    objects: tuple[int, ...]


def find_pools(attribution: Attribution, structures: Sequence[Structure], left_out: frozenset[int]) -> Iterator[FoundPool]:
    """The pools among the traced objects; ``structures`` are what is known of those that have one, ``left_out`` start
    addresses of objects that belong to something else."""
    known = {s.block_base or s.base: s for s in structures if s.placed}
    fit = {n for n, o in enumerate(attribution.objects) if _may_be_part(o) and o.base not in left_out}
    graph: nx.Graph[int] = nx.Graph()
    for touches in attribution.touches:
        nx.add_path(graph, [t.object for t in touches if t.object in fit])
    for together in nx.connected_components(graph):
        for group in _of_one_kind(sorted(together), attribution.objects):
            pool = _pool(group, attribution.objects, known) if 1 < len(group) <= MOST_BLOCKS else None
            if pool is not None:
                yield pool


def _may_be_part(one: MemoryObject) -> bool:
    return one.kind == "heap" and one.life not in ("freed", "born")


def _of_one_kind(numbers: Sequence[int], objects: Sequence[MemoryObject]) -> Iterator[list[int]]:
    """The objects of each type; those of none are of the only one that there is."""
    types: dict[str | None, list[int]] = {}
    for number in numbers:
        declared = objects[number].type
        types.setdefault(declared.name if declared is not None else None, []).append(number)
    if len(types) == 2 and None in types:
        yield sorted(numbers)
    else:
        yield from types.values()


def _pool(group: Sequence[int], objects: Sequence[MemoryObject], known: Mapping[int, Structure]) -> FoundPool | None:
    members = [objects[n] for n in group]
    found = [known.get(o.element_base or o.base) for o in members]
    element = _element(members, [s for s in found if s is not None])
    if element is None:
        return None
    blocks: list[ElementBlock] = []
    first = 0
    for one, structure in sorted(zip(members, found, strict=True), key=lambda pair: pair[0].base):
        address = one.element_base or one.base
        if structure is not None and structure.element_bytes == element and structure.count > 1:
            address = structure.base
        count = (one.end - address) // element
        if count < 1:
            return None
        blocks.append(ElementBlock(address, first, count, one.base, one.bytes))
        first += count
    if first < FEWEST_ELEMENTS or max(block.count for block in blocks) > NEARLY_ALL * first:
        return None
    return FoundPool(element, tuple(blocks), tuple(group))


def _element(members: Sequence[MemoryObject], structures: Sequence[Structure]) -> int | None:
    """The size of an element; None where it is not known, or the blocks do not agree on it."""
    arrays = [s for s in structures if s.count > 1 and s.inexact is None]
    if any(len(s.dims) > 1 for s in arrays):
        return None
    seen = {s.element_bytes for s in arrays}
    declared = {o.type.element_bytes for o in members if o.type is not None and len(o.type.members) > 1}
    if any(o.type is not None and len(o.type.members) < 2 for o in members):
        return None
    if declared:
        return _only(declared) if seen <= declared else None
    sizes = {o.bytes for o in members}
    return _only(seen) if seen or max(sizes) > LARGEST_ELEMENT else _only(sizes)


def _only(sizes: set[int]) -> int | None:
    return next(iter(sizes)) if len(sizes) == 1 else None
