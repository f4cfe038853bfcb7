"""The lifted hotspot and its trace as if the objects behind an array of pointers lay in one array, at its own address.

The pointer in slot k stands for element k: an address ``pointer + rest``, whose pointer was loaded from ``slot``, becomes
``base + (slot - table) / stride * element + rest``. That is linear in what the slot's address is linear in, so that all that
is done with an array of structures is done with it. Nothing lies at these addresses: only mock-ups that give the structure a
new layout are made of them, and their copying in and out goes through the pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.layoutalgebra.sets.spans import addresses, spans
from layout_advise.mockup.evidence.binding import Access, Key, accesses, key_of
from layout_advise.mockup.evidence.pointer_tables import Ints, PointerTable, pointer_loads, pointer_of
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.mockup.ir import lifted as ir
from layout_advise.mockup.ir.lifted import Atomic, Item, Lifted, Linear, Load, Operand, Store
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.trace.trace import Trace

NOWHERE = 1 << 46
"""Where the arrays are thought to lie: between what is linked at fixed addresses and what is not."""
APART = 1 << 40
_WORD = 1 << 64


def base_of(number: int) -> int:
    """The address of the array of table ``number``."""
    return NOWHERE + number * APART


def element_bytes(table: PointerTable) -> int:
    """The size of an element: that of an object, made a multiple of the distance of two pointers."""
    return -(-table.slots.bytes // table.slots.stride) * table.slots.stride


def gathered(lifted: Lifted, trace: Trace, table: PointerTable, base: int) -> tuple[Lifted, Trace]:
    """``lifted`` and ``trace`` with all that goes through ``table`` at the places in the array at ``base``."""
    known = pointer_loads(lifted)
    streams = dict(zip(((r.pc, r.operand) for r in trace.references), trace.streams, strict=True))
    offsets = _offsets(lifted, table)
    moved = tuple(
        _moved(stream, table, base, offsets.get(key), streams) if key in table.reached and stream is not None else stream
        for key, stream in streams.items()
    )
    return replace(lifted, body=_body(lifted.body, known, table, base)), replace(trace, streams=moved)


def _body(body: Sequence[Item], known: dict[int, Load], table: PointerTable, base: int) -> tuple[Item, ...]:
    found: list[Item] = []
    for item in body:
        if isinstance(item, ir.LiftedLoop):
            item = replace(item, body=_body(item.body, known, table, base))
        elif isinstance(item, Load | Store | Atomic) and key_of(item) in table.reached:
            load = pointer_of(item, known)
            assert load is not None  # find_tables has seen to it
            item = replace(item, address=_address(item, load, table, base))
        found.append(item)
    return tuple(found)


def _address(access: Access, load: Load, table: PointerTable, base: int) -> Linear:
    factor = element_bytes(table) // table.slots.stride
    terms: dict[Operand, int] = {atom: coef for atom, coef in access.address.terms if atom != load.value}
    for atom, coef in load.address.terms:
        terms[atom] = (terms.get(atom, 0) + factor * coef) % _WORD
    const = access.address.const + base + factor * (load.address.const - table.slots.table)
    return Linear(const % _WORD, tuple((atom, coef) for atom, coef in terms.items() if coef))


def _offsets(lifted: Lifted, table: PointerTable) -> dict[Key, tuple[Key, int]]:
    """By reference: the reference that loads its pointer, and its distance from the object's start, where all its accesses
    have these in common."""
    known = pointer_loads(lifted)
    found: dict[Key, set[tuple[Key, int] | None]] = {}
    for access in accesses(lifted.body):
        if key_of(access) not in table.reached:
            continue
        load = pointer_of(access, known)
        plain = load is not None and len(access.address.terms) == 1
        at = (access.address.const - access.part + (1 << 63)) % _WORD - (1 << 63)
        found.setdefault(key_of(access), set()).add((key_of(load), at) if load is not None and plain else None)
    return {key: one for key, ways in found.items() if len(ways) == 1 and (one := next(iter(ways))) is not None}


def _moved(
    stream: Stream, table: PointerTable, base: int, offset: tuple[Key, int] | None, streams: dict[Key, Stream | None]
) -> Stream:
    """The stream of the places in the array: in the order of the pointers' loads where there is one access for each, else
    in its own."""
    if isinstance(stream, FoldedStream):
        own = _places(expand_array(stream).astype(np.int64), table, base)
    else:
        parts = [addresses(span) for span in spans(stream)]
        own = _places(np.concatenate([part for part in parts if part is not None]), table, base)
    source = streams.get(offset[0]) if offset is not None else None
    if offset is not None and isinstance(source, FoldedStream) and source.count == stream.count:
        scaled = _scaled(source, table, base + offset[1])
        if scaled is not None:
            made = expand_array(scaled).astype(np.int64)
            same = (made, own) if isinstance(stream, FoldedStream) else (np.unique(made), np.sort(own))
            if np.array_equal(*same):
                return scaled
    return fold(own.astype(np.uint64)) if isinstance(stream, FoldedStream) else _set(np.sort(own), stream.count)


def _places(every: Ints, table: PointerTable, base: int) -> Ints:
    order = np.argsort(table.objects)
    starts = table.objects[order]
    at = np.searchsorted(starts, every, "right") - 1
    return base + element_bytes(table) * order[at] + (every - starts[at])


def _scaled(stream: FoldedStream, table: PointerTable, base: int) -> FoldedStream | None:
    """The places of the elements whose slots ``stream`` goes over; None where it goes beside them."""
    slots, factor = table.slots, element_bytes(table) // table.slots.stride

    def one(node: Node) -> Node:
        if isinstance(node, Loop):
            return Loop(node.trip, tuple(one(child) for child in node.body))
        distance, coefs = node.address.const - slots.table, node.address.coefs
        return Point(Affine(base + factor * distance, tuple(factor * c for c in coefs)))

    return FoldedStream(tuple(one(node) for node in stream.nodes), stream.count)


def _set(every: Ints, count: int) -> AddressSet:
    """``every`` (ascending, each once) without order, as it was traced ``count`` times."""
    low, high = int(every[0]), int(every[-1])
    if low == high:
        return AddressSet(low, high, 0, count, b"\1")
    step = int(np.gcd.reduce(np.diff(every)))
    bits = np.zeros((high - low) // step + 1, np.bool_)
    bits[(every - low) // step] = True
    return AddressSet(low, high, step, count, np.packbits(bits, bitorder="little").tobytes())
