"""Blocks, rotation, pairing, intervals: against a machine whose times are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.decide.decision import measured
from layout_advise.errors import SnapshotError
from layout_advise.measure.setup import Contest, Entrant
from layout_advise.mockup.timing.measure import clear_losers, in_time, measure
from layout_advise.mockup.timing.plan import Memory, Timed, TimingPlan
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.ratios import noise_floor, summarise
from layout_advise.mockup.timing.restored import patience, rotated, valid_samples
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, ORIGINAL, SHADOW
from layout_advise.tracer.process.stopped_program import Calm, Sample
from tests.support.mockups.fake_machine import TRUE_NS, FakeMachine, FakeProgram
from tests.support.variants import variant, variants

FAST, SLOW = variants("fast", "slow")


def timed(*names: str) -> list[Timed]:
    return [Timed(variant(n), Path(n)) for n in names]


def test_ratios_come_out_right_although_processes_differ() -> None:
    machine = FakeMachine()
    timings = measure(machine, timed("identity", "fast"), Memory(), TimingPlan(restores=9))
    fast = summarise(timings, FAST)
    assert fast is not None
    assert fast.steady.median == pytest.approx(2.5, rel=0.02)
    assert fast.steady.lo <= fast.steady.median <= fast.steady.hi
    assert fast.steady_over_identity.median == pytest.approx(2.525, rel=0.02)
    assert fast.cold is not None
    assert fast.steady.restores == 9
    lo, hi = noise_floor(timings)
    assert 0.98 < lo <= 1 <= hi < 1.02
    assert machine.closed == 9


def test_what_another_form_of_the_loop_gains_is_not_the_layouts() -> None:
    timings = measure(FakeMachine(), timed("identity", "identity-unrolled", "fast"), Memory(), TimingPlan(restores=9))
    fast = summarise(timings, FAST)
    assert fast is not None
    assert fast.steady.median == pytest.approx(2.5, rel=0.02)
    assert fast.steady_over_identity.median == pytest.approx(1.05, rel=0.02)


def test_conversion_is_timed_in_the_first_restores_for_new_layouts_only() -> None:
    machine = FakeMachine()
    timings = measure(machine, timed("identity", "fast", "slow"), Memory(), TimingPlan(restores=5))
    assert machine.converted == ["fast", "slow"] * TIMING.converted_in
    assert set(timings.conversion) == {FAST, SLOW}
    into, out = timings.conversion[FAST]
    assert 700 * 0.8 <= into <= 700 * 1.25
    assert out == pytest.approx(into * 3 / 7)


def test_calls_with_the_conversion_around_them_are_timed_in_every_restore() -> None:
    timings = measure(FakeMachine(), timed("identity", "fast", "slow"), Memory(), TimingPlan(restores=5, around=True))
    fast, slow = timings.net(FAST), timings.net(SLOW)
    assert fast is not None
    assert slow is not None
    assert fast.restores == 5
    assert fast.median == pytest.approx(1000 / 600, rel=0.02)
    assert slow.median == pytest.approx(1000 / 3200, rel=0.02)
    assert timings.net(IDENTITY) is None
    cold = timings.net(FAST, "cold")
    assert cold is not None
    assert cold.median == pytest.approx(2000 / 1000, rel=0.02)
    entrant = Entrant(FAST, "title", "verified", Path("fast"))
    assert measured(entrant, timings, "steady", 1000.0).net == fast
    paid = timings.break_even(FAST)
    assert paid is not None
    assert paid.median == pytest.approx(1000 / 600, rel=0.02)
    assert paid.restores == 5
    assert timings.break_even(SLOW) is None


def test_a_temporary_layout_pays_for_its_conversion() -> None:
    timings = measure(FakeMachine(), timed("identity", "fast"), Memory(), TimingPlan(restores=5))
    entrant = Entrant(FAST, "title", "verified", Path("fast"))
    contest = Contest({}, [entrant], calls_around=1)
    cost = contest.conversion(timings, FAST)
    assert cost == pytest.approx(1000, rel=0.25)
    temporary, permanent = (measured(entrant, timings, "steady", ns) for ns in (cost, None))
    assert permanent.net is None
    assert temporary.net is not None
    assert temporary.net.median == pytest.approx(1000 / 1400, rel=0.25)
    assert temporary.ceiling() == temporary.net.hi
    assert contest.conversion(timings, IDENTITY) is None
    assert replace(contest, calls_around=None).conversion(timings, FAST) is None


@pytest.mark.parametrize(("simd", "blocked", "over"), [(200.0, True, 0.5), (200.0, False, 2.525), (2000.0, True, 2.525)])
def test_what_simd_gains_with_the_layout_unchanged_is_no_gain_of_blocks(
    simd: float, blocked: bool, over: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRUE_NS, "identity-simd", simd)
    blocks = Timed(FAST, Path("fast"), blocked=blocked)
    timings = measure(FakeMachine(), [*timed("identity", "identity-simd"), blocks], Memory(), TimingPlan(restores=5))
    found = summarise(timings, FAST)
    assert found is not None
    assert found.steady_over_identity.median == pytest.approx(over, rel=0.02)


def test_a_clear_loser_is_dropped_after_three_restores_and_says_so() -> None:
    timings = measure(FakeMachine(), timed("identity", "fast", "slow"), Memory(), TimingPlan(restores=5))
    assert timings.restores(SLOW) == 3
    assert "fast" in timings.dropped[SLOW]
    assert timings.restores(FAST) == 5


def test_after_three_restores_only_the_fastest_go_on_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, ns in (("near", 402.0), ("far", 420.0)):
        monkeypatch.setitem(TRUE_NS, name, ns)
    monkeypatch.setattr("layout_advise.mockup.timing.measure.clear_losers", lambda *_: {})
    five = timed("identity", "far", "fast", "near", "slow")
    timings = measure(FakeMachine(), five, Memory(), TimingPlan(restores=5, finalists=2))
    assert [timings.restores(v.name) for v in five] == [5, 3, 5, 5, 3]
    assert "2 builds were ahead" in timings.dropped[variant("far")]
    dropped = measure(FakeMachine(), five, Memory(), TimingPlan(restores=5)).dropped
    assert {str(name): why for name, why in dropped.items()} == {"slow": "far slower than all it is compared with"}


def test_of_the_fastest_there_is_one_of_each_layout_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the demo two variants of blocks kept the structure of arrays from being measured more than three times."""
    times = {"c1": 400.0, "c1-restrict": 401.0, "c2": 402.0, "c3-restrict": 410.0, "c3": 411.0}
    for name, ns in times.items():
        monkeypatch.setitem(TRUE_NS, name, ns)
    monkeypatch.setattr("layout_advise.mockup.timing.measure.clear_losers", lambda *_: {})
    for places, kept in ((3, {"c1", "c2", "c3-restrict"}), (4, {"c1", "c2", "c3-restrict", "c1-restrict"})):
        timings = measure(FakeMachine(), timed("identity", *times), Memory(), TimingPlan(restores=5, finalists=places))
        assert {name for name in times if timings.restores(variant(name)) == 5} == kept


@pytest.mark.parametrize(("hopeless", "restores"), [(None, 5), (1.5, 3), (50.0, 5)])
def test_what_is_far_behind_is_dropped_even_where_hardly_a_call_was_undisturbed(
    hopeless: float | None, restores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Timings, "is_settled", lambda timings, name: False)
    plan = TimingPlan(restores=5, hopeless=hopeless)
    timings = measure(FakeMachine(), timed("identity", "fast", "slow"), Memory(), plan)
    assert (timings.restores(SLOW), timings.restores(FAST)) == (restores, 5)


def test_a_crashing_variant_is_named_and_the_others_go_on() -> None:
    machine = FakeMachine()
    timings = measure(machine, timed("identity", "crash", "fast"), Memory(), TimingPlan(restores=4))
    assert "SIGSEGV" in timings.failed[variant("crash")]
    assert timings.restores(FAST) == 4
    assert machine.closed == 5


@pytest.mark.parametrize(("broken", "gone"), [("fast@1", {"fast@1"}), ("fast", {"fast", "fast@1", "fast@2", "fast@3"})])
def test_a_variant_that_crashes_at_one_place_is_timed_at_the_others(
    broken: str, gone: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(name) for name in (FAST, *FAST.elsewhere)]
    for name in names:
        monkeypatch.setitem(TRUE_NS, name, 500.0)
    tried = [Timed(variant(name), Path("crash" if name == broken else name)) for name in names]
    timings = measure(FakeMachine(), [*timed("identity"), *tried], Memory(), TimingPlan(restores=3))
    assert {name for name in names if not timings.restores(variant(name))} == gone
    assert [str(name) for name in timings.failed] == [broken]


def test_a_crashing_original_is_an_error() -> None:
    class Broken(FakeMachine):
        def restore(self) -> Any:
            program = FakeProgram(self)
            program.names[0] = "crash"
            return program

    with pytest.raises(SnapshotError, match="cannot time"):
        measure(Broken(), timed("identity"), Memory(), TimingPlan(restores=2))


def test_every_variant_takes_every_place() -> None:
    names = variants("a", "b", "c", "d")
    for position in range(4):
        assert {rotated(names, by)[position] for by in range(4)} == set(names)
    assert rotated(names, 4) == list(names[::-1])


def test_samples_with_page_faults_do_not_count() -> None:
    samples = [Sample(1e9, 1e9, 0, 700), Sample(5, 5, 0, 1), Sample(6, 6, 0, 1), Sample(900, 900, 0, 60), Sample(7, 7, 0, 2)]
    valid, rejected = valid_samples(samples, 1)
    assert ([s.cpu_ns for s in valid], rejected) == ([5, 6, 7], 1)


def test_what_disturbs_the_machine_in_phases_does_not_show() -> None:
    """As measured on a shared machine: a neighbour makes whole blocks 1.6 times slower, at random."""

    class Disturbed(FakeProgram):
        def block(self, variant: int, calls: int, mode: str = "steady", **given: Any) -> tuple[tuple[Sample, ...], Calm]:
            phase = self.machine.random.choice((1.0, 1.6))
            samples, left = super().block(variant, calls, mode)
            return tuple(Sample(s.wall_ns, s.cpu_ns * phase, 0, s.faults) for s in samples), left

    class Shared(FakeMachine):
        def restore(self) -> Any:
            return Disturbed(self)

    timings = measure(Shared(), timed("identity", "fast"), Memory(), TimingPlan(restores=9, rounds=6))
    fast = summarise(timings, FAST)
    assert fast is not None
    assert fast.steady.median == pytest.approx(2.5, rel=0.02)


ROUNDS = 12


class Shared(FakeProgram):
    """On a core whose other half is busy nearly always: what computes takes 2.1 times as long, the original 1.2 times."""

    blind = False

    def block(self, variant: int, calls: int, mode: str = "steady", **given: Any) -> tuple[tuple[Sample, ...], Calm]:
        samples, left = super().block(variant, calls, mode, **given)
        quiet = len(self.machine.order) % (4 * ROUNDS) in range(1, 5)  # of the four variants the first blocks
        factor = 1.0 if quiet else 1.2 if self.names[variant].startswith("original") else 2.1
        canary = 0 if self.blind else 1020 if quiet else 1700
        return tuple(Sample(s.wall_ns, s.cpu_ns * factor, 0, s.faults, canary) for s in samples), left


@pytest.mark.parametrize("blind", [False, True])
def test_calls_beside_a_fast_canary_count_where_there_are_some(blind: bool) -> None:
    class Machine(FakeMachine):
        def restore(self) -> Any:
            program = Shared(self)
            program.blind = blind
            return program

    timings = measure(
        Machine(), timed("identity", "fast"), Memory(), TimingPlan(restores=9, rounds=ROUNDS, cold_calls=0), drop=False
    )
    fast = timings.ratio(ORIGINAL, FAST)
    assert fast is not None
    assert (fast.median == pytest.approx(2.5, rel=0.03)) is not blind
    assert (timings.calm_part() is None) is blind


def test_of_blocks_that_went_on_until_they_settled_the_later_half_counts() -> None:
    class Warming(FakeProgram):
        """The first 20 calls of each block take three times as long."""

        def block(self, variant: int, calls: int, mode: str = "steady", **given: Any) -> tuple[tuple[Sample, ...], Calm]:
            samples, left = super().block(variant, 40 if given["settle"] else calls, mode, **given)
            slow = (3.0 if k < 20 and given["settle"] else 1.0 for k in range(len(samples)))
            return tuple(Sample(s.wall_ns, s.cpu_ns * f, 0, 0, s.canary) for s, f in zip(samples, slow, strict=True)), left

    class Machine(FakeMachine):
        def restore(self) -> Any:
            return Warming(self)

    machine = Machine()
    timings = measure(machine, timed("identity", "fast"), Memory(), TimingPlan(restores=4, rounds=1, most_calls=64))
    assert {len(one) for restore in timings.steady for one in restore.values()} == {20}
    assert machine.settles == ([(64, "thread-cpu")] * 4 + [None] * 4) * 4
    measure(machine, timed("identity"), Memory(), TimingPlan(restores=1, rounds=1))
    assert machine.settles[-6:] == [None] * 6


def test_after_its_time_no_further_process_is_begun_but_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process takes a second; what watches the measurement takes its own time."""
    now = [0.0]

    class Slow(FakeMachine):
        def restore(self) -> Any:
            now[0] += 1
            return super().restore()

    def watch(done: int, total: int) -> None:
        now[0] += 100

    monkeypatch.setattr("layout_advise.mockup.timing.measure.own_time", lambda: now[0])
    plan = TimingPlan(restores=9, rounds=1, cold_restores=2, seconds=2.5)
    hasty = replace(plan, seconds=0.5)
    assert len(measure(Slow(), timed("identity"), Memory(), hasty, watch).steady) == TIMING.fewest
    timings = measure(Slow(), timed("identity"), Memory(), plan, watch)
    assert len(timings.steady) == plan.fewest
    assert [bool(r) for r in timings.cold] == [True, True, False, False, False]
    longer = measure(Slow(), timed("identity"), Memory(), replace(plan, seconds=plan.fewest + 1.5), watch)
    assert len(longer.steady) == plan.fewest + 2
    assert len(measure(Slow(), timed("identity"), Memory(), replace(plan, seconds=None), watch).steady) == 9


def machine_of_seconds(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A call takes a second on it, whatever it is of."""
    now = [0.0]

    class Program(FakeProgram):
        def block(self, variant: int, calls: int, *rest: Any, **named: Any) -> Any:
            now[0] += calls
            return super().block(variant, calls, *rest, **named)

    class Slow(FakeMachine):
        def restore(self) -> Any:
            return Program(self)

    monkeypatch.setattr("layout_advise.mockup.timing.measure.own_time", lambda: now[0])
    return Slow()


def test_what_does_not_fit_into_its_time_is_called_less_in_as_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes a second, whatever it is of."""
    slow = machine_of_seconds(monkeypatch)
    plan = TimingPlan(restores=9, rounds=6, calls=20, cold_calls=0, seconds=1200.0)
    timings = measure(slow, timed("identity"), Memory(), plan)
    assert len(timings.steady) > plan.fewest
    first, *others = (len(process[IDENTITY]) for process in timings.steady)
    assert all(0 < one < first / 2 for one in others)


@given(st.integers(1, 10), st.integers(4, 40), st.floats(0.001, 2.0), st.integers(0, 64))
def test_a_plan_in_time_is_no_more_than_it_was(rounds: int, calls: int, part: float, most: int) -> None:
    plan = TimingPlan(rounds=rounds, calls=calls, most_calls=most)
    found = in_time(plan, part * plan.restores)
    assert plan.warm < found.calls <= calls
    assert found.most_calls in range(most + 1)
    if part * plan.restores >= TIMING.fewest and most > calls:
        assert found.most_calls == most
    assert 1 <= found.rounds <= rounds
    assert found.rounds * found.calls <= max(part * rounds * calls * 1.5, plan.warm + TIMING.fewest_told, calls * part)


def test_where_the_fewest_processes_do_not_fit_in_their_time_finalists_are_chosen_after_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call takes a second, whatever it is of: the first process more than all have."""
    slow = machine_of_seconds(monkeypatch)
    names = ["identity", "c1", "c2", "c3", "c4"]
    ns = {"c1": 100.0, "c2": 90.0, "c3": 80.0, "c4": 70.0}
    for name, each in ns.items():
        monkeypatch.setitem(TRUE_NS, name, each)
    plan = TimingPlan(restores=7, rounds=1, calls=4, warm=1, cold_calls=0, most_calls=64, finalists=2, seconds=10.0)
    for seconds, timed_in in ((10.0, 1), (10000.0, TIMING.drop_after)):
        found = measure(slow, timed(*names), Memory(), replace(plan, seconds=seconds))
        often = [sum(v in process for process in found.steady) for v in variants("c1", "c2", "c3", "c4")]
        assert often[:2] == [timed_in] * 2
        assert often[3] == len(found.steady) >= TIMING.fewest
        assert often[2] >= TIMING.fewest  # a clear loser by then


def test_where_calls_use_other_data_in_turn_the_lesser_of_both_gains_is_told() -> None:
    x, y = variants("x", "y")
    steady = {ORIGINAL: [10.0], IDENTITY: [11.0], x: [2.0], y: [5.0]}
    cold = {ORIGINAL: [20.0], IDENTITY: [22.0], x: [10.0], y: [5.0]}
    plain = Timings([steady] * 4, [cold] * 4)
    lesser = replace(plain, lesser=True)
    gains = [[t.ratio(over, name) for over in (ORIGINAL, IDENTITY) for name in (x, y)] for t in (plain, lesser)]
    assert [[r and r.median for r in each] for each in gains] == [[5.0, 2.0, 5.5, 2.2], [2.0, 2.0, 2.2, 2.2]]
    assert lesser.ratio(ORIGINAL, x, "cold") == plain.ratio(ORIGINAL, x, "cold")
    assert lesser.ratio(ORIGINAL, IDENTITY) == plain.ratio(ORIGINAL, IDENTITY)
    assert replace(lesser, cold=[]).ratio(ORIGINAL, x) == plain.ratio(ORIGINAL, x)


def test_each_place_has_its_turn_and_what_loses_at_all_is_not_timed_there_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, ns in {**dict.fromkeys(FAST.elsewhere, 1500.0), **dict.fromkeys(SLOW.elsewhere, 3100.0)}.items():
        monkeypatch.setitem(TRUE_NS, str(name), ns)
    monkeypatch.setitem(TRUE_NS, "fast", 1900.0)
    monkeypatch.setitem(TRUE_NS, "fast@2", 500.0)  # it may win there: nothing of it is dropped
    machine = FakeMachine()
    names = [str(name) for one in (FAST, SLOW) for name in (one, *one.elsewhere)]
    timings = measure(machine, timed("identity", *names), Memory(), TimingPlan(restores=6, rounds=3, cold_calls=0))
    counts = Counter(machine.order)
    assert {counts[str(n)] for n in FAST.elsewhere} == {6}
    assert counts["fast"] == counts["original"] // 2 == 18
    assert {counts[str(n)] for n in SLOW.elsewhere} == {3}
    assert timings.restores(SLOW) == 3
    assert set(timings.dropped) <= {SLOW}
    assert not timings.conversion.keys() & {*FAST.elsewhere, *SLOW.elsewhere}


def test_with_one_round_a_process_the_places_take_turns_over_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow hotspot has one: two of its three further places were never timed."""
    places = [str(place) for place in FAST.elsewhere]
    for name in places:
        monkeypatch.setitem(TRUE_NS, name, 500.0)
    timings = measure(FakeMachine(), timed("identity", "fast", *places), Memory(), TimingPlan(restores=7, rounds=1))
    assert [timings.restores(n) for n in (FAST, *FAST.elsewhere)] == [7, 3, 2, 2]
    told = summarise(timings, FAST)
    assert told is not None
    assert told.steady.median == pytest.approx(1000 / 475, rel=0.03)


def test_processes_wait_for_the_fastest_canary_known_while_their_patience_lasts() -> None:
    machine = FakeMachine()
    plan = TimingPlan(restores=2, rounds=1, cold_calls=0, canary=1100, patience_ns=12000, enough=7)
    timings = measure(machine, timed("identity"), Memory(), plan)
    assert [c.ticks for c in machine.calms] == [int(1.1 * 1100)] * 3 + [int(1.1 * 1000)] * 3
    assert [c.patience_ns for c in machine.calms] == [12000, 6000, 3000, 1500, 750, 375]  # all that is left
    assert timings.waited_ns == 12000 - 1500 + 1500 - 187
    assert patience(replace(plan, seconds=10e-6), Timings()) == 5000  # where there is little time, half of it
    assert {c.enough for c in machine.calms} == {7 + plan.warm}


def test_where_all_are_far_slower_measuring_ends() -> None:
    machine = FakeMachine()
    timings = measure(machine, timed("identity", "slow", "hopeless"), Memory(), TimingPlan(restores=9))
    assert len(timings.steady) == machine.closed == TIMING.drop_after
    assert {str(v) for v in timings.dropped} == {"slow", "hopeless"}
    # one that the unchanged layout takes as long for, in some form, may be an answer yet
    timings = measure(FakeMachine(), timed("identity", "identity-restrict", "slow"), Memory(), TimingPlan(restores=9))
    assert len(timings.steady) == 9


def test_what_is_far_slower_is_called_once_a_block_with_flushed_caches() -> None:
    machine = FakeMachine()
    plan = TimingPlan(restores=3, cold_calls=4, fresh_calls=4, unknown=0.0)
    timings = measure(machine, timed("identity", "hopeless"), Memory(), plan)
    assert [len(r[variant("hopeless")]) for r in timings.cold] == [1, 1, 1]
    assert all(len(r[variant("identity")]) > 1 for r in timings.cold)


def test_losers_need_disjoint_intervals() -> None:
    timings = measure(FakeMachine(), timed("identity", "fast"), Memory(), TimingPlan(restores=3), drop=False)
    assert clear_losers(timings, [FAST]) == {}
    assert clear_losers(timings, []) == {}
    assert timings.ratio(ORIGINAL, variant("unknown")) is None
    assert timings.nanoseconds(IDENTITY) is not None


def test_processes_in_which_the_original_took_no_time_say_nothing() -> None:
    """qhull's 30 ns calls took 0 ns beside load, once what a call costs was taken off: the noise divided by it."""
    timings = measure(FakeMachine(), timed("identity", "fast"), Memory(), TimingPlan(restores=5))
    silent = tuple({name: [0.0] * len(times) for name, times in one.items()} for one in timings.steady[:2])
    found = replace(timings, steady=(*silent, *timings.steady[2:]), canaries={})
    assert len(found.per_restore(ORIGINAL, SHADOW)) == len(timings.steady) - 2
    assert noise_floor(found)[0] > 0.9


def test_what_is_far_slower_is_called_less_often() -> None:
    """flac: 26 mock-ups that take 13 times as long were called as often as the original, 31 s in each process."""
    plan = TimingPlan(restores=4, rounds=3, calls=20)
    timings = measure(FakeMachine(), timed("identity", "fast", "slow", "hopeless"), Memory(), plan, drop=False)
    (hopeless,) = variants("hopeless")
    for times in timings.steady:
        spent = {name: sum(ns) for name, ns in times.items()}
        assert len(times[FAST]) >= 2 * 3 * (plan.calls - plan.warm) // 4  # in each fourth call a page is missing
        assert 1 <= len(times[hopeless]) <= 8
        assert spent[hopeless] <= 3 * spent[ORIGINAL]
    ratio = timings.ratio(ORIGINAL, hopeless)
    assert ratio is not None
    assert ratio.median == pytest.approx(1 / 15, rel=0.05)
    assert ratio.restores == 4


def test_what_only_losers_are_held_against_is_timed_no_more() -> None:
    """fasttree: a layout of five arrays was held against the unchanged one with all eight reached by index, 1.7 times as
    slow, as each set of structures that is timed costs time to the end."""
    for candidate, restores in (("slow", 3), ("fast", 5)):
        alike = Timed(IDENTITY_UNROLLED, Path("identity-unrolled"), beside=frozenset({variant(candidate)}))
        timings = measure(FakeMachine(), [*timed("identity", "fast", "slow"), alike], Memory(), TimingPlan(restores=5))
        assert timings.restores(alike.name) == restores


def test_what_is_left_out_is_not_timed_and_said_to_be_dropped() -> None:
    why = {variant("slow"): "5 builds were ahead of it"}
    found = measure(FakeMachine(), timed("identity", "fast", "slow"), Memory(), TimingPlan(restores=3), left_out=why)
    assert found.dropped == why
    assert all(FAST in process and SLOW not in process for process in found.steady)
    assert found.whole_seconds > 0


def test_with_flushed_caches_code_is_timed_at_one_more_place_in_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FAST.elsewhere:
        monkeypatch.setitem(TRUE_NS, str(name), 400.0)
    names = ("identity", "fast", *map(str, FAST.elsewhere))
    timings = measure(FakeMachine(), timed(*names), Memory(), TimingPlan(restores=3, rounds=3), drop=False)
    assert [sorted(v.placement for v in r if v.own == FAST) for r in timings.cold] == [[0, 1], [0, 2], [0, 3]]
    assert [sorted(v.placement for v in r if v.own == FAST) for r in timings.steady] == [[0, 1, 2, 3]] * 3


@pytest.mark.parametrize(("unchanged", "processes"), [(2900.0, 0), (990.0, 0), (900.0, 6)])
def test_a_promise_without_vectors_waits_for_the_unchanged_layout_to_gain_by_it(
    monkeypatch: pytest.MonkeyPatch, unchanged: float, processes: int
) -> None:
    promised = replace(FAST, promise="restrict")
    monkeypatch.setitem(TRUE_NS, "identity-restrict", unchanged)
    monkeypatch.setitem(TRUE_NS, str(promised), 390.0)
    names = timed("identity", "identity-restrict", "fast")
    waits = Timed(promised, Path(str(promised)), waits=True)
    timings = measure(FakeMachine(), [*names, waits], Memory(), TimingPlan(restores=7))
    assert timings.restores(promised) == processes
    assert (promised in timings.dropped) == (not processes)
    assert measure(FakeMachine(), [*names, waits], Memory(), TimingPlan(restores=7), drop=False).restores(promised) == 7


def test_what_was_dropped_and_is_timed_again_has_beside_it_what_it_is_held_against() -> None:
    control = Timed(variant("identity-restrict"), Path("identity-restrict"), beside=frozenset({SLOW}))
    names = [*timed("identity", "fast", "slow"), control]
    first = measure(FakeMachine(), names, Memory(), TimingPlan(restores=5))
    assert SLOW in first.dropped
    assert first.restores(control.name) == TIMING.drop_after
    again = measure(FakeMachine(), [names[0], names[2], control], Memory(), TimingPlan(restores=9), more=first)
    assert again.restores(SLOW) == again.restores(control.name) > TIMING.drop_after + 2
