"""Elements that do not lie on one grid of memory: behind pointers, or in several blocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slots:
    """An array of pointers to elements that lie anywhere: that of element k stands at ``table + k * stride``.

    ``bytes`` is the size of an object (``element_bytes`` may be more, a multiple of ``stride``), ``first`` the address of
    one of them. A null pointer stands for no element.
    """

    table: int
    stride: int
    count: int
    bytes: int
    first: int


@dataclass(frozen=True, slots=True)
class ElementBlock:
    """``count`` elements one after another from ``address`` on, in a memory object that has ``bytes`` of them and begins at
    ``start``; element ``first`` of the structure is the first of them."""

    address: int
    first: int
    count: int
    start: int
    bytes: int
