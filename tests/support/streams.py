"""Streams and sets of addresses by hand, and derived terms against every byte."""

from __future__ import annotations

import itertools
import math

from layout_advise.layoutalgebra.derive.accesses import Access, Derived
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point

BLOCK_AT = 0x7F0000000010


def stream(start: int, *levels: tuple[int, int]) -> FoldedStream:
    """``levels`` are (stride, trip), outermost first."""
    node: Node = Point(Affine(start, tuple(s for s, _ in levels)))
    for _, trip in reversed(levels):
        node = Loop(Affine(trip), (node,))
    return FoldedStream((node,), math.prod(t for _, t in levels))


def touched_bytes(accesses: list[Access]) -> set[int]:
    found = set()
    for access in accesses:
        if isinstance(access.stream, AddressSet):
            s = access.stream
            assert s.bitmap is not None
            addresses = [s.minimum + s.gcd * k for k in range(8 * len(s.bitmap)) if s.bitmap[k // 8] >> k % 8 & 1]
        else:
            addresses = list(access.stream.expand())
        found |= {a + k for a in addresses for k in range(access.bytes)}
    return found


def check_exact(derived: Derived, accesses: list[Access]) -> None:
    """The term is the traced set, and every touched byte is in a field of an element of the grid."""
    truth, s = touched_bytes(accesses), derived.structure
    assert derived.term is not None
    described = {
        s.base + unit * derived.unit_bytes + k for unit in derived.term.offsets() for k in range(derived.unit_bytes)
    }
    assert described == truth
    assert derived.term.size * derived.unit_bytes == s.count * s.element_bytes
    grid = {
        s.base + sum(i * d.stride for i, d in zip(index, s.dims, strict=True)) + f.offset + k
        for index in itertools.product(*(range(d.count) for d in s.dims))
        for f in s.fields
        for k in range(f.bytes)
    }
    assert truth <= grid
    assert s.block_base <= min(grid)
    assert max(grid) < s.block_base + s.bytes
