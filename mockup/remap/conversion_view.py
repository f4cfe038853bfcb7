"""The fields that a conversion has to copy: in those whose old values may be read or must survive, back those written.

A field that the traced call only writes, and in every element, need not be copied in: nothing of its old values is left when
the call returns. At another call that may be otherwise; then bytes differ there that the comparison looks at (the buffers of
a compared run hold a pattern before the copy).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.derive.structure import Candidate, Field, Relayout, Structure
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.mockup.evidence.binding import Binding, Key
from layout_advise.mockup.evidence.streams import expand_array, residue
from layout_advise.mockup.remap.sites import RemapPlan

MOST_WRITES = 1 << 24
"""Streams of more accesses are not written out: such a field is copied in as if it were read."""

FieldKey = tuple[str, int]
"""(structure id, field number)."""


@dataclass(frozen=True, slots=True)
class View:
    """``inward`` is copied before the call, ``outward`` after it."""

    inward: frozenset[FieldKey]
    outward: frozenset[FieldKey]

    def names(self, candidate: Candidate, keys: frozenset[FieldKey]) -> tuple[str, ...]:
        """The names of ``keys`` in the order of the structures' fields."""
        return tuple(r.name_of(m) for r in candidate.relayouts for m in r.fields if (r.structure.id, m.field) in keys)


NOTHING = View(frozenset(), frozenset())


def view(candidate: Candidate, binding: Binding, plan: RemapPlan) -> View:
    """Returns what a temporary version of ``candidate`` copies around the call."""
    inward = {
        (r.structure.id, m.field) for r in candidate.relayouts for m in r.fields if m.field not in _overwritten(r, binding)
    }
    return View(frozenset(inward), frozenset(plan.written))


def _overwritten(relayout: Relayout, binding: Binding) -> frozenset[int]:
    """Numbers of the fields that the call only writes, in every element."""
    structure = relayout.structure
    if relayout.chosen is not None:
        return frozenset()
    keys = [key for key, name in binding.structure_of.items() if name == structure.id]
    return frozenset(
        m.field for m in relayout.fields if _is_overwritten(structure, structure.fields[m.field], keys, binding)
    )


def _is_overwritten(structure: Structure, field: Field, keys: list[Key], binding: Binding) -> bool:
    dense = all(a.stride == b.count * b.stride for a, b in pairwise(structure.dims))
    if field.reads or not dense or not 0 < field.writes <= MOST_WRITES:
        return False
    writes: list[tuple[FoldedStream, tuple[int, ...]]] = []
    for key in keys:
        reference, stream = binding.reference_of[key], binding.streams[key]
        held = _held(structure, field, reference.bytes, stream)
        if held is None or (held and (reference.kind != "write" or not isinstance(stream, FoldedStream))):
            return False
        if held and isinstance(stream, FoldedStream):
            writes.append((stream, held))
    if sum(stream.count * len(held) for stream, held in writes) < structure.count:
        return False  # the common case, as where borders are only read: nothing is written out
    written = np.zeros(structure.count, dtype=bool)
    for stream, held in writes:
        starts = (expand_array(stream).astype(np.int64) - structure.base) // structure.element_bytes
        for k in held:
            written[_inside(starts + k, structure.count)] = True
    return bool(written.all())


def _inside(elements: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return elements[(elements >= 0) & (elements < count)]


def _held(structure: Structure, field: Field, size: int, stream: Stream) -> tuple[int, ...] | None:
    """In which elements, counted from the one it starts in, an access of ``size`` bytes covers ``field``; None where it
    covers a piece of it, or where that is not known."""
    start = residue(stream, structure.base, structure.element_bytes)
    if start is None:
        return None
    held = []
    for k in range((start + size) // structure.element_bytes + 1):
        at = k * structure.element_bytes + field.offset
        if start <= at and at + field.bytes <= start + size:
            held.append(k)
        elif start < at + field.bytes and at < start + size:
            return None
    return tuple(held)
