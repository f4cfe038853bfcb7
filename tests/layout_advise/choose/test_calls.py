"""Which call is stopped at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.choose.calls import ChosenCall, Stretch, choose_call, in_situ_time, stretches, undisturbed_calls
from layout_advise.describe.checks import drift
from layout_advise.errors import ProgramError, UsageError
from layout_advise.reports.model.contract import Check


def test_the_fifth_where_it_is_like_the_others() -> None:
    chosen = choose_call([900, *[100] * 19], 20, None)
    assert (chosen.call, chosen.in_situ_ns, chosen.spread) == (5, 100, 0)


def test_not_one_that_stands_out() -> None:
    assert choose_call([100, 100, 100, 100, 500, 100, 100, 100], 8, None).call == 4


def test_where_calls_differ_one_in_the_middle() -> None:
    """As measured (`scan`, queries with a period of nine): layouts gain 1.8 at the fifth call, 2.2 on the average."""
    period = [90.0, 95, 103, 111, 118, 117, 107, 94, 78]
    chosen = choose_call(period * 6, 54, None)
    assert chosen.call == 3
    assert choose_call([100.0 + k % 9 for k in range(54)], 54, None).call == 5


def test_a_call_unlike_those_around_it_is_compared_with_itself() -> None:
    periods = [[78.0, 90, 95, 103, 111], [80.0, 91, 94, 104, 110], [140.0, 93, 95, 101, 112]]
    middle, spread = in_situ_time(periods)
    assert middle == pytest.approx(78.4)
    assert spread == pytest.approx(0.17, abs=0.02)
    one_disturbed = [[100.0] * 5, [100.0] * 5, [150.0, 100, 100, 100, 100]]
    assert in_situ_time(one_disturbed)[0] == pytest.approx(100)


def test_room_for_three_calls() -> None:
    assert choose_call([100] * 4, 4, None).call == 2
    assert choose_call([100] * 3, 3, None).call == 1
    assert choose_call([100], 1, None).call == 1


def test_the_wanted_one_if_there_is_one() -> None:
    assert choose_call([100] * 9, 9, 9).call == 9
    with pytest.raises(UsageError, match="called 9 times only"):
        choose_call([100] * 9, 9, 10)


def test_never_called() -> None:
    with pytest.raises(ProgramError, match="never called"):
        choose_call([], 0, None)


def test_in_situ_time_is_over_calls_of_what_one_process_undisturbed_takes() -> None:
    slow = [160.0, 160, 320, 160, 160]
    quick = [100.0, 100, 200, 100, 110]
    middle, spread = in_situ_time([slow, quick, quick, quick, slow])
    assert middle == pytest.approx(100)
    assert spread == pytest.approx(0.5)
    assert in_situ_time([]) == (None, 0.0)


def test_processes_with_a_fast_canary_tell_the_time_of_a_call() -> None:
    """A process may be quicker than undisturbed ones where its caches hold what theirs do not; two of these are enough."""
    times, canaries = [(80.0, 80.0), (100.0, 100.0), (101.0, 200.0)], [(1500, 1500), (1000, 1000), (1050, 1500)]
    middle, _ = in_situ_time(times, canaries, 1100)
    assert middle == pytest.approx((100.1 + 84) / 2)


def test_usual_times_are_not_those_of_lucky_processes() -> None:
    """One process of seven had its data in the last cache, which others use as well: the snapshot's time is a usual one."""
    windows = [(50.0, 52.0), *[(100.0 + k, 104.0 + k) for k in range(6)]]
    chosen = ChosenCall(5, 100, None, 0.0, canary=1000).timed(windows, [(1000, 1000)] * 7)
    assert chosen.in_situ_ns == pytest.approx(82, rel=0.01)
    usual = chosen.usual()
    assert usual.in_situ_ns == pytest.approx(103.4, rel=0.01)
    assert usual.timed([*windows, (40.0, 40.0)], [(1000, 1000)] * 8).in_situ_ns == pytest.approx(102.8, rel=0.01)
    assert ChosenCall(5, 100, 7.0, 0.0).usual().in_situ_ns == 7.0


@given(st.lists(st.floats(1, 1e6), max_size=30), st.integers(1, 100))
def test_always_a_call_that_exists(times: list[float], more: int) -> None:
    calls = len(times) + more
    assert 1 <= choose_call(times, calls, None).call <= calls


def test_a_disturbed_phase_over_the_first_calls_is_seen_in_other_processes() -> None:
    """The first fourteen calls took 1.6 times as long once, and a call was chosen at which nothing changes any more."""
    disturbed = [160.0] * 14 + [100.0] * 26
    assert choose_call(disturbed, 1000, None).call == 15
    quiet = [300.0, *[101.0] * 39]
    assert choose_call(undisturbed_calls([disturbed, quiet]), 1000, None).call == 5
    assert undisturbed_calls([[1.0, 5.0, 3.0], [2.0, 4.0]]) == [1.0, 4.0]


def test_calls_later_in_the_run_are_told_apart_from_disturbed_ones() -> None:
    """A game: what falls to the floor makes its branches hard to predict for a thousand calls."""
    times = [100.0] * 1024 + [210.0] * 512 + [105.0] * 2560
    canaries = [10] * 4096
    for k in range(64, 200):  # something else used the core
        times[k], canaries[k] = 900.0, 50
    found = stretches(times, canaries, 11.0)
    assert len(found) == 16
    assert [s.ns for s in found] == [100.0] * 4 + [210.0] * 2 + [105.0] * 10
    assert (found[4].first, found[5].last) == (1025, 1536)
    assert stretches(times[:31], canaries, 11.0) == []
    (check,) = drift(found, 100.0)
    assert (check.id, check.ok, check.value) == ("later-calls", False, 2.1)
    assert check.text == "calls 1 025 to 1 280 of the run take 2.10 times as long as the one measured"


def test_a_run_whose_calls_are_alike_has_a_check_that_says_so() -> None:
    found = [Stretch(1, 16, 100.0), Stretch(17, 32, 120.0), Stretch(33, 48, 90.0)]
    assert [c.ok for c in drift(found, 100.0)] == [True]
    assert [c.ok for c in drift([Stretch(1, 16, 60.0)], 100.0)] == [False]  # less is another way, too
    checks: tuple[Check, ...] = tuple(drift([], 100.0))
    assert checks == ()
