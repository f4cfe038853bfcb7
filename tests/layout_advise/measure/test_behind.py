"""Builds that were slower than another one each time: what they leave open beside that one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from layout_advise.decide.budget import Circumstances, with_doubts
from layout_advise.measure.behind import takes_longer
from layout_advise.measure.measured import Measured, pick
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, SCALAR, Variant, reindexed_for
from tests.support.variants import variants

FAST, SLOW = variants("c1", "c2")
BETWEEN = Circumstances(None, "steady", alike=False)
"""The program's calls find neither warm nor flushed caches."""
DISTURBED = 2
"""In this process the original took twice as long with flushed caches."""


def times(fast: float = 1000.0, slow: float = 1100.0, in_each: bool = True, few: int = 3) -> Timings:
    """The original takes 1000, in nine processes, and the slow build is timed in a few of them."""
    steady, cold = [], []
    for number in range(9):
        off = 1 + 0.001 * (number % 3)
        one = {ORIGINAL: 1000 * off, IDENTITY: 1000 * off, FAST: fast * off}
        if number < few:
            one[SLOW] = slow * off if in_each or number else 0.99 * fast
        steady.append({name: [ns] * 9 for name, ns in one.items()})
        flushed = {name: 1.5 * ns for name, ns in one.items()}
        flushed[ORIGINAL] *= 2 if number == DISTURBED else 1
        cold.append({name: [ns] * 3 for name, ns in flushed.items()})
    return Timings(steady, cold)


def measured(name: Variant, timings: Timings) -> Measured:
    return Measured(name, "verified", *pick(timings, name, "steady"))


def both(timings: Timings, around: Circumstances = BETWEEN) -> tuple[Measured, Measured]:
    one, other = with_doubts([measured(name, timings) for name in (FAST, SLOW)], timings, around)
    return one, other


def top(one: Measured, term: str) -> float:
    return next(t.hi for t in one.budget if t.name == term)


def test_a_disturbed_process_of_three_opens_no_more_than_the_faster_build_leaves() -> None:
    fast, slow = both(times())
    assert top(fast, "caches") < 1.05
    assert fast.ceiling() == pytest.approx(1.0, abs=0.02)
    assert slow.ceiling() == fast.ceiling()  # 1.8 by its own three processes
    likely = slow.likely_ceiling()
    assert likely is not None
    assert likely < 1.0


def test_one_that_was_faster_once_has_its_own_doubts() -> None:
    _, slow = both(times(in_each=False))
    assert top(slow, "caches") > 1.5


@pytest.mark.parametrize(("few", "sure"), [(3, False), (4, True), (9, True)])
def test_of_several_processes_one_may_have_been_disturbed(few: int, sure: bool) -> None:
    """In the last one the faster build took longer: of four and more the interval of its times over the other's tells."""
    timings = times(few=few)
    steady = [{**one, FAST: [1400.0] * 9} if n == few - 1 else one for n, one in enumerate(timings.steady)]
    timings = replace(timings, steady=steady)
    assert min(timings.per_restore(SLOW, FAST)) < 1.0
    assert takes_longer(SLOW, FAST, timings, "steady") == sure
    assert not takes_longer(FAST, SLOW, timings, "steady")


def test_two_builds_that_take_as_long_are_not_behind_each_other() -> None:
    timings = times(slow=1000.0, few=9)
    steady = [{**one, SLOW: [1000.0 + (-1) ** n] * 9} for n, one in enumerate(timings.steady)]
    timings = replace(timings, steady=steady)
    assert not takes_longer(SLOW, FAST, timings, "steady")
    assert not takes_longer(FAST, SLOW, timings, "steady")


def test_two_processes_show_nothing() -> None:
    timings = times(few=2)
    cold = [{**one, ORIGINAL: [2000.0] * 3} if number == 1 else one for number, one in enumerate(timings.cold)]
    _, slow = both(replace(timings, cold=cold))
    assert top(slow, "caches") > 1.1


def test_what_is_no_doubt_about_its_times_stays() -> None:
    timings = times(slow=1010.0)
    steady = [{**one, IDENTITY: [1300.0] * 9} for one in timings.steady]
    fast, slow = both(replace(timings, steady=steady), replace(BETWEEN, alike=True))
    assert top(slow, "rebuild") == pytest.approx(1 / (1 - 1.29 * (1 - 1 / 1.29)), abs=0.03)  # as much of the original
    assert top(fast, "rebuild") == pytest.approx(1 / (1 - 1.3 * (1 - 1 / 1.3)), abs=0.02)


def disturbed_identity(slow: float = 1100.0) -> Timings:
    """In one of three processes with the slow build the unchanged mock-up took twice as long."""
    timings = times(slow=slow)
    steady = [{**one, IDENTITY: [2000.0] * 9} if n == DISTURBED else one for n, one in enumerate(timings.steady)]
    return replace(timings, steady=steady)


def test_over_the_same_unchanged_build_it_gains_no_more_either() -> None:
    timings = disturbed_identity()
    found = [measured(name, timings) for name in (FAST, SLOW)]
    assert found[1].ceiling() == pytest.approx(1.82, abs=0.05)
    fast, slow = with_doubts(found, timings, replace(BETWEEN, alike=True))
    assert top(fast, "rebuild") < 1.05
    assert top(slow, "rebuild") == top(fast, "rebuild")
    assert slow.ceiling() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("differs", [{"form": SCALAR}, {"places": 4}], ids=["form", "places"])
def test_over_another_unchanged_build_it_may(differs: dict[str, Any]) -> None:
    timings = disturbed_identity()
    fast, slow = (measured(name, timings) for name in (FAST, SLOW))
    _, slow = with_doubts([fast, replace(slow, **differs)], timings, replace(BETWEEN, alike=True))
    assert top(slow, "rebuild") == pytest.approx(1.82, abs=0.05)


def test_nor_over_one_that_is_reached_as_it_is() -> None:
    timings, names = disturbed_identity(), frozenset({"s0"})
    alike = reindexed_for(names)
    timings = replace(timings, steady=[{**one, alike: one[IDENTITY]} for one in timings.steady])
    found = [replace(measured(name, timings), translated=names) for name in (FAST, SLOW)]
    fast, slow = with_doubts(found, timings, replace(BETWEEN, alike=True))
    assert top(slow, "indices") == pytest.approx(max(d.hi for d in fast.budget), abs=0.01)
    elsewhere = replace(found[0], translated=frozenset({"s1"}))
    _, slow = with_doubts([elsewhere, found[1]], timings, replace(BETWEEN, alike=True))
    assert top(slow, "indices") > 1.5


def test_the_faster_one_is_not_touched() -> None:
    fast, _ = both(times())
    assert [fast] == with_doubts([measured(FAST, times())], times(), BETWEEN)


@pytest.mark.parametrize(("told", "most"), [(1050.0, 1.05), (1400.0, 1.4), (2500.0, 2.0)])
def test_a_call_gains_no_more_than_it_takes_over_warm_caches(told: float, most: float) -> None:
    """With warm caches nothing is gained, with flushed ones twice the speed: not of a call that hardly finds them."""
    timings = times()
    cold = [{**one, FAST: [500.0] * 3, ORIGINAL: [1000.0] * 3} for one in timings.cold]
    fast, _ = both(replace(timings, cold=cold), replace(BETWEEN, in_situ_ns=told))
    assert top(fast, "caches") == pytest.approx(most, rel=0.02)
