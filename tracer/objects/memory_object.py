"""A piece of the program's memory that belongs together: a heap block, a variable, a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.tracer.trace.trace import Life

Kind = Literal["heap", "global", "stack", "mapped"]


@dataclass(frozen=True, slots=True)
class MemoryObject:
    """``bytes`` bytes at run-time address ``base`` that belong together.

    ``type`` describes one element (heap blocks: the count comes from ``bytes``) or the declared array; ``None`` where the
    debug information does not say: it is never guessed. ``element_base`` is the address of the first element (after a
    hand-made alignment it is not ``base``). ``alloc_site`` is ``file:line`` of the allocating call. ``references`` are
    the ids of the trace's references that touch it. Of a heap block ``order`` is its number among all allocations, ``life``
    what becomes of it in the call where that was watched.
    """

    kind: Kind
    name: str
    base: int
    bytes: int
    type: Declared | None = None
    element_base: int = 0
    alloc_site: str | None = None
    references: tuple[int, ...] = ()
    order: int | None = None
    life: Life | None = None

    @property
    def end(self) -> int:
        """First address after the object."""
        return self.base + self.bytes

    @property
    def key(self) -> Key:
        """A key that tells it apart: a block may begin where its mapping does."""
        return self.base, self.end


Key = tuple[int, int]
