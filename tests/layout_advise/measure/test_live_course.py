"""The calls of a trial in their order, folded, from runs with known times."""

from __future__ import annotations

import numpy as np
import pytest

from layout_advise.measure.live.outcome import MOST_STRETCHES, course
from layout_advise.tracer.live.outcome import MOCKUP, ORIGINAL, PASSED, LiveRun


def run(times: np.ndarray, role: int | np.ndarray, copying: np.ndarray | None = None) -> LiveRun:
    roles = np.broadcast_to(np.uint64(role), times.shape).copy()
    return LiveRun(len(times), 0, 0, 0, 0, "", times.astype(float), roles, 0, 1.0, 1.0, b"", b"", 0, copying)


def test_few_calls_are_kept_one_by_one() -> None:
    found = course(7, run(np.array([10, 20, 30]), ORIGINAL), run(np.array([5, 6, 7]), MOCKUP, np.array([1.0, 0.0, 2.0])))
    assert found is not None
    assert (found.first, found.calls, found.stretch) == (7, 3, 1)
    assert (found.original_ns, found.layout_ns, found.copying_ns) == ((10, 20, 30), (5, 6, 7), (1, 0, 2))
    assert found.left_out == (0, 0, 0)


@pytest.mark.parametrize("calls", [119, 120, 121, 1000, 100_003])
def test_many_calls_are_folded_to_medians(calls: int) -> None:
    own = np.arange(calls) + 1.0
    found = course(1, run(own, ORIGINAL), run(own / 2, MOCKUP, np.full(calls, 3.0)))
    assert found is not None
    assert len(found.original_ns) == len(found.layout_ns) == len(found.copying_ns) == len(found.left_out) <= MOST_STRETCHES
    assert len(found.original_ns) == -(-calls // found.stretch)
    assert found.original_ns[0] == np.median(own[: found.stretch])
    assert found.original_ns[-1] == np.median(own[found.stretch * (len(found.original_ns) - 1) :])
    assert found.layout_ns[5] == np.median(own[5 * found.stretch : 6 * found.stretch]) / 2
    assert set(found.copying_ns) == {3.0}


def test_an_interrupted_call_of_a_stretch_does_not_show() -> None:
    own = np.full(1200, 50.0)
    own[77] = 4e6
    found = course(1, run(own, ORIGINAL), run(own, MOCKUP, np.zeros(1200)))
    assert found is not None
    assert set(found.original_ns) == set(found.layout_ns) == {50.0}


def test_calls_left_to_the_original_have_no_time_of_the_mockup() -> None:
    roles = np.array([MOCKUP] * 3 + [PASSED] * 2, dtype=np.uint64)
    times = np.where(roles == MOCKUP, 4.0, 0.0)
    found = course(1, run(np.full(5, 9.0), ORIGINAL), run(times, roles, np.zeros(5)))
    assert found is not None
    assert found.layout_ns == (4, 4, 4, None, None)
    assert found.left_out == (0, 0, 0, 1, 1)
    assert found.copying_ns == (0, 0, 0, None, None)


def test_what_was_not_taken_is_not_there() -> None:
    """No tick of the time stamp counter is known, no copies were timed, or one run had fewer calls."""
    found = course(1, run(np.full(4, np.nan), ORIGINAL), run(np.full(3, 2.0), MOCKUP))
    assert found is not None
    assert found.calls == 3
    assert found.original_ns == found.copying_ns == (None, None, None)
    assert course(1, run(np.array([]), ORIGINAL), run(np.full(3, 2.0), MOCKUP)) is None
