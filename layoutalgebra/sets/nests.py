"""Folded address streams as loop nests.

A stream is the sequence of addresses that one reference touched, in order. Folding (NLR, Ketterlin and Clauss, CGO 2008)
writes it as nested loops whose trip counts and addresses are affine in the indices of the enclosing loops. These classes
are plain data; ``layout_advise.tracer`` produces them, :mod:`layout_advise.layoutalgebra.derive.derive` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """``const + sum(coefs[k] * index_of_the_k-th_enclosing_loop)``, outermost loop first.

    ``coefs`` may be shorter than the number of enclosing loops; missing coefficients are 0.
    """

    const: int
    coefs: tuple[int, ...] = ()

    def at(self, indices: tuple[int, ...]) -> int:
        """The value at the given loop indices (outermost first)."""
        return self.const + sum(c * i for c, i in zip(self.coefs, indices, strict=False))


@dataclass(frozen=True, slots=True)
class Point:
    """One access; ``address`` in bytes."""

    address: Affine


@dataclass(frozen=True, slots=True)
class Loop:
    """``trip`` iterations (never negative) of ``body``."""

    trip: Affine
    body: tuple[Point | Loop, ...]


Node = Point | Loop


@dataclass(frozen=True, slots=True)
class FoldedStream:
    """A stream that folded exactly: expanding ``nodes`` gives the recorded addresses in the recorded order."""

    nodes: tuple[Node, ...]
    count: int

    def expand(self) -> Iterator[int]:
        """The addresses, in order."""
        return expand(self.nodes)


@dataclass(frozen=True, slots=True)
class AddressSet:
    """The exact fallback for a stream that does not fold (random accesses): a set, without order.

    Every address is ``minimum + gcd * k`` with ``0 <= k <= (maximum - minimum) // gcd``; bit ``k % 8`` of
    ``bitmap[k // 8]`` is 1 where it was touched. ``gcd`` is 0 for a single address. ``bitmap`` is ``None`` where it
    would pass 64 MB: then the set is inexact and no layout term may be claimed (design, section 3). It is known exactly all
    the same where ``clusters`` are given: sets with bitmaps, ascending, that lie far apart and make up the whole.
    """

    minimum: int
    maximum: int
    gcd: int
    count: int
    bitmap: bytes | None
    clusters: tuple[AddressSet, ...] = ()

    @property
    def exact(self) -> bool:
        """True where the set is known exactly."""
        return self.bitmap is not None or bool(self.clusters)


Stream = FoldedStream | AddressSet


def expand(nodes: tuple[Node, ...], indices: tuple[int, ...] = ()) -> Iterator[int]:
    """Every address of ``nodes`` in program order; slow, meant for tests and small streams."""
    for node in nodes:
        if isinstance(node, Point):
            yield node.address.at(indices)
        else:
            for index in range(node.trip.at(indices)):
                yield from expand(node.body, (*indices, index))
