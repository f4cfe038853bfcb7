"""Blocks of memory that hold elements of one kind, as one structure: chunks of a pool, nodes allocated one by one.

The elements are numbered by their addresses, over all blocks. The trace is thought to go to an array of them at an address
of its own, where nothing lies: all that is done with an array of structures is done with it. The lifted code stays as it
is; its pointers are looked up among the blocks (``la_number`` of ``mockup.h``) where a number is made of one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.layoutalgebra.sets.spans import addresses, set_of, spans
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.trace.trace import Allocation

MOST_KNOWN = 1 << 16
MOST_ADDRESS = 1 << 48
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PoolPart:
    """The accesses of a stream that go to elements of a pool, at the places where these are thought to lie; ``whole`` where
    there are no others."""

    stream: Stream
    whole: bool


_known: dict[tuple[int, int, str, int], tuple[Stream, Structure, PoolPart | None]] = {}
"""Known parts by the identity of the stream: each mock-up asks for all."""


def part_in_pool(stream: Stream, size: int, pool: Structure) -> PoolPart | None:
    """Returns the accesses of ``size`` bytes that go to elements of ``pool``; None where some lie astride a border, or it is
    not known where they go."""
    key = id(stream), size, pool.id, pool.base
    known = _known.get(key)
    if known is None or known[0] is not stream or known[1].blocks != pool.blocks:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        known = _known[key] = stream, pool, _part(stream, size, pool)
    return known[2]


def _part(stream: Stream, size: int, pool: Structure) -> PoolPart | None:
    every = _addresses(stream)
    if every is None:
        return None
    starts, ends = spans_of(pool)
    firsts = np.array([b.first for b in pool.blocks], np.int64)
    at = np.searchsorted(starts, every, "right") - 1
    inside = (at >= 0) & (every < ends[at])
    following = np.minimum(at + 1, len(starts) - 1)
    astride = np.where(inside, every + size > ends[at], (starts[following] > every) & (every + size > starts[following]))
    if astride.any():
        return None
    moved = pool.base + pool.element_bytes * firsts[at[inside]] + (every - starts[at])[inside]
    whole = bool(inside.all())
    if isinstance(stream, FoldedStream):
        return PoolPart(fold(moved.astype(np.uint64)), whole)
    count = stream.count if whole else max(len(moved), round(stream.count * len(moved) / len(every)))
    found = set_of(np.sort(moved), count)
    return PoolPart(found, whole) if found is not None else None


def spans_of(pool: Structure) -> tuple[Ints, Ints]:
    """Returns where the elements of each block begin, and where they end; of a structure in one place there is one."""
    if not pool.blocks:
        return np.array([pool.base], np.int64), np.array([pool.base + pool.dims[0].count * pool.dims[0].stride], np.int64)
    starts = np.array([b.address for b in pool.blocks], np.int64)
    return starts, starts + np.array([b.count * pool.element_bytes for b in pool.blocks], np.int64)


def pieces_of(starts: Ints, ends: Ints, gap: int = 16, most: int = 256) -> tuple[tuple[int, int], ...]:
    """Memory (start, end) of objects in ascending order, those united that only an allocator's header of up to ``gap`` bytes
    parts; of many pieces the ``most`` largest."""
    cuts = np.flatnonzero(starts[1:] - ends[:-1] > gap) + 1
    borders = [0, *(int(c) for c in cuts), len(starts)]
    pieces = [(int(starts[a]), int(ends[b - 1])) for a, b in pairwise(borders)]
    return tuple(sorted(sorted(pieces, key=lambda p: p[0] - p[1])[:most]))


def is_there(pool: Structure, allocations: Sequence[Allocation]) -> bool:
    """Returns whether a call has the memory objects of all blocks, which may be parts of the heap's blocks at its entry."""
    known = sorted((a.address, a.address + a.bytes) for a in allocations)
    at = [bisect_right(known, (b.start, MOST_ADDRESS)) - 1 for b in pool.blocks]
    return all(k >= 0 and b.start + b.bytes <= known[k][1] for k, b in zip(at, pool.blocks, strict=True))


def _addresses(stream: Stream) -> Ints | None:
    """In their order where that is known; None where they are not."""
    if isinstance(stream, FoldedStream):
        return expand_array(stream).astype(np.int64)
    parts = [addresses(span) for span in spans(stream)]
    if any(part is None for part in parts):
        return None
    return np.concatenate([np.empty(0, np.int64), *(part for part in parts if part is not None)])
