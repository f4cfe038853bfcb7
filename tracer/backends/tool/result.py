"""The file ``result`` of the Valgrind and Pin tools: little-endian words, as ``la_write_result`` (valgrind/tool/output.c)
and ``write_result`` (pin/report.cpp) write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Loop, Node, Point, Stream
from layout_advise.tracer.folding.fold import NODE_WORDS, nodes_of_rows
from layout_advise.tracer.trace.trace import Registers

MAGIC = 0x324C41565641414C
_OUTCOMES: tuple[Literal["never", "whole", "truncated", "broken"], ...] = ("never", "whole", "truncated", "broken")
_KINDS: tuple[Literal["read", "write", "both"], ...] = ("read", "write", "both")
_FOLDING, _SET = 0, 1
_NO_ORDER, _ORDERED = 0, 1
_WHY_NOT = {
    2: "the order of execution is irregular: it does not fold",
    3: "the order of execution folds badly: it takes thousands of terms",
    4: "the order of execution is irregular: it takes too many different ways through the code",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One access of one instruction; ``ordinal`` counts those of the instruction in the order in which they are made."""

    pc: int
    ordinal: int
    kind: Literal["read", "write", "both"]
    bytes: int
    stream: Stream | None


@dataclass(frozen=True, slots=True)
class SeenOrder:
    """The order of execution: a point of ``nodes`` is the name of a piece, ``pieces`` tells its references' positions in
    :attr:`ToolResult.references`, in the order in which they ran. ``nodes`` is ``None`` where it is not known, for a
    ``reason``."""

    nodes: tuple[Node, ...] | None
    pieces: dict[int, tuple[int, ...]]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``calls`` of the hotspot were counted; ``foreign`` words were recorded by other threads and thrown away. Of the
    registers (at the entry) rflags, mxcsr and vectors are not known. ``order`` is ``None`` where the tool records none."""

    outcome: Literal["never", "whole", "truncated", "broken"]
    calls: int
    accesses: int
    foreign: int
    registers: Registers
    why: str
    references: tuple[Seen, ...]
    order: SeenOrder | None = None


def read_result(path: Path) -> ToolResult:
    """Parse the file. Raises :class:`TraceError` where it is missing, cut or not ours."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TraceError("the tracing tool left no result", str(error)) from error
    if len(data) % 8:
        raise TraceError("the tracing tool's result is damaged", "it ends within a word", "trace again")
    words = _Words(np.frombuffer(data, dtype="<u8"))
    try:
        if words.take() != MAGIC:
            raise TraceError("the tracing tool's result is damaged", "it does not begin as it should", "trace again")
        outcome = _OUTCOMES[words.take()]
        calls, accesses, foreign = words.take(), words.take(), words.take()
        registers = [words.take() for _ in range(20)]
        why = words.block(8).tobytes().split(b"\0")[0].decode("ascii", "replace")
        references = tuple(_reference(words) for _ in range(words.take()))
        order = _order(words)
    except (IndexError, KeyError):
        raise TraceError("the tracing tool's result is damaged", "it ends too early", "trace again") from None
    return ToolResult(
        outcome,
        calls,
        accesses,
        foreign,
        Registers(tuple(registers[:16]), registers[16], registers[17], 0, registers[18]),
        why,
        references,
        order,
    )


class _Words:
    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words
        self.at = 0

    def block(self, count: int) -> NDArray[np.uint64]:
        found = self.words[self.at : self.at + count]
        if len(found) != count:
            raise IndexError
        self.at += count
        return found

    def take(self) -> int:
        return int(self.block(1)[0])


def _reference(words: _Words) -> Seen:
    pc, ordinal, kind, size, state, count = (words.take() for _ in range(6))
    stream: Stream | None
    if state == _FOLDING:
        stream = FoldedStream(_nodes(words), count)
    else:
        low, high, unit, length = (words.take() for _ in range(4))
        bits = words.block(-(-length // 8)).tobytes()[:length]
        stream = AddressSet(low, high, unit, count, bits if state == _SET else None)
    return Seen(pc, ordinal, _KINDS[kind], size, stream if count else None)


def _nodes(words: _Words) -> tuple[Node, ...]:
    return nodes_of_rows(words.block(words.take() * NODE_WORDS).view(np.int64).reshape(-1, NODE_WORDS).tolist())


def _order(words: _Words) -> SeenOrder | None:
    how = words.take()
    if how == _NO_ORDER:
        return None
    if how != _ORDERED:
        return SeenOrder(None, {}, _WHY_NOT[how])
    nodes = _nodes(words)
    stretches = words.block(words.take() * 3).view(np.int64).reshape(-1, 3).tolist()
    pieces = [tuple(words.block(words.take()).tolist()) for _ in range(words.take())]
    number = {name: k for k, (name, _, _) in enumerate(stretches)}
    return SeenOrder(nodes, {name: _run(stretches, pieces, number[name]) for name in _names(nodes)})


def _names(nodes: Sequence[Node]) -> set[int]:
    points = {node.address.const for node in nodes if isinstance(node, Point)}
    return points.union(*(_names(node.body) for node in nodes if isinstance(node, Loop)))


def _run(stretches: Sequence[Sequence[int]], pieces: Sequence[tuple[int, ...]], number: int) -> tuple[int, ...]:
    """The references of a stretch: those of its pieces, the last of which it names."""
    parts = []
    while number:
        _, number, piece = stretches[number]
        parts.append(pieces[piece])
    return tuple(reference for part in reversed(parts) for reference in part)
