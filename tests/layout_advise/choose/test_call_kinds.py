"""Kinds of calls: recognised by what calls do, never by noise in their times; and one verdict for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layout_advise.choose.call_kinds import (
    Work,
    alike,
    grouped,
    label_calls,
    named,
    period_of,
    unlike_in_time,
    weigh,
    work_of,
)
from layout_advise.choose.policy import CHOOSE
from layout_advise.decide.mixture import Portion, harms, mixed, sentence, together
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import VerdictContext
from layout_advise.decide.verdict_over_kinds import first_verdict
from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point
from layout_advise.measure.measured import Measured
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.trace.trace import Reference, Registers, Trace
from tests.support.variants import variant

CELLS = Structure("s0", "cells", 0x1000, 64 * 100, (Dim(100, 64),), (), ())


def trace(*uses: tuple[int, int, int]) -> Trace:
    """A call whose n-th instruction reads 8 bytes at ``offset`` of ``count`` cells from number ``first`` on."""
    streams, references = [], []
    for number, (offset, first, count) in enumerate(uses):
        walk = Loop(Affine(count), (Point(Affine(0x1000 + 64 * first + offset, (64,))),))
        streams.append(FoldedStream((walk,), count) if count else None)
        references.append(Reference(number, 0x400000 + 4 * number, 0, "read", 8))
    total = sum(count for _, _, count in uses)
    state = Registers((0,) * 16, 0, 0, 0, 0)
    return Trace("step", 5, "clone", tuple(references), tuple(streams), total, False, state, (), ())


def work(*uses: tuple[int, int, int]) -> Work:
    return work_of(trace(*uses), (CELLS,))


def test_the_bytes_of_elements_are_those_that_the_stream_touches() -> None:
    assert work((8, 0, 100), (16, 3, 50)).uses == {"s0": {(8, 8): 100, (16, 8): 50}}


def test_other_fields_by_the_same_instructions_are_another_kind() -> None:
    assert not alike(work((0, 0, 100)), work((32, 0, 100)))


def test_other_elements_of_the_same_array_are_the_same_kind() -> None:
    assert alike(work((0, 0, 50)), work((0, 50, 50)))


def test_fields_that_swap_their_roles_are_the_same_kind() -> None:
    """What is read and what is written alternates in a wave equation; the work is the same."""
    assert alike(work((0, 0, 100), (8, 0, 100)), work((8, 0, 100), (0, 0, 100)))


def test_other_sizes_and_other_branches_are_other_kinds() -> None:
    assert not alike(work((0, 0, 100)), work((0, 0, 50)))
    assert not alike(work((0, 0, 100), (8, 0, 0)), work((0, 0, 0), (8, 0, 100)))
    assert alike(work((0, 0, 100)), work((0, 0, 95)))


def test_memory_that_is_no_structure_counts_by_accesses_only() -> None:
    elsewhere = work_of(trace((0, 1000, 100)), (CELLS,))
    assert elsewhere.uses == {}
    assert alike(elsewhere, work_of(trace((32, 2000, 100)), (CELLS,)))


SAME = work((0, 0, 100), (8, 0, 100))
TIMES = st.lists(st.floats(1e3, 1e9), min_size=2, max_size=60)


@given(TIMES, st.sets(st.integers(1, 60), min_size=1))
def test_noise_makes_no_kinds(times: list[float], known: set[int]) -> None:
    """Whatever the times are: the calls looked at for them do the same work, and are of one kind."""
    looked = {*known, *unlike_in_time(times, known)}
    assert grouped(dict.fromkeys(looked, SAME)) == [sorted(looked)]


@given(TIMES, st.sets(st.integers(1, 60), min_size=1))
def test_few_calls_are_looked_at_for_their_time(times: list[float], known: set[int]) -> None:
    found = unlike_in_time(times, known)
    assert len(found) <= CHOOSE.most_kinds
    assert all(2 <= call <= len(times) and call not in known for call in found)


def test_a_call_with_much_of_the_time_is_looked_at() -> None:
    assert unlike_in_time([9.0, 100, 100, 100, 900, 100, 100], {2, 3, 4}) == (5,)
    assert unlike_in_time([900.0, 100, 100, 101, 110, 100], {2, 3, 4}) == ()


def test_the_period_is_the_least_that_fits_all_calls_known() -> None:
    assert period_of({4: 0, 5: 1, 6: 0, 7: 1, 8: 0}) == 2
    assert period_of({4: 0, 5: 1, 6: 0, 7: 1, 12: 1}) is None
    assert period_of({1: 0, 2: 1, 3: 1, 4: 0, 5: 1, 6: 1}) == 3
    assert period_of({4: 0, 5: 1}) is None


@given(st.integers(2, 5), st.data())
def test_calls_are_labelled_as_their_period_has_it(period: int, data: st.DataObject) -> None:
    pattern = data.draw(st.lists(st.integers(0, 2), min_size=period, max_size=period))
    truth = {call: pattern[call % period] for call in range(1, 41)}
    known = {call: truth[call] for call in range(5, 5 + 2 * period)}
    assert label_calls(known, [1.0] * 40) == truth


@given(st.data())
def test_times_far_apart_label_calls_that_follow_no_period(data: st.DataObject) -> None:
    truth = {call: data.draw(st.integers(0, 1)) for call in range(1, 31)}
    times = [data.draw(st.floats(0.95, 1.05)) * (100.0, 250.0)[truth[call]] for call in range(1, 31)]
    known = {call: truth[call] for call in range(5, 12)}
    assume(len(set(known.values())) == 2)
    assume(period_of(known) is None)
    assert label_calls(known, times) == truth


def test_where_neither_tells_the_calls_known_stand_for_all() -> None:
    known = {5: 0, 6: 1, 7: 1, 8: 0, 9: 0, 10: 0, 30: 1}
    assert label_calls(known, [100.0] * 30) == known


def test_shares_are_those_of_the_time() -> None:
    labels = {call: call % 2 for call in range(1, 11)}
    times = [9999.0, *([100.0, 300.0] * 5)][:10]
    weights = weigh(labels, times, 301, 2)
    assert {k: calls for k, (calls, _) in weights.items()} == {0: 150, 1: 151}
    assert weights[1][1] == pytest.approx(151 * 300 / (151 * 300 + 150 * 100))


@given(st.dictionaries(st.integers(1, 20), st.integers(0, 3), min_size=1), st.integers(20, 1000))
def test_shares_make_a_whole(labels: dict[int, int], calls: int) -> None:
    weights = weigh(labels, [float(100 + n) for n in range(20)], calls)
    assert sum(share for _, share in weights.values()) == pytest.approx(1.0)
    assert set(weights) <= set(labels.values())


def test_names() -> None:
    assert named((5, 7, 9), 2, 5) == "odd calls"
    assert named((4, 6), 2, 4) == "even calls"
    assert named((3, 13, 23), 10, 3) == "call 3 of every 10"
    assert named((1, 2, 6, 7), 5, 6) == "calls 1 and 2 of every 5"
    assert named((1, 2, 3, 4, 11), 10, 2) == "4 of every 10 calls, like call 2"
    assert named((5, 8), None, 5) == "calls like call 5"


def ratio(value: float, spread: float = 0.0) -> Ratio:
    return Ratio(value, value - spread, value + spread, 7)


def test_the_gain_over_all_kinds_is_that_of_the_time() -> None:
    """100 s, of which 40 become 20 and 60 stay 60."""
    whole = together([(0.4, ratio(2.0)), (0.6, ratio(1.0))])
    assert whole is not None
    assert whole.median == pytest.approx(100 / 80)
    unknown = together([(0.4, ratio(2.0)), (0.6, None)])
    assert unknown is not None
    assert unknown.median == pytest.approx(100 / 80)
    assert together([(1.0, None)]) is None


SHARES = st.lists(st.tuples(st.floats(0.05, 1), st.floats(0.3, 8), st.floats(0, 0.2)), min_size=1, max_size=4)


@given(SHARES)
def test_the_gain_over_all_lies_between_those_of_the_kinds(kinds: list[tuple[float, float, float]]) -> None:
    total = sum(share for share, _, _ in kinds)
    parts = [(share / total, ratio(value, spread)) for share, value, spread in kinds]
    whole = together(parts)
    assert whole is not None
    values = [r.median for _, r in parts]
    assert min(values) - 1e-9 <= whole.median <= max(values) + 1e-9
    assert whole.lo <= whole.median <= whole.hi


def gains(name: str, *values: float) -> tuple[Variant, list[Measured]]:
    return variant(name), [Measured(variant(name), "verified", ratio(v, 0.02), ratio(v, 0.02), title=name) for v in values]


CONTEXT = VerdictContext("criu", "verified", True)


def verdict(*found: tuple[Variant, list[Measured]], shares: Sequence[float] = (0.5, 0.5)) -> tuple[str, str | None, str]:
    said = first_verdict(dict(found), shares, (), CONTEXT)
    return said.action, said.candidate, said.reason


def test_a_gain_at_one_kind_that_the_other_does_not_lose_is_a_change() -> None:
    assert verdict(gains("c1", 1.8, 1.0))[:2] == ("change", "c1")


def test_a_gain_paid_by_another_kind_is_no_change() -> None:
    assert verdict(gains("c1", 2.5, 0.8)) == ("undecided", None, "kinds-disagree")


def test_a_smaller_gain_that_harms_no_kind_is_preferred() -> None:
    assert verdict(gains("c1", 3.0, 0.8), gains("c2", 1.2, 1.2))[:2] == ("change", "c2")


def test_gains_that_cancel_are_none() -> None:
    assert verdict(gains("c1", 1.5, 0.7))[0] == "keep"


def test_a_gain_of_a_kind_with_little_time_is_little() -> None:
    assert verdict(gains("c1", 2.0, 1.0), shares=(0.03, 0.97))[0] == "keep"


def test_what_is_not_measured_at_a_kind_is_not_measured() -> None:
    lost = Measured(variant("c1"), "rejected", None, None, reason="it crashed")
    whole = mixed((0.5, 0.5), [gains("c1", 2.0)[1][0], lost])
    assert whole.speedup is None
    assert whole.reason == "it crashed"
    assert not harms([lost])
    assert harms(gains("c1", 2.0, DECIDE.slowest_kind - 0.01)[1])


def test_the_sentence_names_the_kinds() -> None:
    parts = [Portion("odd calls", 0.46, ratio(1.8)), Portion("even calls", 0.5, ratio(0.7)), Portion("call 1", 0.04, None)]
    assert sentence(parts, ratio(1.05)) == (
        "odd calls, 46% of the hotspot's time: 1.80 times as fast; even calls, 50%: 0.70 times; "
        "call 1, 4%: not measured, counted as unchanged; together 1.05 times"
    )
