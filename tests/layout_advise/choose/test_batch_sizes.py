"""How many short calls make a batch, and at which of them it begins, from given times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.choose.batch_sizes import better_place, size_and_start, ways_of
from layout_advise.choose.batches import CallBatch, TimedRun, may_be_learnt
from layout_advise.choose.by_time import Window
from layout_advise.choose.policy import CHOOSE
from layout_advise.reports.model.hotspot import Original
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.snapshot.between import Between
from layout_advise.tracer.snapshot.recorded_calls import RECORDED, RSP, Calls


def test_how_many_calls_make_a_batch() -> None:
    assert size_and_start([1000.0] * 4096, 100_000, None) == (2000, 2001)  # 2 ms; one batch goes before
    assert size_and_start([1000.0] * 4096, 100_000, 7) == (2000, 7)
    assert size_and_start([100.0] * 4096, 10**6, None) == (4096, 4097)  # no more are taken
    assert size_and_start([5.0] * 4096, 10**6, None) == (MAX_TIMED, MAX_TIMED + 1)  # but of calls that are too quick
    assert size_and_start([1.5] * 4096, 10**6, None) == (MAX_TIMED, MAX_TIMED + 1)
    assert size_and_start([1.0] * 4096, 10**6, None) == (0, 1)
    assert size_and_start([1000.0] * 400, 400, None) == (100, 101)  # three batches, and one before
    assert size_and_start([1000.0] * 40, 40, None)[0] == 0  # 10 µs
    assert size_and_start([], 0, None)[0] == 0
    assert size_and_start([500_000.0] * 4096, 100_000, None) == (4, 5)
    assert size_and_start([500_000.0] * 4096, 100_000, None, 16) == (16, 17)
    assert size_and_start([500_000.0] * 40, 40, None, 16) == (10, 11)


def test_a_batch_is_planned_by_the_time_of_all_its_calls() -> None:
    seldom = [20_000.0 if k % 80 == 0 else 0.0 for k in range(4096)]  # 250 ns on average, none at the median
    assert size_and_start(seldom, 100_000, None) == (CHOOSE.batch_calls, CHOOSE.batch_calls + 1)
    later = [0.0] * 2000 + [2000.0] * 2000  # 1 µs on average
    size, start = size_and_start(later, 100_000, None)
    assert 1900 < size < 2100
    assert sum(later[start - 1 : start - 1 + size]) >= 20_000
    disturbed = [1000.0] * 4095 + [8e6]
    assert size_and_start(disturbed, 100_000, None) == (2000, 2001)


@given(
    st.lists(st.sampled_from([0.0, 10.0, 300.0, 5000.0]), min_size=1, max_size=300), st.integers(1, 3000), st.integers(1, 50)
)
def test_all_batches_are_within_the_calls(times: list[float], more: int, begin: int) -> None:
    calls = begin - 1 + len(times) + more
    size, start = size_and_start(times, calls, None, begin=begin)
    if size:
        assert begin + size <= start
        assert start + 3 * size - 1 <= calls


@pytest.mark.parametrize(
    ("steady", "in_situ", "learnt"),
    [(1e5, 1.3e5, True), (1.3e5, 1e5, False), (2e6, 3e6, False), (None, 1e5, False), (1e5, None, False)],
)
def test_a_call_that_is_quicker_repeated_may_be_learnt(steady: float | None, in_situ: float | None, learnt: bool) -> None:
    assert may_be_learnt(Original(2e5, steady, in_situ)) is learnt


def test_a_shorter_batch_has_the_times_of_its_calls() -> None:
    calls = Calls(5, bytes(RECORDED * 3 * 40))
    batch = CallBatch(40, calls, tuple(1000.0 * k for k in range(40)), (TimedRun(tuple(range(40))),) * 2)
    shorter = batch.shortened()
    assert shorter is not None
    assert (shorter.size, len(shorter.calls), len(shorter.each_ns), len(shorter.runs[1].ns)) == (10, 30, 10, 10)
    assert shorter.firsts == (5, 15, 25)
    assert shorter.shortened() is None  # two calls of 500 ns


def test_a_batch_begins_at_known_calls_where_those_at_its_place_are_not_like_them() -> None:
    known = Window(1, (1000.0,) * 4096)
    assert better_place(known, Window(4097, (900.0,) * 4096), 4096).first == 4097
    assert better_place(known, Window(4097, (1.0,) * 4096), 4096).first == 1  # too quick to be timed
    assert better_place(known, Window(4097, (50_000.0,) * 4096), 4096).first == 1  # another phase of the program
    assert better_place(known, Window(4097, (900.0,) * 100), 4096).first == 1  # it ends before
    assert better_place(Window(1, (1.0,) * 4096), Window(4097, (900.0,) * 4096), 4096).first == 4097


@given(depths=st.lists(st.integers(0, 2), min_size=30, max_size=90), gaps=st.integers(0, 90), enough=st.floats(1, 12))
def test_longer_batches_follow_those_of_which_more_is_known(depths: list[int], gaps: int, enough: float) -> None:
    data = b"".join(bytes(8 * RSP) + (4096 - 64 * d).to_bytes(8, "little") + bytes(RECORDED - 8 * RSP - 8) for d in depths)
    ends = np.arange(1, min(gaps, len(depths)) + 1, dtype=np.uint64)
    calls = Calls(7, data, Between(np.zeros(len(ends), np.uint64), ends, np.zeros(0, np.uint64), "no room"))
    ways = ways_of(calls, len(depths) // 3, enough)
    sizes = [size for _, size in ways]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == len(depths) // 3
    assert all(len(part) >= 3 * size or size == sizes[-1] for part, size in ways)
    known, _ = ways[0]
    if min(gaps, len(depths)) // 3 >= max(2, enough):
        assert known.between is not None
