"""From the addresses of one process of a program to those of another one that made the same calls.

Heap blocks correspond where number, size and allocation site agree, code and globals where the file is the same, frames by
their distance from the stack pointer at the hotspot's entry, thread-local data by that from the thread's control block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.layoutalgebra.sets.spans import hull
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.trace.trace import Allocation, Mapping, Registers

NOWHERE = 1 << 44
"""Added to addresses that correspond to nothing: there they are no part of any object of the other process."""

EXPAND_LIMIT = 1 << 20
"""Streams over several objects are taken apart up to this many addresses."""

RSP = 4
_BITMAP_BYTES = 64 << 20
_GAP = 1 << 16


@dataclass(frozen=True, slots=True)
class Process:
    """A process at the hotspot's entry, as far as translating addresses needs it."""

    mappings: tuple[Mapping, ...]
    allocations: tuple[Allocation, ...]
    registers: Registers

    def mapping_at(self, address: int) -> Mapping | None:
        """The mapping that holds ``address``."""
        return next((m for m in self.mappings if m.start <= address < m.end), None)


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    delta: int


class AddressMap:
    """Maps the bytes of ``source`` to those of ``target``. ``blocks`` of the heap correspond, ``strangers`` do not.

    The blocks ``born`` afterwards, which the target does not have, are taken to ``NOWHERE`` as they are, without what lies
    on a block that does correspond."""

    def __init__(self, source: Process, target: Process, born: Sequence[Allocation] = ()) -> None:
        modules = _modules(source, target)
        code = _Lookup(modules)
        pairs = _blocks(source, target, code)
        self.blocks = len(pairs)
        self.strangers = len(source.allocations) - len(pairs)
        fixed = [_around(source, target, RSP), _around(source, target, None)]
        layers = [_joined(pairs, source), [p for p in fixed if p is not None], modules]
        if born:
            layers[:0] = [pairs, [_Piece(a.address, a.address + max(a.bytes, 1), NOWHERE) for a in born]]
        self._lookup = _Lookup([piece for layer in reversed(layers) for piece in layer])

    def delta(self, low: int, high: int) -> int | None:
        """The number to add to every address in ``low`` .. ``high`` (both included); ``None`` where that is not one
        number."""
        return self._lookup.delta(low, high)

    def address(self, address: int) -> int | None:
        """The address in the target, ``None`` where nothing corresponds."""
        delta = self.delta(address, address)
        return None if delta is None else address + delta

    def many(self, addresses: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """All of ``addresses`` translated, and how many of them correspond to nothing (they are moved to ``NOWHERE``)."""
        deltas = self._lookup.deltas(addresses)
        lost = deltas == _Lookup.NONE
        return np.where(lost, addresses + NOWHERE, addresses + deltas), int(lost.sum())


class _Lookup:
    """Pieces as a sorted table without overlaps; later ones lie over earlier ones."""

    NONE = np.iinfo(np.int64).min

    def __init__(self, pieces: Sequence[_Piece]) -> None:
        edges = sorted({edge for p in pieces for edge in (p.start, p.end)})
        index = {edge: i for i, edge in enumerate(edges)}
        deltas = np.full(len(edges) + 1, self.NONE, dtype=np.int64)
        for p in pieces:
            deltas[index[p.start] + 1 : index[p.end] + 1] = p.delta
        keep = [i for i in range(len(edges)) if deltas[i + 1] != deltas[i]]
        self._edges = [edges[i] for i in keep]
        self._deltas = np.concatenate([deltas[:1], deltas[[i + 1 for i in keep]]]) if keep else deltas[:1]
        self._table = np.array(self._edges, dtype=np.int64)

    def delta(self, low: int, high: int) -> int | None:
        at = bisect_right(self._edges, low)
        found = int(self._deltas[at])
        return None if found == self.NONE or bisect_right(self._edges, high) != at else found

    def deltas(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._deltas[np.searchsorted(self._table, addresses, side="right")]


def _bases(process: Process) -> dict[str, int]:
    found: dict[str, int] = {}
    for m in process.mappings:
        if m.path.startswith("/"):
            found.setdefault(m.path, m.start - m.offset)
    return found


def _modules(source: Process, target: Process) -> list[_Piece]:
    """Mapped files, with the anonymous mapping behind each (the rest of .bss)."""
    theirs = _bases(target)
    own = _bases(source)
    pieces: list[_Piece] = []
    ordered = sorted(source.mappings, key=lambda m: m.start)
    for m, following in zip(ordered, [*ordered[1:], None], strict=True):
        if m.path not in theirs or m.path not in own:
            continue
        delta = theirs[m.path] - own[m.path]
        pieces.append(_Piece(m.start, m.end, delta))
        beyond = target.mapping_at(m.end + delta)
        if following and not following.path.startswith("/") and following.start == m.end and beyond and not beyond.path:
            pieces.append(_Piece(m.end, min(following.end, beyond.end - delta), delta))
    return pieces


def _blocks(source: Process, target: Process, code: _Lookup) -> list[_Piece]:
    by_order = {a.order: a for a in target.allocations}
    pairs = []
    for mine in source.allocations:
        other = by_order.get(mine.order)
        if other is None or other.bytes != mine.bytes:
            continue
        shift = code.delta(mine.site, mine.site)
        if shift is not None and mine.site + shift == other.site:
            pairs.append(_Piece(mine.address, mine.address + max(mine.bytes, 1), other.address - mine.address))
    return sorted(pairs, key=lambda p: p.start)


def _joined(pairs: list[_Piece], source: Process) -> list[_Piece]:
    """Neighbouring blocks that move alike, together with what lies between them (the allocator's own words)."""
    joined: list[_Piece] = []
    for piece in pairs:
        last = joined[-1] if joined else None
        if last is not None and last.delta == piece.delta and piece.start - last.end < _GAP:
            mapping = source.mapping_at(last.start)
            if mapping is not None and piece.end <= mapping.end:
                joined[-1] = _Piece(last.start, piece.end, piece.delta)
                continue
        joined.append(piece)
    return joined


def _around(source: Process, target: Process, register: int | None) -> _Piece | None:
    """The mapping around the stack pointer, or (``None``) around the thread's control block. Both processes' mappings bound
    it above; the stack grows downwards as needed."""
    here, there = (r.fs_base if register is None else r.gpr[register] for r in (source.registers, target.registers))
    mine, other = source.mapping_at(here), target.mapping_at(there)
    if mine is None or other is None:
        return None
    delta = there - here
    start = mine.start if register == RSP else max(mine.start, other.start - delta)
    return _Piece(start, min(mine.end, other.end - delta), delta)


@dataclass(frozen=True, slots=True)
class Moved:
    """A translated stream. ``lost`` of its accesses touched memory that corresponds to nothing (``None``: some did)."""

    stream: Stream
    lost: int | None


class _SeveralDeltas(Exception):
    pass


def move(stream: Stream, to: AddressMap) -> Moved:
    """``stream`` at the addresses of the target. The order is kept, and folding too wherever a nest stays in one object."""
    if isinstance(stream, AddressSet):
        return _move_set(stream, to)
    try:
        return Moved(FoldedStream(_nodes(stream.nodes, (), to), stream.count), 0)
    except _SeveralDeltas:
        pass
    if stream.count <= EXPAND_LIMIT:
        moved, lost = to.many(np.fromiter(stream.expand(), dtype=np.int64, count=stream.count))
        return Moved(fold(moved.astype(np.uint64)), lost)
    low, high = _hull(stream.nodes)
    return Moved(_hull_only(low, high, stream.count, to), None)


def _nodes(nodes: Sequence[Node], trips: tuple[Affine, ...], to: AddressMap) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            found.append(Loop(node.trip, _nodes(node.body, (*trips, node.trip), to)))
            continue
        bounds = hull(node.address, trips)
        delta = 0 if bounds is None else to.delta(*bounds)
        if delta is None:
            raise _SeveralDeltas
        found.append(Point(Affine(node.address.const + delta, node.address.coefs)))
    return tuple(found)


def _hull(nodes: Sequence[Node], trips: tuple[Affine, ...] = ()) -> tuple[int, int]:
    bounds = []
    for node in nodes:
        found = _hull(node.body, (*trips, node.trip)) if isinstance(node, Loop) else hull(node.address, trips)
        if found is not None:
            bounds.append(found)
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _hull_only(low: int, high: int, count: int, to: AddressMap) -> AddressSet:
    """A set of which only the ends are known, an inexact one."""
    ends = sorted(NOWHERE + a if to.address(a) is None else to.address(a) or 0 for a in (low, high))
    return AddressSet(ends[0], ends[1], 1, count, None)


def _move_set(stream: AddressSet, to: AddressMap) -> Moved:
    delta = to.delta(stream.minimum, stream.maximum)
    if delta is not None:
        low, high = stream.minimum + delta, stream.maximum + delta
        clusters = tuple(replace(c, minimum=c.minimum + delta, maximum=c.maximum + delta) for c in stream.clusters)
        return Moved(AddressSet(low, high, stream.gcd, stream.count, stream.bitmap, clusters), 0)
    if stream.bitmap is None:
        return Moved(_hull_only(stream.minimum, stream.maximum, stream.count, to), None)
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(stream.bitmap, dtype=np.uint8), bitorder="little")).astype(np.int64)
    moved, lost = to.many(stream.minimum + stream.gcd * bits)
    low, high = int(moved.min()), int(moved.max())
    gcd = int(np.gcd.reduce(moved - low))
    steps = (high - low) // gcd if gcd else 0
    bitmap = None
    if steps // 8 < _BITMAP_BYTES:
        held = np.zeros((steps // 8 + 1) * 8, dtype=np.uint8)
        held[(moved - low) // gcd if gcd else 0] = 1
        bitmap = np.packbits(held, bitorder="little").tobytes()
    return Moved(AddressSet(low, high, gcd, stream.count, bitmap), lost if not lost else None)


def notes_of(to: AddressMap, lost: Sequence[int]) -> tuple[str, ...]:
    """The notes on a translation; ``lost`` are the instructions whose accesses were not all translated."""
    notes = []
    if to.strangers:
        every = to.strangers + to.blocks
        notes.append(
            f"{to.strangers} of {every} heap blocks have no counterpart in the parked program: it does not allocate alike "
            "in every run"
        )
    if lost:
        places = ", ".join(f"{pc:#x}" for pc in lost[:3])
        notes.append(f"{len(lost)} references touch memory that the parked program does not have (at {places})")
    return tuple(notes)
