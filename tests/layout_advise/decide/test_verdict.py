"""The rule of the verdict, case by case."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from layout_advise.decide.budget import Circumstances, with_doubts
from layout_advise.decide.gain_words import with_more
from layout_advise.decide.verdict import VerdictContext, confirm, decide, for_program, more_by_blocks
from layout_advise.measure.measured import Doubt, Measured, saved
from layout_advise.measure.mode import choose_mode
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from tests.support.variants import variant


def ratio(lo: float, hi: float) -> Ratio:
    return Ratio((lo + hi) / 2, lo, hi, 9)


def context(**changes: object) -> VerdictContext:
    values: dict[str, object] = {
        "snapshot": "criu",
        "identity_evidence": "verified",
        "rules_apply": True,
    }
    return VerdictContext(**{**values, **changes})  # type: ignore[arg-type]


GAIN = Measured(variant("c1"), "verified", ratio(1.4, 1.6), ratio(1.3, 1.5))
LOSS = Measured(variant("c2"), "verified", ratio(0.7, 0.8), ratio(0.7, 0.8))
NEAR = Measured(variant("c3"), "verified", ratio(1.0, 1.1), ratio(1.0, 1.1))
UNMEASURED = Measured(variant("c4"), "rejected", None, None)


def test_a_clear_gain_is_a_change() -> None:
    verdict = decide([LOSS, GAIN], context())
    assert (verdict.action, verdict.candidate) == ("change", "c1")


def test_the_higher_median_wins_although_its_interval_is_wider() -> None:
    wide = Measured(variant("c9"), "verified", ratio(1.3, 2.5), ratio(1.3, 2.5))
    assert decide([GAIN, wide], context()).candidate == "c9"


def test_where_the_interval_is_wide_its_lower_end_is_claimed() -> None:
    """A demo on a machine that was also compiling: 8.2 times (3.7 to 8.9), where 3.8 was true."""
    wide = Measured(variant("c1"), "verified", Ratio(8.2, 3.74, 8.94, 5), Ratio(8.29, 3.75, 8.67, 5))
    for verdict in (decide([wide], context()), confirm(decide([wide], context()), wide, context())):
        assert "c1 runs at least 3.7 times as fast (95 % interval 3.7 to 8.9, 5 processes)" in verdict.text
        assert verdict.gain == 3.74
        assert "the whole program an estimated 1.57 times" in for_program(verdict, 0.5).text
    sure = decide([GAIN], context())
    assert sure.gain == 1.5
    assert "at least" not in sure.text


def test_what_fell_short_at_the_second_measurement_is_told() -> None:
    """lattice -O2: 1.06 times the original, 1.04 times the unchanged mock-up, where 1.05 was asked of both."""
    first = decide([GAIN], context())
    short = Measured(variant("c1"), "verified", Ratio(1.06, 1.06, 1.06, 7), Ratio(1.04, 1.03, 1.04, 7))
    text = confirm(first, short, context()).text
    assert text.endswith(", only 1.04 times the unchanged mock-up's speed (95 % interval 1.03 to 1.04, 7 processes).")
    slower = replace(short, over_identity=Ratio(1.1, 1.1, 1.1, 7))
    assert confirm(first, replace(slower, speedup=Ratio(1.04, 1.03, 1.05, 7)), context()).text.endswith(
        ", only 1.04 times (95 % interval 1.03 to 1.05, 7 processes)."
    )


def test_all_losing_is_keep() -> None:
    assert decide([LOSS], context()).action == "keep"


def test_within_noise_is_undecided() -> None:
    assert decide([LOSS, NEAR], context()).reason == "within-noise"


def test_what_is_left_open_is_told_as_an_interval() -> None:
    wide = Measured(variant("c1"), "verified", ratio(0.9, 1.6), ratio(0.9, 1.6))
    verdict = decide([LOSS, wide], context())
    assert (verdict.action, verdict.reason) == ("undecided", "within-noise")
    assert "c1 runs 0.90 to 1.60 times as fast; a gain of 5 % is neither sure nor excluded" in verdict.text
    assert verdict.interval is not None
    assert (verdict.interval.lo, verdict.interval.hi) == (0.9, 1.6)


@pytest.mark.parametrize(
    ("doubt", "action", "reason"),
    [
        (Doubt("program", 1.2, 1.7, "how"), "change", "measured-gain"),
        (Doubt("program", 1.0, 1.7, "how"), "undecided", "not-in-situ"),
        (Doubt("placement", 0.9, 1.6, "how"), "undecided", "placement-dependent"),
        (Doubt("vectors", 1.4, 9.0, "how"), "change", "measured-gain"),
    ],
)
def test_a_doubt_widens_the_claim_and_is_named_where_it_leaves_the_answer_open(
    doubt: Doubt, action: str, reason: str
) -> None:
    verdict = decide([replace(GAIN, doubts=(doubt,))], context())
    assert (verdict.action, verdict.reason) == (action, reason)
    assert verdict.interval is not None
    assert verdict.interval.lo <= doubt.lo
    assert verdict.interval.hi >= (doubt.hi if action == "change" else 1.5)


def test_what_loses_may_be_kept_only_where_no_doubt_reaches_a_gain() -> None:
    assert decide([replace(LOSS, doubts=(Doubt("vectors", 0.7, 1.0, "how"),))], context()).action == "keep"
    assert decide([replace(LOSS, doubts=(Doubt("vectors", 0.7, 1.4, "how"),))], context()).reason == "scalar-mockups"


def test_doubts_are_no_factors_of_each_other() -> None:
    """libsvm: 0.58 times the original, 0.85 times a mock-up that is slow itself; its form alone costs 1.3: not 1.1."""
    slow = Measured(variant("c1"), "verified", Ratio(0.58, 0.56, 0.61, 9), Ratio(0.8, 0.75, 0.85, 9))
    slow = replace(slow, doubts=(Doubt("vectors", 0.56, 0.61 * 1.3, "how"),))
    assert slow.ceiling() == 0.85
    assert decide([slow], context()).action == "keep"
    faster = Measured(
        variant("c1"), "verified", ratio(2.0, 2.0), ratio(1.0, 1.0), doubts=(Doubt("program", 1.5, 2.4, "how"),)
    )
    assert (faster.floor(), faster.ceiling()) == (0.75, 1.2)  # of the half that is the layout's


@pytest.mark.parametrize(
    ("gain", "longer", "most"),
    [
        (1.03, 1.0, 1.03),
        (1.03, 0.9, 1.03),
        (0.9, 5.0, 0.9),
        (1.03, 1.05, 1.0316),
        (1.03, 1.3, 1.0394),
        (1.047, 20.0, 9.785),
        (1.2, 10.0, 12.0),  # all of it and more: no more than both together
    ],
)
def test_what_is_saved_of_a_slow_mockup_is_more_of_the_original(gain: float, longer: float, most: float) -> None:
    assert saved(gain, longer) == pytest.approx(most, rel=1e-3)


@pytest.mark.parametrize(("longer", "action"), [(1.0, "keep"), (1.1, "keep"), (3.4, "undecided")])
def test_a_slow_mockup_excludes_no_gain_of_the_original(longer: float, action: str) -> None:
    """flac: a loop of AVX2 intrinsics takes 3.4 times as long in C, and 3 % of that are 10 % of the original's time."""
    over = Ratio(1.01, 0.99, 1.03, 9)
    one = Measured(variant("c1"), "verified", Ratio(1.01 / longer, 0.99 / longer, 1.03 / longer, 9), over)
    verdict = decide([one], context())
    assert verdict.action == action
    if action == "undecided":
        assert (verdict.reason, verdict.doubt) == ("within-noise", "rebuild")
        assert verdict.interval is not None
        assert verdict.interval.hi == pytest.approx(1.11, abs=0.01)


def test_what_beats_the_original_gains_however_slow_the_unchanged_mockup_is() -> None:
    """The unchanged mock-up takes 1.5 times the original's time: the layout gains 1.2 to 1.9."""
    slow = Measured(variant("c1"), "verified", ratio(1.2, 1.3), ratio(1.8, 1.9))
    verdict = decide([slow], context())
    assert verdict.action == "change"
    assert verdict.interval is not None
    assert (verdict.interval.lo, verdict.interval.hi) == (1.2, 1.9)
    assert "at least 1.20 times as fast" in verdict.text
    behind = Measured(variant("c1"), "verified", ratio(0.9, 1.0), ratio(1.3, 1.4))
    assert decide([behind], context()).reason == "mockup-form"


@pytest.mark.parametrize(
    ("over", "doubts", "named"),
    [
        # 0.59 to 1.06: what the compiler makes of the loop is wide, and excludes a gain
        (ratio(0.95, 1.06), (Doubt("promises", 0.6, 1.0, "how"),), "rebuild"),
        (ratio(0.95, 1.0), (Doubt("caches", 0.9, 1.2, "how"), Doubt("promises", 0.6, 1.0, "how")), "caches"),
        # with ever more processes the caches leave nothing open, the program does
        (ratio(0.95, 1.1), (Doubt("caches", 0.9, 1.3, "how", 1.0), Doubt("program", 0.7, 1.1, "how")), "program"),
        (ratio(0.95, 1.1), (Doubt("caches", 0.9, 1.3, "how", 1.0), Doubt("program", 0.7, 1.0, "how")), "caches"),
        # by its medians it gains: what reaches furthest down leaves that open
        (ratio(1.2, 1.3), (Doubt("vectors", 0.9, 1.1, "how"), Doubt("promises", 1.0, 9.0, "how")), "vectors"),
    ],
)
def test_the_doubt_that_is_named_is_the_one_that_leaves_it_open(over: Ratio, doubts: tuple[Doubt, ...], named: str) -> None:
    one = Measured(variant("c1"), "verified", ratio(over.lo, over.hi), over, doubts=doubts)
    verdict = decide([one], context())
    assert (verdict.action, verdict.doubt) == ("undecided", named)
    assert "What leaves it open is" in verdict.text


def test_an_unmeasured_candidate_is_told_beside_a_keep() -> None:
    verdict = decide([LOSS, UNMEASURED], context())
    assert verdict.action == "keep"
    assert verdict.text.endswith(" c4 could not be measured.")
    assert decide([UNMEASURED], context()).reason == "nothing-measured"
    told = decide([replace(UNMEASURED, reason="its map is not known")], context())
    assert "could be measured: its map is not known; the ranking" in told.text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"identity_evidence": "rejected"}, "identity-not-verified"),
        ({"identity_evidence": "close"}, "rounding-only"),
    ],
)
def test_without_a_good_identity_nothing_counts(changes: dict[str, object], reason: str) -> None:
    verdict = decide([GAIN], context(**changes))
    assert (verdict.action, verdict.reason) == ("undecided", reason)


def test_only_verified_counts_unless_reassociation_is_allowed() -> None:
    close = Measured(variant("c1"), "close", ratio(1.4, 1.6), ratio(1.4, 1.6))
    assert decide([close], context()).action != "change"
    assert decide([close], context(allow_reassociation=True)).action == "change"


def test_gain_of_the_compiler_alone_is_no_change() -> None:
    assert decide([Measured(variant("c1"), "verified", ratio(1.4, 1.6), ratio(0.98, 1.02))], context()).action == "keep"


def test_forks_raise_the_bound() -> None:
    small = Measured(variant("c1"), "verified", ratio(1.07, 1.09), ratio(1.07, 1.09))
    assert decide([small], context()).action == "change"
    assert decide([small], context(snapshot="fork")).action == "keep"


def test_conversion_of_a_temporary_layout_is_taken_in() -> None:
    temporary = Measured(variant("c1"), "verified", ratio(1.4, 1.6), ratio(1.4, 1.6), net=ratio(0.5, 0.6))
    assert decide([temporary], context()).action == "keep"


def test_no_rule_applies_is_keep_when_the_identity_is_verified() -> None:
    assert decide([], context(rules_apply=False)).action == "keep"
    assert decide([], context(rules_apply=False, identity_evidence="rejected")).action == "undecided"


def test_what_no_rule_gave_counts_where_it_was_measured() -> None:
    assert decide([GAIN], context(rules_apply=False)).action == "change"
    kept = decide([LOSS], context(rules_apply=False))
    assert (kept.action, kept.reason) == ("keep", "no-gain")
    assert kept.text.startswith("Keep it: no layout rule applies to what the hotspot touches; 1 other layout was measured")
    assert decide([UNMEASURED], context(rules_apply=False)).reason == "no-rule-applies"


def test_only_the_second_measurement_counts() -> None:
    first = decide([GAIN], context())
    assert confirm(first, GAIN, context()).action == "change"
    assert confirm(first, NEAR, context()).reason == "not-confirmed"


@pytest.mark.parametrize(
    ("in_situ", "steady", "cold", "mode"),
    [
        (100, 110, 200, "steady"),
        (100, 200, 95, "cold"),
        (100, 130, 80, None),
        (None, 1, 1, None),
        (100, None, 101, "cold"),
        (100, None, None, None),
    ],
)
def test_mode_is_the_nearer_one_within_15_percent(
    in_situ: float | None, steady: float | None, cold: float | None, mode: str | None
) -> None:
    assert choose_mode(in_situ, steady, cold) == mode


@pytest.mark.parametrize(
    ("steady", "cold", "between", "mode"),
    [
        (7.4, 7.2, None, "cold"),  # the nearer one
        (7.4, 7.2, 0.0001, "steady"),  # nothing else can have taken the caches
        (7.4, 7.2, 0.7, "steady"),
        (7.4, 7.2, 0.8, "cold"),  # no telling: the one that claims less
        (7.2, 7.4, 20.0, "cold"),
        (7.1, 7.6, 20.0, "steady"),  # that far apart the program tells
        (7.6, 7.1, 0.1, "steady"),
        (9.0, 7.1, 0.1, "cold"),  # steady is not the program's
        (7.1, 20.0, 20.0, "steady"),
    ],
)
def test_where_both_are_near_what_passes_between_calls_decides(
    steady: float, cold: float, between: float | None, mode: str
) -> None:
    assert choose_mode(7.0, steady, cold, between) == mode


@pytest.mark.parametrize(
    ("noise", "between", "mode"),
    [
        (1.0, 0.1, "cold"),  # 19 % off is not the program's
        (1.15, 0.1, "cold"),
        (1.58, 0.1, "steady"),  # as measured: the original differs from itself by more, and nothing took the caches
        (1.58, None, "cold"),
        (1.58, 20.0, "cold"),
    ],
)
def test_what_the_noise_hides_does_not_tell_steady_from_cold(noise: float, between: float | None, mode: str) -> None:
    assert choose_mode(9.6, 7.8, 10.1, between, noise) == mode
    assert choose_mode(9.6, 6.0, 10.1, between, noise) == "cold"  # more than noise is taken for
    assert choose_mode(9.6, 6.0, 14.1, between, noise) is None


@pytest.mark.parametrize(
    ("noise", "between", "mode"), [(1.179, 0.1, "steady"), (1.1, 0.1, None), (1.179, 20.0, None), (1.179, None, None)]
)
def test_steady_alone_need_be_near_where_nothing_passes_between_calls(
    noise: float, between: float | None, mode: str | None
) -> None:
    """As in a run of the demo: steady 16 % off with noise of 18 %, cold further off."""
    assert choose_mode(9.2, 7.7, 11.0, between, noise) == mode
    assert choose_mode(9.2, 7.7, None, between, noise) == mode


@pytest.mark.parametrize(
    ("gain", "chosen"), [((1.93, 1.96), "c4"), ((1.8, 1.9), "c4"), ((1.6, 1.7), "c1"), ((2.1, 2.2), "c4")]
)
def test_blocks_are_advised_only_where_they_gain_more_than_what_is_easier_to_write(
    gain: tuple[float, float], chosen: str
) -> None:
    blocks = Measured(variant("c1"), "verified", ratio(1.9, 2.1), ratio(1.9, 2.1), blocked=True)
    split = Measured(variant("c4"), "verified", ratio(*gain), ratio(*gain))
    assert decide([blocks, split], context()).candidate == chosen


@pytest.mark.parametrize(("shown", "middle", "chosen"), [(True, 1.8, "c1"), (False, 1.8, "c4"), (False, 1.6, "c1")])
def test_blocks_that_are_not_shown_to_be_faster_are_not_advised(shown: bool, middle: float, chosen: str) -> None:
    """The demo named blocks of 2 or of 4 from run to run, within what the intervals of a structure of arrays held."""
    blocks = Measured(variant("c1"), "verified", ratio(1.9, 2.1), ratio(1.9, 2.1), blocked=True)
    plain = Measured(variant("c4"), "verified", Ratio(middle, 1.4, 2.3, 5), Ratio(middle, 1.4, 2.3, 5))
    assert decide([blocks, plain], context(), lambda faster, slower: shown).candidate == chosen


def test_blocks_are_advised_where_they_save_clearly_more_of_the_time() -> None:
    """The demo: 4.4 times saves 77 % of the time, 5.1 times 80 %, and the difference is sure."""
    blocks = Measured(variant("c1"), "verified", ratio(5.0, 5.2), ratio(5.0, 5.2), blocked=True, words="AoSoA×8")
    split = Measured(variant("c4"), "verified", ratio(4.3, 4.5), ratio(4.3, 4.5))
    verdict = decide([blocks, split], context())
    assert verdict.candidate == "c4"
    more = more_by_blocks(split, [blocks, split], 1.05)
    assert more is blocks
    assert with_more(verdict, split, more).text.endswith(" c1 (AoSoA×8) saves 3 % more of the time: 5.1 times.")
    assert with_more(msgspec.structs.replace(verdict, peers=("c1",)), split, more).text == verdict.text
    faster = msgspec.structs.replace(verdict, peers=("c1",), faster=("c1",))
    assert with_more(faster, split, more).text.endswith(" saves 3 % more of the time: 5.1 times.")
    unsure = replace(split, speedup=Ratio(4.4, 2.0, 4.5, 9))
    assert decide([blocks, unsure], context()).candidate == "c1"
    far = Measured(variant("c1"), "verified", ratio(20, 21), ratio(20, 21), blocked=True)
    near = Measured(variant("c4"), "verified", ratio(12, 13), ratio(12, 13))
    assert decide([far, near], context()).candidate == "c1"


def test_nothing_more_is_told_of_blocks_that_are_advised_or_gain_less() -> None:
    blocks = Measured(variant("c1"), "verified", ratio(1.9, 2.1), ratio(1.9, 2.1), blocked=True)
    split = Measured(variant("c4"), "verified", ratio(2.1, 2.3), ratio(2.1, 2.3))
    assert more_by_blocks(split, [blocks, split], 1.05) is None
    assert more_by_blocks(blocks, [blocks, split], 1.05) is None
    wrong = replace(blocks, evidence="rejected", speedup=ratio(3, 3), over_identity=ratio(3, 3))
    assert more_by_blocks(split, [wrong, split], 1.05) is None


def test_what_is_hardly_known_is_not_preferred_for_having_no_blocks() -> None:
    """In a demo, blocks ran 8.4 times as fast (8.1 to 8.7), a split that three processes timed 7.1 times (2.7 to 8.3)."""
    blocks = Measured(variant("c1"), "verified", ratio(8.1, 8.7), ratio(8.1, 8.7), blocked=True)
    split = Measured(variant("c5"), "verified", Ratio(7.2, 2.7, 8.3, 3), Ratio(7.2, 2.7, 8.3, 3))
    known = Measured(variant("c4"), "verified", Ratio(7.2, 6.7, 7.6, 7), Ratio(7.2, 6.7, 7.6, 7))
    assert decide([blocks, split], context(), lambda faster, slower: False).candidate == "c1"
    assert decide([blocks, split, known], context(), lambda faster, slower: False).candidate == "c4"


@pytest.mark.parametrize(
    ("other", "reason"), [((0.8, 0.84), "compiler-dependent"), ((0.9, 1.1), "measured-gain"), (None, "measured-gain")]
)
def test_a_gain_that_a_promise_to_the_compiler_takes_away_is_not_the_layouts(
    other: tuple[float, float] | None, reason: str
) -> None:
    """As measured: a scan in blocks of four, 1.39 times as fast, and 0.83 times with `restrict`."""
    plain = Measured(variant("c1"), "verified", ratio(1.38, 1.40), ratio(1.7, 1.9))
    asked = Measured(variant("c1-restrict"), "verified", ratio(*other) if other else None, ratio(*other) if other else None)
    elsewhere = Measured(variant("c2-restrict"), "verified", ratio(0.5, 0.6), ratio(0.5, 0.6))
    results = with_doubts([plain, asked, elsewhere], Timings(), Circumstances(None, "steady", alike=True))
    assert decide(results, context()).reason == reason


def test_a_variant_that_asks_for_more_is_advised_only_where_it_gains() -> None:
    plain = Measured(variant("c1"), "verified", ratio(1.40, 1.6), ratio(1.40, 1.6))
    nearly = Measured(variant("c1-restrict"), "verified", ratio(1.41, 1.61), ratio(1.41, 1.61))
    more = Measured(variant("c1-simd"), "verified", ratio(2.0, 2.2), ratio(2.0, 2.2))
    assert decide([plain, nearly], context()).candidate == "c1"
    best = decide([plain, nearly, more], context())
    assert best.candidate == "c1-simd"
    assert "restrict" in best.text
    assert "restrict" not in decide([plain, nearly], context()).text


def test_the_whole_program_is_not_told_to_gain_more_than_its_hotspot() -> None:
    """1.17 times of 89 %: 1.15, which one digit made 1.2 of."""
    verdict = decide([Measured(variant("c1"), "verified", ratio(1.16, 1.18), ratio(1.16, 1.18))], context())
    assert "the whole program an estimated 1.14 times (89% of the samples)" in for_program(verdict, 0.89).text


def test_of_a_program_that_waits_the_gain_is_one_of_its_cpu_time() -> None:
    verdict = decide([Measured(variant("c1"), "verified", ratio(1.16, 1.18), ratio(1.16, 1.18))], context())
    assert "waits" not in for_program(verdict, 0.89, 0.05).text
    assert for_program(verdict, 0.89, 0.68).text.endswith(
        "1.14 times (89% of the samples) in CPU time, but it waits 68% of the time that it takes."
    )
    assert for_program(verdict, 0.89, 0.05, 1.94).text.endswith(
        "(89% of the samples) in CPU time, on 1.9 processors at once."
    )


def test_what_the_unchanged_layout_gains_is_told() -> None:
    """lattice -O3: restrict alone gains 1.22 times, the layout 1.07."""
    both = Measured(variant("c1-restrict"), "verified", Ratio(1.3, 1.29, 1.31, 9), Ratio(1.066, 1.06, 1.07, 9))
    text = decide([both], context()).text
    assert text.endswith(", of that 1.22 times with `restrict` and the layout unchanged, 1.07 times by the layout.")
    assert for_program(decide([both], context()), 0.5).text.endswith(
        "by the layout; the whole program an estimated 1.13 times (50% of the samples)."
    )
    alone = Measured(variant("c1-restrict"), "verified", Ratio(1.3, 1.29, 1.31, 9), Ratio(1.28, 1.27, 1.29, 9))
    assert "of that" not in decide([alone], context()).text
