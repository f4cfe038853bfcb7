"""Arrays of pointers to objects that lie anywhere: found in the lifted code, proved by the trace and the program's memory.

``p[i]->x`` is two accesses: the pointer is loaded from slot i of a *table*, and the object is reached through it. In the
lifted code the second address is the first one's value plus a constant; that each traced address is one of the table's
pointers plus an offset within an object is checked here. Where two pointers are equal, where objects overlap, where the call
writes to the table, or reaches the objects in another way, element i has no place of its own: the table is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.scattered_elements import Slots
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.layoutalgebra.sets.spans import addresses, spans
from layout_advise.mockup.evidence.binding import Access, Key, accesses, key_of
from layout_advise.mockup.evidence.pools import pieces_of
from layout_advise.mockup.evidence.streams import expand_array, hull
from layout_advise.mockup.ir.lifted import Item, Lifted, LiftedLoop, Load, Val
from layout_advise.tracer.trace.trace import Allocation, Reference, Trace

FEWEST = 16
"""A table of fewer pointers is none: a few pointers are a few objects."""
MOST = 1 << 22
"""Tables of more slots are not read."""
LARGEST_OBJECT = 4096
"""Larger objects (rows of a matrix, say) lie together by themselves."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PointerTable:
    """``objects[k]`` is what slot k holds (0: a null pointer), each with ``slots.bytes`` bytes of its own. ``loads`` are the
    references that read the slots, ``reached`` those that go through the pointers read."""

    slots: Slots
    objects: Ints = field(repr=False)
    loads: frozenset[Key]
    reached: frozenset[Key]

    @property
    def count(self) -> int:
        """Number of slots."""
        return len(self.objects)

    @property
    def present(self) -> Ints:
        """The objects' addresses, ascending."""
        return np.sort(self.objects[self.objects != 0])


@dataclass(frozen=True, slots=True)
class RefusedTable:
    """An array of pointers at ``table`` that is not taken for a table, and why (``reason`` is the end of a sentence)."""

    table: int
    reason: str


class _No(Exception):
    """Why a group of loads is no table."""


def pointer_loads(lifted: Lifted) -> dict[int, Load]:
    """By number of the value: the loads inside loops whose value an address starts from."""
    inside = {load.value.number: load for load in _loads(lifted.body, False) if load.value.ty == "i64" and not load.lanes}
    terms = [term for access in accesses(lifted.body) for term in access.address.terms]
    used = {atom.number for atom, coef in terms if isinstance(atom, Val) and coef == 1}
    return {number: load for number, load in inside.items() if number in used}


def pointer_of(access: Access, known: dict[int, Load]) -> Load | None:
    """The load whose value the access's address starts from; None where there is none, or more than one."""
    terms = access.address.terms
    found = [known[atom.number] for atom, coef in terms if isinstance(atom, Val) and coef == 1 and atom.number in known]
    return found[0] if len(found) == 1 else None


def _loads(body: Sequence[Item], inside: bool) -> Iterator[Load]:
    for item in body:
        if isinstance(item, Load) and inside:
            yield item
        elif isinstance(item, LiftedLoop):
            yield from _loads(item.body, True)


def find_tables(
    lifted: Lifted,
    trace: Trace,
    read: Callable[[int, int], bytes],
    declared: Callable[[int], int | None] = lambda address: None,
    within: Sequence[Slots] = (),
) -> tuple[tuple[PointerTable, ...], tuple[RefusedTable, ...]]:
    """The tables that the traced call goes through, and what looked like one.

    ``read(address, size)`` gives memory of the program as it is at the call's entry; ``declared(address)`` the declared size
    of the object there. ``within`` are tables known from another call: where this call uses a part of the slots of
    one, it is found with all of them again.
    """
    pairs = zip(trace.references, trace.streams, strict=True)
    streams = {(r.pc, r.operand): s for r, s in pairs if s is not None and s.count}
    known = {number: load for number, load in pointer_loads(lifted).items() if key_of(load) in streams}
    found: list[PointerTable] = []
    refused: list[RefusedTable] = []
    for loads in _groups(known.values(), streams, trace.allocations):
        low = min(hull(streams[key])[0] for key in loads)
        try:
            table = _table(lifted, trace, streams, known, loads, read, declared, within)
            if table is not None:
                found.append(table)
        except _No as why:
            refused.append(RefusedTable(low, str(why)))
    deep = [t for t in found if any(t.loads & other.reached for other in found if other is not t)]
    refused += [RefusedTable(t.slots.table, "the pointers themselves are reached through pointers") for t in deep]
    return tuple(t for t in found if t not in deep), tuple(refused)


def _groups(loads: Iterable[Load], streams: dict[Key, Stream], blocks: Sequence[Allocation]) -> list[frozenset[Key]]:
    """Loads of one table: in one heap block, or from places between each other."""
    starts = np.array([b.address for b in blocks], np.int64)
    order = np.argsort(starts)
    spans_: list[tuple[int, int, Key]] = []
    for key in {key_of(load) for load in loads}:
        low, high = hull(streams[key])
        at = int(np.searchsorted(starts[order], low, "right")) - 1
        if at >= 0 and low < (block := blocks[int(order[at])]).address + block.bytes and high < block.address + block.bytes:
            low, high = block.address, block.address + block.bytes - 1
        spans_.append((low, high, key))
    groups: list[set[Key]] = []
    end = -1
    for low, high, key in sorted(spans_):
        if not groups or low > end:
            groups.append(set())
        groups[-1].add(key)
        end = max(end, high)
    return [frozenset(group) for group in groups]


def _table(
    lifted: Lifted,
    trace: Trace,
    streams: dict[Key, Stream],
    known: dict[int, Load],
    loads: frozenset[Key],
    read: Callable[[int, int], bytes],
    declared: Callable[[int], int | None],
    within: Sequence[Slots],
) -> PointerTable | None:
    """The table that ``loads`` read; None where too few pointers are read for one. Raises _No."""
    used = np.unique(np.concatenate([_every(streams[key]) for key in loads]))
    if len(used) < FEWEST:
        return None
    through: dict[Key, set[bool]] = {}
    for access in accesses(lifted.body):
        load = pointer_of(access, known)
        through.setdefault(key_of(access), set()).add(load is not None and key_of(load) in loads)
    reached = frozenset(key for key, ways in through.items() if True in ways and key in streams)
    if not reached:
        return None
    if any(False in through[key] for key in reached):
        raise _No("one instruction goes through them and through other pointers")
    table, stride, count = _grid(used, within)
    objects = _pointers(read, table, stride, count)
    size = _size(objects, trace.allocations, declared)
    _apart(objects, size)
    slots = Slots(table, stride, count, size, int(objects[objects != 0][0]))
    result = PointerTable(slots, objects, loads, reached)
    _check_streams(result, trace, streams)
    return result


def _every(stream: Stream) -> Ints:
    """The addresses of a stream, each once."""
    if isinstance(stream, FoldedStream):
        return np.unique(expand_array(stream).astype(np.int64))
    parts = [addresses(span) for span in spans(stream)]
    if any(part is None for part in parts):
        raise _No("their addresses are not known exactly")
    return np.unique(np.concatenate([part for part in parts if part is not None]))


def _grid(used: Ints, within: Sequence[Slots]) -> tuple[int, int, int]:
    """Address of the first slot, their distance, and how many there are."""
    low, high = int(used[0]), int(used[-1])
    stride = gcd(*(int(d) for d in np.unique(np.diff(used))))
    for other in within:
        end = other.table + (other.count - 1) * other.stride
        if other.table <= low and high <= end and (low - other.table) % other.stride == 0 and stride % other.stride == 0:
            return other.table, other.stride, other.count
    count = (high - low) // stride + 1
    if stride % 8 or count > MOST or count > 4 * len(used):
        raise _No("the pointers themselves lie in no array")
    return low, stride, count


def _pointers(read: Callable[[int, int], bytes], table: int, stride: int, count: int) -> Ints:
    try:
        data = read(table, (count - 1) * stride + 8)
    except (LayoutAdviseError, OSError) as error:
        raise _No("they cannot be read") from error
    words = np.frombuffer(data, np.uint8)
    at = stride * np.arange(count)[:, None] + np.arange(8)[None, :]
    found: Ints = words[at].copy().view(np.int64)[:, 0]
    return found


def _size(objects: Ints, blocks: Sequence[Allocation], declared: Callable[[int], int | None]) -> int:
    """Bytes of an object: of the heap blocks that the pointers lead to where each has one to itself, else as declared."""
    present = objects[objects != 0]
    if len(present) < FEWEST:
        raise _No("most of them are null")
    order = sorted(blocks, key=lambda b: b.address)
    starts, sizes = np.array([b.address for b in order], np.int64), np.array([b.bytes for b in order], np.int64)
    at = np.searchsorted(starts, present, "right") - 1
    lost = np.flatnonzero((at < 0) | (present >= starts[at] + sizes[at]) if len(order) else np.ones(len(present), bool))
    if len(lost):
        raise _No(f"one of them leads to {int(present[lost[0]]):#x}, which is no live block of the heap")
    smallest = int((starts[at] + sizes[at] - present).min())
    known = declared(int(present[0]))
    own = bool((starts[at] == present).all())
    size = smallest if own else min(known or 0, smallest)
    if size < 1:
        raise _No("they lead into larger blocks, and how large an object is is not known")
    if size > LARGEST_OBJECT:
        raise _No(f"the objects have {size} bytes each")
    return size


def _apart(objects: Ints, size: int) -> None:
    present = np.sort(objects[objects != 0])
    distances = np.diff(present)
    if (distances == 0).any():
        raise _No("two of them are equal: the object would be stored twice")
    if (distances < size).any():
        raise _No("two of the objects overlap")


def _check_streams(table: PointerTable, trace: Trace, streams: dict[Key, Stream]) -> None:
    """All that goes through the pointers stays within objects, nothing else touches these, and nothing writes the slots."""
    slots, present = table.slots, table.present
    places = slots.table + slots.stride * np.arange(table.count, dtype=np.int64)
    for reference in trace.references:
        key = reference.pc, reference.operand
        if key not in streams:
            continue
        if key in table.reached:
            offsets = _every(streams[key])
            at = np.searchsorted(present, offsets, "right") - 1
            if (at < 0).any() or (offsets + reference.bytes > present[at] + slots.bytes).any():
                raise _No(f"the reference at {reference.pc:#x} goes beyond the objects")
        elif _touches(streams[key], reference, present, slots.bytes):
            raise _No(f"the reference at {reference.pc:#x} reaches the objects in another way")
        if reference.kind != "read" and _touches(streams[key], reference, places, 8):
            raise _No(f"the call changes them (at {reference.pc:#x})")


def _touches(stream: Stream, reference: Reference, starts: Ints, size: int) -> bool:
    """Returns whether an access of the stream has a byte of one of the pieces of ``size`` bytes at ``starts``
    (ascending)."""
    for span in spans(stream):
        if not _meets(np.array([span.low]), np.array([span.high + reference.bytes]), starts, size):
            continue
        every = addresses(span)
        if every is None or _meets(every, every + reference.bytes, starts, size):
            return True
    return False


def _meets(low: Ints, end: Ints, starts: Ints, size: int) -> bool:
    at = np.searchsorted(starts, end, "left") - 1
    return bool(((at >= 0) & (starts[np.maximum(at, 0)] + size > low)).any())


def covering(table: PointerTable) -> tuple[tuple[int, int], ...]:
    """Memory (start, end) of the objects, as :func:`~layout_advise.mockup.evidence.pools.pieces_of` has it."""
    return pieces_of(table.present, table.present + table.slots.bytes)
