"""The accesses of a source line, by the pieces of memory that it touches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.describe.source_view import _targets
from layout_advise.layoutalgebra.sets.nests import AddressSet
from layout_advise.tracer.objects.attribution import Attribution, ObjectTouch
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.trace.trace import Reference


def told(counts: list[int | None], total: int) -> list[tuple[str, int]]:
    """The names and counts of a reference that touches one block for each of ``counts``, ``total`` times together."""
    objects = tuple(MemoryObject("heap", f"b[{k}]", 64 * k, 64, None, 64 * k) for k in range(len(counts)))
    touches = tuple(ObjectTouch(k, count) for k, count in enumerate(counts))
    stream = AddressSet(0, 64 * len(counts) - 8, 8, total, None)
    reference = Reference(0, 0x1000, 0, "read", 8)
    rows = _targets(Attribution(objects, (touches,), (None,)), 0, {}, reference, stream)
    return [(name, count) for name, _, _, count in rows]


@given(st.lists(st.none() | st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 50))
def test_accesses_are_counted_once(counts: list[int | None], further: int) -> None:
    """A reference to a thousand blocks was told a thousand times, each time with all its accesses."""
    unknown = counts.count(None)
    total = sum(c for c in counts if c is not None) + (further if unknown else 0)
    rows = told(counts, total)
    assert sum(count for _, count in rows) == total
    assert len(rows) == len(counts) - max(unknown - 1, 0)


def test_blocks_that_share_accesses_are_one_row() -> None:
    assert told([None, None, 3, None], 10) == [("b[2]", 3), ("b[0] and 2 more", 7)]
    assert told([None], 10) == [("b[0]", 10)]
