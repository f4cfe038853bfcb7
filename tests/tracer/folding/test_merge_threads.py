"""Streams of several threads as one: the same addresses, counted once each."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Stream
from layout_advise.layoutalgebra.sets.spans import addresses, spans
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.folding.merge_threads import joined

BASE = 1 << 20

lists = st.lists(st.integers(BASE, BASE + 500), min_size=1, max_size=20)


def as_set(values: list[int]) -> AddressSet:
    """What a stream that does not fold becomes; the bitmap bit by bit."""
    step = 4
    values = [BASE + (v - BASE) * step for v in values]
    low, high = min(values), max(values)
    bits = sum(1 << ((v - low) // step) for v in set(values))
    size = (high - low) // step // 8 + 1
    return AddressSet(low, high, step, len(values), bits.to_bytes(size, "little"))


def touched(stream: Stream) -> set[int]:
    found: set[int] = set()
    for span in spans(stream):
        every = addresses(span)
        assert every is not None
        found.update(every.tolist())
    return found


@settings(max_examples=100)
@given(st.lists(st.tuples(lists, st.booleans()), min_size=1, max_size=4))
def test_joined_streams_touch_what_each_does(parts: list[tuple[list[int], bool]]) -> None:
    streams = [fold(values) if nested else as_set(values) for values, nested in parts]
    whole = joined(streams)
    assert whole is not None
    assert whole.count == sum(len(values) for values, _ in parts)
    assert touched(whole) == set().union(*(touched(stream) for stream in streams))
    if all(isinstance(stream, FoldedStream) for stream in streams):
        assert isinstance(whole, FoldedStream)
        assert list(whole.expand()) == [v for values, _ in parts for v in values]
    assert joined([]) is None
