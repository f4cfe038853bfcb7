"""Sets whose addresses lie as far apart as the address space is wide: exactly those that were recorded, and how often."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.footprints import touched
from layout_advise.layoutalgebra.sets.nests import AddressSet
from layout_advise.layoutalgebra.sets.spans import addresses, spans, within
from layout_advise.mockup.evidence.streams import contains, distinct, residues
from layout_advise.tracer.folding import clusters
from layout_advise.tracer.folding.fold import fold_records
from layout_advise.tracer.trace.stream_codec import plain_stream, stream_of

HEAP, MAPPED, STACK = 0x5555_5555_9000, 0x7FFF_F7A0_0010, 0x7FFF_FFFF_E000


def scattered(seed: int, count: int = 6000) -> list[int]:
    """Random places in three parts of memory: no loops, and a bitmap over all of it would take terabytes."""
    source = random.Random(seed)
    return [source.choice((HEAP, MAPPED, STACK)) + 8 * source.randrange(4000) for _ in range(count)]


@given(st.integers(0, 10_000))
def test_the_places_in_each_part_of_memory(seed: int) -> None:
    every = scattered(seed)
    near = [HEAP + 24 * k for k in range(50)]
    words = every + [a | 1 << 48 for a in near]
    found, regular = fold_records(np.array(words, np.uint64), 2)
    assert isinstance(found, AddressSet)
    assert found.exact
    assert found.bitmap is None
    assert found.count == len(every)
    assert regular is not None
    assert not isinstance(regular, AddressSet)
    listed = [places.tolist() for span in spans(found) if (places := addresses(span)) is not None]
    assert len(listed) == 3
    assert [a for part in listed for a in part] == sorted(set(every))
    assert distinct(found) == len(set(every))
    assert contains(found, np.array(sorted(set(every)), np.uint64))
    assert not contains(found, np.array([HEAP + 4], np.uint64))
    assert set(residues(found, HEAP, 32) or ()) == {(a - HEAP) % 32 for a in every}
    whole = touched(found)
    assert whole is not None
    assert whole.chosen is not None
    assert whole.chosen.tolist() == sorted(set(every))
    assert stream_of(plain_stream(found)) == found


@given(st.integers(0, 10_000))
def test_how_often_a_part_of_memory_is_accessed_is_known(seed: int) -> None:
    every = scattered(seed)
    (found,) = fold_records(np.array(every, np.uint64), 1)
    assert found is not None
    times = Counter(a for a in every if a < MAPPED)
    part = within(found, HEAP, HEAP + (1 << 20))
    assert isinstance(part, AddressSet)
    assert part.bitmap is not None
    assert part.count == sum(times.values())
    assert distinct(part) == len(times)


def test_too_many_places_stay_an_inexact_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "MOST_PLACES", 100)
    (found,) = fold_records(np.array(scattered(1), np.uint64), 1)
    assert isinstance(found, AddressSet)
    assert not found.exact
    assert within(found, HEAP, MAPPED) is None
