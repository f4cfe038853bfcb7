"""The trace that the chunks of a file hold. A file may come from somebody else, or be damaged behind its checksums: every
value is taken only if it is of its type, and the whole only if its parts fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.tracer.trace.chunks import END, damaged
from layout_advise.tracer.trace.consistency import check
from layout_advise.tracer.trace.stream_codec import nodes_of, stream_of
from layout_advise.tracer.trace.trace import Allocation, Control, Mapping, Reference, Registers, Trace

TEAM_VERSION = 1
_MISFITS = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, msgspec.MsgspecError)
_OWN_CHUNKS = ("references", "streams", "registers", "mappings", "allocations", "control", "team_control")
_IN_HEAD = ("symbol", "call", "backend", "accesses", "truncated", "limits", "calls")
TABLES = {name: kind for name, kind in get_type_hints(Trace).items() if name not in (*_OWN_CHUNKS, *_IN_HEAD)}
"""The tables that :class:`Trace` has besides the chunks of their own, by name with their types."""


class _Head(msgspec.Struct, frozen=True):
    """The content of ``HEAD``; older files do not say how many ``calls``."""

    symbol: str
    call: int
    backend: str
    accesses: int
    truncated: bool
    limits: tuple[str, ...]
    registers: tuple[tuple[int, ...], int, int, int, int, tuple[bytes, ...]]
    calls: int = 1
    references: int = 0
    blocks: int = 0


@dataclass(slots=True)
class TraceParts:
    """The chunks of one file, put together."""

    path: Path
    references: list[Reference] = field(default_factory=list)
    streams: list[Stream | None] = field(default_factory=list)
    start: _Head | None = None
    mappings: list[Mapping] = field(default_factory=list)
    blocks: list[Allocation] = field(default_factory=list)
    named: dict[str, Any] = field(default_factory=dict)
    control: Control | None = None
    team_control: tuple[Control, ...] = ()
    limits: list[str] = field(default_factory=list)

    def add(self, kind: bytes, content: Any) -> None:
        """Take one chunk. Raises :class:`TraceError` where it is not what its kind says."""
        try:
            self._add(kind, content)
        except _MISFITS as error:
            raise damaged(self.path, f"its contents do not fit ({error})") from error

    def _add(self, kind: bytes, content: Any) -> None:
        if kind == b"HEAD":
            self.start = msgspec.convert(content, _Head)
        elif kind == b"TABL":
            self.named[content["name"]] = msgspec.convert(content["rows"], TABLES[content["name"]])
        elif kind == b"CTRL":
            self.control = _control(content)
        elif kind == b"TCTL":
            if content["version"] == TEAM_VERSION:  # of a later one nothing is known here
                self.team_control = tuple(map(_control, content["threads"]))
        elif kind == b"REFS":
            names = content["columns"]
            rows = [dict(zip(names, row, strict=True)) for row in content["rows"]]
            self.references += msgspec.convert(rows, list[Reference])
            self.streams += [stream_of(item) for item in content["streams"]]
        elif kind == END:
            self.limits = msgspec.convert(content["limits"], list[str])
        elif kind == b"MAPS":
            self.mappings += [Mapping(*row) for row in msgspec.convert(content, list[tuple[int, int, str, int, str]])]
        elif kind == b"HEAP":
            self.blocks += map(_block, content)

    def trace(self, whole: bool = True) -> Trace:
        """The trace of all chunks so far; not ``whole``: those before a cut, which may name loops that are
        lost. Raises :class:`TraceError` where they do not fit together."""
        try:
            if not whole and "loops" not in self.named:
                self.named["places"] = tuple(replace(place, loop=None) for place in self.named.get("places", ()))
            trace = self._trace()
            check(trace)
            return trace
        except _MISFITS as error:
            raise damaged(self.path, f"its contents do not fit ({error})") from error

    def _trace(self) -> Trace:
        head = self.start
        if head is None:
            raise ValueError("it does not begin with what was traced")
        return Trace(
            symbol=head.symbol,
            call=head.call,
            backend=head.backend,
            references=tuple(self.references),
            streams=tuple(self.streams),
            accesses=head.accesses,
            truncated=head.truncated or bool(self.limits),
            registers=Registers(*head.registers),
            mappings=tuple(self.mappings),
            allocations=tuple(self.blocks),
            limits=(*head.limits, *self.limits),
            control=self.control,
            team_control=self.team_control,
            calls=head.calls,
            **self.named,
        )


def _block(row: Sequence[Any]) -> Allocation:
    address, size, order, site, *stacks = row
    found = msgspec.convert((address, size, order, site), tuple[int, int, int, int])
    return Allocation(*found, *msgspec.convert(stacks, list[tuple[int, ...]]))


def _control(content: dict[str, Any]) -> Control:
    nodes = None if content["nodes"] is None else nodes_of(content["nodes"])
    pieces = msgspec.convert(content["pieces"], tuple[tuple[int, int], ...])
    return Control(nodes, pieces, msgspec.convert(content["reason"], str | None))
