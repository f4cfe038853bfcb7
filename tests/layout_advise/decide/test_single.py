"""A decision on one kind of calls, where everything takes known times: what is measured, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from layout_advise.decide.decision import measured
from layout_advise.decide.live import lived
from layout_advise.decide.loop import loop_advice, with_loop
from layout_advise.describe.describe import ablation
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.measured import Doubt, Measured
from layout_advise.measure.setup import Entrant
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import (
    IDENTITY,
    IDENTITY_BLOCKS,
    IDENTITY_RESTRICT,
    IDENTITY_SIMD,
    IDENTITY_UNROLLED,
    ORIGINAL,
    SCALAR,
    Variant,
)
from layout_advise.reasons import Reason
from tests.support.decisions import LAYOUT_SCALAR, TIMES, code_times, contest
from tests.support.mockups.fake_machine import COLD, FRESH
from tests.support.variants import variants

(C1,) = variants("c1")
C1_RESTRICT, C1_LANES, C1_SIMD = variants("c1-restrict", "c1-lanes", "c1-simd")


def test_what_simd_alone_gains_is_not_the_layout_s(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = contest(monkeypatch, {**TIMES, IDENTITY_SIMD: 500.0, C1_SIMD: 490.0})
    assert decision.verdict.action != "change"
    assert decision.again is None
    found = ablation(decision)
    assert found is not None
    assert found.candidate == "c1-simd"
    values = [found.neither, found.layout, found.simd, found.both]
    assert [v.median if v else None for v in values] == pytest.approx([0.5, 1 / 1.9, 2.0, 1 / 0.49], rel=0.03)


def test_a_gain_over_the_identity_of_the_same_variant_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = contest(monkeypatch, {**TIMES, IDENTITY_SIMD: 900.0, C1_SIMD: 400.0})
    assert (decision.verdict.action, decision.verdict.candidate) == ("change", "c1-simd")
    assert decision.ablation is decision.again
    found = ablation(decision)
    assert found is not None
    assert found.simd is not None
    assert found.simd.median == pytest.approx(1 / 0.9, rel=0.03)


@pytest.mark.parametrize(
    ("vectors", "blocks", "alone"),
    [
        (500.0, 490.0, None),
        (400.0, 200.0, "2.5 times with its independent loops written for SIMD"),
        (950.0, 400.0, "1.11 times with `restrict`"),
    ],
)
def test_blocks_in_plain_c_are_held_against_the_fastest_unchanged_layout(
    vectors: float, blocks: float, alone: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {**TIMES, IDENTITY_RESTRICT: 900.0, IDENTITY_SIMD: vectors, C1_LANES: blocks}
    verdict = contest(monkeypatch, times, blocked=True).verdict
    assert verdict.candidate == ("c1-lanes" if alone else None)
    if alone:
        assert "a loop over each block's elements inside of the others, in plain C, runs" in verdict.text
        assert f"{alone} and the layout unchanged" in verdict.text


def test_what_restrict_alone_gains_is_shown_beside_the_layout_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """lattice -O3: the ablation showed the plain identity, which gains nothing, for the layout unchanged with SIMD."""
    decision = contest(monkeypatch, {**TIMES, IDENTITY_RESTRICT: 820.0, C1_RESTRICT: 600.0})
    found = ablation(decision)
    assert found is not None
    assert found.simd is not None
    assert found.simd.median == pytest.approx(1 / 0.82, rel=0.03)
    assert "with `restrict` and the layout unchanged" in decision.verdict.text


def test_other_variants_are_compared_with_the_plain_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = contest(monkeypatch, {**TIMES, IDENTITY_SIMD: 400.0, C1: 450.0})
    assert decision.verdict.action == "change"


@pytest.mark.parametrize(("rolled", "lanes"), [(1600.0, 1010.0), (1010.0, 1600.0)])
def test_the_identity_that_is_nearer_to_the_original_counts(
    monkeypatch: pytest.MonkeyPatch, rolled: float, lanes: float
) -> None:
    decision = contest(monkeypatch, {**TIMES, IDENTITY: rolled, IDENTITY_UNROLLED: lanes, C1: 500.0})
    assert decision.verdict.action == "change"
    assert decision.again is not None
    for timings in (decision.first, decision.again):
        ratio = timings.ratio(IDENTITY, ORIGINAL)
        assert ratio is not None
        assert ratio.median == pytest.approx(1.01, rel=0.02)


def test_without_vectors_there_is_nothing_to_tell_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for ns in (400.0, 990.0):
        decision = contest(monkeypatch, {**TIMES, C1: ns}, vectors=False)
        assert decision.verdict.action == ("change" if ns < 500 else "keep")
        assert ablation(decision) is None


def test_as_long_as_noise_leaves_it_open_the_candidates_that_matter_are_timed_in_more_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    near = {**TIMES, C1: 1000 / 1.05}
    assert len(contest(monkeypatch, near).first.steady) == 7
    assert len(contest(monkeypatch, near, most_restores=28).first.steady) in (14, 28)
    assert len(contest(monkeypatch, {**TIMES, C1: 500.0}, most_restores=28).first.steady) == 7


def test_the_running_program_is_timed_again_where_it_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {**TIMES, C1: 500.0}
    assert contest(monkeypatch, times, in_situ=(1600.0, 1010.0)).verdict.action == "change"
    assert contest(monkeypatch, times, in_situ=(1600.0, 1010.0)).in_situ_ns == 1010.0
    still = contest(monkeypatch, times, in_situ=(1600.0, 1500.0))
    assert (still.alike, still.in_situ_ns) == (False, 1500.0)
    assert not contest(monkeypatch, times, in_situ=(1600.0, None)).alike


@pytest.mark.parametrize(("in_situ", "gain", "action"), [(1000.0, 2.0, "change"), (3000.0, 1.2, "change"), (400.0, 0.8, "")])
def test_time_that_the_snapshot_does_not_show_counts_as_not_improved(
    monkeypatch: pytest.MonkeyPatch, in_situ: float, gain: float, action: str
) -> None:
    """Twice as fast: of 3000 ns in the program the snapshot shows 1000 with warm caches and 2000 with flushed ones. Calls
    that take 400 there did not find flushed ones."""
    decision = contest(monkeypatch, {**TIMES, C1: 500.0}, in_situ=(in_situ, in_situ))
    claim = decision.verdict.interval
    assert claim is not None
    assert claim.lo == pytest.approx(gain, rel=0.25)
    assert decision.verdict.action == (action or "undecided")
    assert decision.alike == (in_situ == 1000.0)
    terms = {d.name for d in decision.results[0].doubts}
    assert terms == {1000.0: set(), 3000.0: {"program", "caches"}, 400.0: {"program"}}[in_situ]


def ran_live(gain: float) -> LiveTrial:
    return LiveTrial(Ratio(gain, 0.99 * gain, 1.01 * gain, 5), calls=3000, timed=2998)


@pytest.mark.parametrize(
    ("gain", "in_situ", "action"), [(1.6, 400.0, "change"), (1.0, 3000.0, "keep"), (1.06, 3000.0, "undecided")]
)
def test_the_running_program_decides_what_the_snapshot_leaves_open(
    monkeypatch: pytest.MonkeyPatch, gain: float, in_situ: float, action: str
) -> None:
    """A call takes 1000 ns in the snapshot, and another time in the program."""
    times = {**TIMES, C1: 1000 / gain}
    left = contest(monkeypatch, times, in_situ=(in_situ, in_situ))
    assert left.verdict.action == "undecided"
    assert left.trials[C1].ratio is None
    trial = ran_live(gain)
    decision = contest(monkeypatch, times, in_situ=(in_situ, in_situ), live=trial)
    assert decision.trials == {C1: trial}
    (one,) = decision.results
    assert trial.ratio is not None
    assert one.speedup == trial.ratio
    assert [d.name for d in one.budget] == ["live", "form", "rebuild"]
    if action != "undecided":
        assert decision.verdict.action == action
    assert one.floor() <= gain <= (one.ceiling() or 0.0)


def test_what_the_running_program_shows_counts_and_not_what_the_snapshot_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as fast in the snapshot, in the program not at all; and the other way round."""
    for snapshot, program, action in ((2.0, 1.0, "keep"), (1.0, 2.0, "change")):
        times = {**TIMES, C1: 1000 / snapshot}
        decision = contest(monkeypatch, times, in_situ=(3000.0, 3000.0), live=ran_live(program))
        assert decision.verdict.action == action
        assert decision.verdict.interval is not None
        assert decision.verdict.interval.median == pytest.approx(program, rel=0.05)


def test_noise_beside_a_trial_is_narrowed_by_further_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """libsvm: 41 % of its samples were left open by five processes, and four of its five minutes were not used."""
    times, live = {**TIMES, C1: 1000 / 1.05}, ran_live(1.05)
    few = contest(monkeypatch, times, in_situ=(3000.0, 3000.0), live=live)
    many = contest(monkeypatch, times, in_situ=(3000.0, 3000.0), live=live, most_restores=30)
    assert few.verdict.reason == Reason.WITHIN_NOISE
    assert len(many.first.steady) > len(few.first.steady)
    assert many.trials == few.trials == {C1: live}
    assert many.results[0].speedup == live.ratio


def test_where_snapshot_and_program_agree_it_is_tried_on_demand_only(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {**TIMES, C1: 500.0}
    assert not contest(monkeypatch, times, live=ran_live(1.8)).trials
    assert not contest(monkeypatch, times, in_situ=(400.0, 400.0), live=ran_live(1.8), wish="never").trials
    asked = contest(monkeypatch, times, live=ran_live(1.8), wish="always")
    assert asked.verdict.action == "change"
    assert asked.verdict.gain == pytest.approx(1.8)
    assert contest(monkeypatch, {**TIMES, C1: 1100.0}, live=ran_live(0.9), wish="always").trials


def test_a_trial_keeps_the_relation_of_other_doubts_to_the_gain() -> None:
    one = Measured(C1, "verified", Ratio(2.0, 1.9, 2.1, 7), Ratio(1.8, 1.7, 1.9, 7))
    one = replace(one, doubts=(Doubt("placement", 1.8, 2.2, ""), Doubt("program", 0.5, 3.0, ""), Doubt("caches", 1, 3, "")))
    one = replace(one, doubts=(*one.doubts, Doubt("put-back", 1.0, 2.5, "")))
    found = lived(one, LiveTrial(Ratio(1.5, 1.4, 1.6, 5)))
    (left,) = found.doubts
    assert left.name == "placement"
    assert (left.lo, left.hi) == pytest.approx((1.35, 1.65))
    over = found.over_identity
    assert over is not None
    assert (over.median, over.lo, over.hi) == pytest.approx((1.35, 1.26, 1.44))
    assert found.claim is not None
    assert (found.claim.median, found.claim.lo, found.claim.hi) == pytest.approx((1.5, 1.26, 1.65))
    assert lived(one, LiveTrial(None, "why")) == lived(one, None) == one


def test_between_warm_and_flushed_caches_the_lesser_gain_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.5 times the warm time, three quarters of the flushed one."""
    monkeypatch.setitem(COLD, "c1", 3)  # 1.33 times as fast as the original, warm 2 times
    decision = contest(monkeypatch, {**TIMES, C1: 500.0}, in_situ=(1500.0, None), branches=False)
    assert decision.verdict.action == "change"
    assert decision.verdict.gain == pytest.approx(4 / 3, rel=0.02)
    assert decision.first.between
    again = contest(monkeypatch, {**TIMES, C1: 500.0}, in_situ=(2500.0, None), branches=False)
    assert not again.alike
    assert any("a call takes 2.5 µs in the program and " in d.how for d in again.results[0].doubts)


@pytest.mark.parametrize(("slower", "said"), [(3.0, "measured-gain"), (4.0, "no-gain")])
def test_where_the_processor_learns_the_calls_times_are_those_of_branches_as_little_known_as_in_the_program(
    monkeypatch: pytest.MonkeyPatch, slower: float, said: str
) -> None:
    """Half of what it learns is unknown: 1500 ns for the original, 500 ns and half of what a candidate loses by it."""
    for name in TIMES:
        monkeypatch.setitem(FRESH, str(name), 2)
    monkeypatch.setitem(FRESH, "c1", 2 * slower - 1)
    times = {**TIMES, SCALAR: 1000.0, LAYOUT_SCALAR: 1000.0, C1: 400.0}
    decision = contest(monkeypatch, times, in_situ=(1500.0, None), vectors=False, placed=True)
    assert decision.first.unknown == pytest.approx(0.5, abs=0.15)  # processes have their own speeds
    assert decision.verdict.reason == said
    ratio = decision.first.ratio(ORIGINAL, C1)
    assert ratio is not None
    assert ratio.median == pytest.approx(1500 / (400 * slower), rel=0.06)
    known = contest(monkeypatch, times, in_situ=(1500.0, None), vectors=False, placed=True, branches=False)
    batch = contest(monkeypatch, times, in_situ=(1500.0, None), vectors=False, placed=True, forgets=False)
    assert (batch.first.unknown, batch.first.between, batch.alike) == (0, False, False)
    assert known.first.unknown == 0
    assert not known.first.fresh[0]


@pytest.mark.parametrize(("cold", "said"), [(2, "no-gain"), (1.5, "not-in-situ")])
def test_between_warm_and_flushed_caches_a_layout_is_kept_only_where_none_gains_with_either(
    monkeypatch: pytest.MonkeyPatch, cold: float, said: str
) -> None:
    monkeypatch.setitem(COLD, "c1", cold)
    decision = contest(monkeypatch, {**TIMES, C1: 1000.0}, vectors=False, in_situ=(1500.0, None), branches=False)
    assert decision.verdict.reason == said


def test_what_blocks_of_the_loop_gain_with_the_layout_unchanged_is_not_the_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """scan: 1.8 times as fast in blocks of four, and 1.7 times with the loop cut into fours and the rows as they are."""
    times = {**TIMES, IDENTITY_BLOCKS: 590.0, C1: 570.0}
    decision = contest(monkeypatch, times, blocked=True)
    assert decision.verdict.action == "keep"
    assert "the unchanged layout did 1.69 times with its loop cut into such blocks" in decision.verdict.text
    advice = loop_advice(decision, 1.05)
    assert advice is not None
    assert advice.form == "identity-blocks"
    assert advice.gain.median == pytest.approx(1 / 0.59, rel=0.02)
    told = with_loop(decision.verdict, advice, "scan").text
    assert told.startswith("Keep the layout; change the loop in scan: cut its loop into blocks, 1.")
    assert "Of layouts on top of that, 1 other layout was measured and does not gain 5 %" in told
    other = contest(monkeypatch, {**times, IDENTITY_RESTRICT: 540.0}, blocked=True)
    restrict = loop_advice(other, 1.05)
    assert restrict is not None
    assert restrict.form == "identity-restrict"
    assert contest(monkeypatch, times).verdict.action == "change"  # no blocks: nothing to compare with
    better = contest(monkeypatch, {**times, C1: 400.0}, blocked=True)
    assert better.verdict.action == "change"
    assert "1.69 times with its loop cut into such blocks and the layout unchanged" in better.verdict.text


def test_what_the_unchanged_layout_gains_without_vectors_is_not_the_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A molecular dynamics code in Fortran: gcc -O2 makes vectors of three components that stall."""
    times = {**TIMES, SCALAR: 710.0, LAYOUT_SCALAR: 700.0, C1: 730.0}
    decision = contest(monkeypatch, times)
    assert decision.verdict.action != "change"
    assert decision.verdict.text.startswith("Keep it: 1 other layout was measured and does not gain 5 % (c1 stays")
    assert "times the speed of the unchanged layout). c1 ran 1.37 times" in decision.verdict.text
    assert "but the unchanged layout did 1.41 times without vector instructions" in decision.verdict.text
    assert contest(monkeypatch, {**times, C1: 500.0}).verdict.action == "change"


def test_what_restrict_gains_without_a_new_layout_is_not_the_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {**TIMES, IDENTITY_RESTRICT: 800.0, C1_RESTRICT: 790.0}
    assert contest(monkeypatch, times).verdict.action != "change"
    assert contest(monkeypatch, {**times, C1_RESTRICT: 500.0}).verdict.action == "change"


def moved(layout: Sequence[float], identity: Sequence[float]) -> dict[Variant, float]:
    return dict(zip((*C1.elsewhere, *IDENTITY.elsewhere), (*layout, *identity), strict=True))


@pytest.mark.parametrize(
    ("layout", "identity", "said"),
    [
        ((850.0, 860.0, 855.0), (1000.0, 1010.0, 1005.0), "measured-gain"),
        ((850.0, 1080.0, 855.0), (1000.0, 1010.0, 1005.0), "not-confirmed"),  # entities: 0.9 to 1.2 by the address alone
        ((850.0, 860.0, 855.0), (1000.0, 850.0, 1005.0), "not-confirmed"),  # the unchanged layout can have it too
    ],
)
def test_a_gain_that_hangs_on_where_the_code_lies_is_none(
    monkeypatch: pytest.MonkeyPatch, layout: Sequence[float], identity: Sequence[float], said: str
) -> None:
    decision = contest(monkeypatch, {**TIMES, **moved(layout, identity), C1: 840.0})
    assert decision.verdict.reason == said
    assert "code at 4 addresses" in decision.verdict.text
    assert decision.again is not None
    assert not {*C1.elsewhere, *IDENTITY.elsewhere} & set(decision.again.conversions)


def test_candidates_lie_at_several_places_where_the_program_is_as_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``scan`` in columns: its mock-up was always at a slow place, 0.7, where by hand it gains 1.1 at a mean."""
    times = {**TIMES, **moved((1010.0, 850.0, 855.0), (1000.0, 1010.0, 1005.0)), C1: 1020.0}
    seen = contest(monkeypatch, times, placed=True)
    timed = [set(restore) for restore in seen.first.steady]
    assert all({C1, *C1.elsewhere} <= names for names in timed)
    (result,) = [measured(Entrant(C1, "", "verified", Path("c1")), seen.first, "steady", None)]
    assert result.places == 4
    assert result.speedup is not None
    mean = 1000 / fmean([1020, 1010, 850, 855])
    assert (result.speedup.lo, result.speedup.median, result.speedup.hi) == pytest.approx((0.974, mean, 1.177), rel=0.01)
    slower = contest(monkeypatch, times, in_situ=(3000.0, 3000.0), placed=True)  # calls in a row are going to be timed
    assert not slower.alike
    assert not set(C1.elsewhere) & set(slower.first.steady[0])


def test_an_unchanged_layout_that_hangs_on_its_place_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """``scan``: its unchanged mock-up took 1.0 to 1.35 times the original's time, and every layout looked slow beside it,
    some of which gain 1.2 by hand."""
    places = moved((1010.0, 990.0, 1005.0), (1000.0, 1350.0, 1005.0))
    verdict = contest(monkeypatch, {**TIMES, **places, C1: 1000.0}, vectors=False).verdict
    assert verdict.reason == "placement-dependent"
    assert "the unchanged mock-up's time differs by a factor of 1.35 with the place of its code" in verdict.text


def test_machine_code_tells_where_mock_ups_hang_on_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """rebound: 0.97 to 1.03 was left open for a factor of 1.44 between places of the unchanged mock-up."""
    places = moved((1010.0, 990.0, 1005.0), (1000.0, 1350.0, 1005.0))
    code = code_times(once=1000.0, twice=1010.0)
    few = replace(code, steady=[*code.steady[:2], {**code.steady[1], ORIGINAL: [1100.0] * 9}])  # one of them leaves it open
    for known in ([code], [few, code]):
        decision = contest(monkeypatch, {**TIMES, **places, C1: 1000.0}, vectors=False, code=known)
        assert decision.verdict.reason == "no-gain"
        assert "by the program's own machine code in that layout" in decision.verdict.text
        assert decision.code is code
    assert contest(monkeypatch, {**TIMES, **places, C1: 1000.0}, vectors=False, code=[few]).verdict.action == "undecided"


@pytest.mark.parametrize(
    ("layout", "said"), [((1010.0, 990.0, 1005.0), "no-gain"), ((1010.0, 900.0, 1005.0), "placement-dependent")]
)
def test_a_layout_that_gains_at_another_place_is_no_reason_to_keep_the_present_one(
    monkeypatch: pytest.MonkeyPatch, layout: Sequence[float], said: str
) -> None:
    decision = contest(monkeypatch, {**TIMES, **moved(layout, (1000.0, 1010.0, 1005.0)), C1: 1000.0}, vectors=False)
    assert decision.verdict.reason == said
    assert ablation(decision) is None


def test_what_a_source_may_read_again_widens_what_is_told_of_the_best_layout_that_is_not_advised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """rebound's arrays: told 0.86 (0.85 to 0.87), by hand they run 0.81 times as fast."""
    plain = contest(monkeypatch, {**TIMES, C1: 1100.0}, vectors=False)
    wider = contest(monkeypatch, {**TIMES, C1: 1100.0, C1.reread: 1300.0}, vectors=False)
    for decision, lo in ((plain, 1 / 1.1), (wider, 1 / 1.3)):
        assert (decision.verdict.action, decision.verdict.about) == ("keep", "c1")
        assert decision.verdict.interval is not None
        assert decision.verdict.interval.lo == pytest.approx(lo, rel=0.03)
        assert decision.verdict.interval.hi == pytest.approx(1 / 1.1, rel=0.03)
