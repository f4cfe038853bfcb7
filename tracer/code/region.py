"""A hotspot's machine code at its run-time addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CodeRange:
    """``code`` stands at run-time address ``start``."""

    start: int
    code: bytes

    @property
    def end(self) -> int:
        """First address after the range."""
        return self.start + len(self.code)


@dataclass(frozen=True, slots=True)
class Region:
    """A region of code with one entry (design, section 3): a function with its ``.cold``/``.part`` pieces, or a loop nest.

    All addresses are run-time addresses (load base already added). ``path`` is the ELF file the code comes from,
    ``load_base`` what must be subtracted to look an address up in it. ``callees`` are functions that the region calls,
    directly or through each other, and that are traced and lifted with it.
    """

    symbol: str
    kind: Literal["function", "loop"]
    entry: int
    ranges: tuple[CodeRange, ...]
    path: str
    load_base: int
    callees: tuple[Region, ...] = ()
    exits: tuple[int, ...] = ()
    """Of a loop: where control goes on after it."""
    kept: tuple[frozenset[tuple[str, int]], ...] = ()
    """Of a loop: the registers that are read after each of ``ends``, as kind (``g`` general, ``v`` vector) and number."""
    around: tuple[CodeRange, ...] = ()
    """Of a loop: the code of its function, of which its own is a part."""
    chunk: int = 0
    """Of a loop whose ``entry`` is its head: after so many iterations it is left there; 0: it ends by itself."""

    @property
    def ends(self) -> tuple[int, ...]:
        """All places where control goes on after a loop, its head too where it is left there."""
        return (*self.exits, self.entry) if self.chunk else self.exits

    def contains(self, address: int) -> bool:
        """Returns whether ``address`` lies in the region itself (not in a callee)."""
        return any(r.start <= address < r.end for r in self.ranges)
