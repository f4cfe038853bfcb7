"""The report's part about source lines: what each of them accesses, and how.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

StrideKind = Literal["unit", "constant", "broadcast", "irregular", "once"]
"""From one access to the next in the innermost loop: the neighbour, a fixed distance, the same address, no rule; or only one
access."""


class LineUse(msgspec.Struct, frozen=True):
    """Accesses of ``bytes`` bytes each that a line makes to ``fields`` of one piece of memory in the traced call:
    ``structure`` is its id where it is one of the structures, ``name`` its name. ``stride`` in bytes, where constant."""

    name: str
    structure: str | None
    fields: tuple[str, ...]
    reads: int
    """Loads in the traced call."""
    writes: int
    """Stores in the traced call."""
    bytes: int
    kind: StrideKind
    """How the address changes in the innermost loop."""
    stride: int | None = None
    misses: tuple[int, ...] | None = None
    """Cache lines that these accesses fetch from behind the first, second and last cache, in a call that follows on another
    one; modelled, from the traced addresses, caches that keep what was used last, and no prefetching. None where that was
    not modelled: in parallel regions, calls of more than 16 million accesses, and where addresses are not known."""


class AnnotatedLine(msgspec.Struct, frozen=True):
    """A line of the source, or an instruction where there is none (then ``address`` is set; ``line`` may still be known).
    ``samples`` is the part of the program's samples that fell in it (0 to 1). Lines without uses or samples stand around
    others."""

    file: str | None
    """The path in the debug information; None without a source."""
    line: int | None
    address: str | None
    text: str
    """The line, or the instruction."""
    samples: float
    uses: tuple[LineUse, ...] = ()
    """Its accesses, most first."""
