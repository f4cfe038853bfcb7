"""Times as they are where part of what repeated calls teach the processor is not known."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.decide.budget import Circumstances, place_doubts
from layout_advise.describe.checks import Conditions, quality
from layout_advise.measure.measured import Measured
from layout_advise.mockup.timing.branch_training import as_in_program, unknown_part
from layout_advise.mockup.timing.canary import Canary
from layout_advise.mockup.timing.ratios import noise_floor
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, ORIGINAL, Variant
from layout_advise.reports.model import contract
from layout_advise.reports.model.hotspot import Original
from layout_advise.reports.pages import html, terminal
from tests.support.sample_report import report
from tests.support.variants import variant

C1 = variant("c1")


def timed(learnt: dict[Variant, float], fresh: dict[Variant, float], processes: int = 5) -> Timings:
    steady, unknown = ([{name: [ns] * 4 for name, ns in one.items()} for _ in range(processes)] for one in (learnt, fresh))
    return Timings(steady=steady, fresh=unknown)


@pytest.mark.parametrize(
    ("in_situ", "part"),
    [
        (100.0, 0.0),
        (101.0, 0.0),  # times are not known better
        (150.0, 0.5),
        (200.0, 1.0),
        (220.0, 1.0),
        (240.0, None),  # longer than with nothing known: something else
        (90.0, 0.0),
        (80.0, None),
        (None, None),
    ],
)
def test_the_part_follows_from_what_the_original_takes_in_the_program(in_situ: float | None, part: float | None) -> None:
    assert unknown_part(timed({ORIGINAL: 100.0}, {ORIGINAL: 200.0}), in_situ, 0.15) == part


def test_nothing_is_learnt_where_forgetting_takes_no_time() -> None:
    assert unknown_part(timed({ORIGINAL: 100.0}, {ORIGINAL: 104.0}), 103.0, 0.15) is None
    assert unknown_part(timed({ORIGINAL: 100.0}, {}), 103.0, 0.15) is None


ns = st.floats(10, 1000)


@given(ns, ns, ns, ns, st.floats(0.03, 1))
def test_each_takes_its_learnt_time_and_that_part_of_what_forgetting_adds(
    original: float, more: float, layout: float, its_more: float, part: float
) -> None:
    """sph: 60, 57 and 55 us learnt, 184, 172 and 172 unknown, 104, 96 and 94 in the program: as 0.35 of it gives."""
    found = as_in_program(timed({ORIGINAL: original, C1: layout}, {ORIGINAL: original + more, C1: layout + its_more}), part)
    assert found.nanoseconds(ORIGINAL) == pytest.approx(original + part * more)
    ratio = found.ratio(ORIGINAL, C1)
    assert ratio is not None
    assert ratio.median == pytest.approx((original + part * more) / (layout + part * its_more))


def test_what_was_measured_is_kept() -> None:
    timings = timed({ORIGINAL: 100.0, IDENTITY: 110.0, IDENTITY_UNROLLED: 100.0}, {ORIGINAL: 200.0, IDENTITY: 220.0})
    seen = [{name: [Canary(100), Canary(100), Canary(100), Canary(300)] for name in one} for one in timings.steady]
    timings = replace(timings, canaries={"steady": seen})
    found = as_in_program(timings, 0.5)
    assert found.origin is timings
    assert found.calm_part() == timings.calm_part() == 0.75
    assert found.is_calm == timings.is_calm
    assert IDENTITY_UNROLLED not in found.steady[0]  # nothing is known of it
    turned = found.exchanged(IDENTITY, IDENTITY_UNROLLED)
    assert turned.nanoseconds(IDENTITY_UNROLLED) == 165.0
    assert turned.origin is not None
    assert turned.origin.nanoseconds(IDENTITY_UNROLLED) == 110.0
    assert as_in_program(timings, 0.0) is timings
    assert noise_floor(found) == (1.0, 1.0)


def test_a_conversion_has_no_branches_on_the_data() -> None:
    learnt = {ORIGINAL: 100.0, C1: 50.0, C1.with_conversion: 80.0}
    found = as_in_program(timed(learnt, {ORIGINAL: 200.0, C1: 90.0}), 0.5)
    assert found.nanoseconds(C1.with_conversion) == 100.0
    net = found.net(C1)
    assert net is not None
    assert net.median == pytest.approx(1.5)


def test_processes_without_a_time_of_both_kinds_are_left_out() -> None:
    timings = timed({ORIGINAL: 100.0, C1: 50.0}, {ORIGINAL: 200.0, C1: 90.0})
    without = [{n: t for n, t in one.items() if k != 2 or n != C1} for k, one in enumerate(timings.fresh)]
    timings = replace(timings, fresh=without)
    found = as_in_program(timings, 1.0)
    assert [len(one) for one in found.steady] == [2, 2, 1, 2, 2]
    assert found.nanoseconds(C1) == 90.0


def test_reports_say_what_speedups_are_of() -> None:
    timings = as_in_program(timed({ORIGINAL: 4510.0}, {ORIGINAL: 35_600.0}), 0.92)
    conditions = Conditions(timings, 32_400.0, 0.0, "steady", False, None, 3, None)
    check = next(c for c in quality(conditions).checks if c.id == "in-situ")
    assert check.ok
    assert "as much of its branches unknown as makes it so: 92% of what is learnt" in check.text
    whole = report()
    hotspot = msgspec.structs.replace(whole.hotspots[0], original=Original(None, 4510.0, 32_400.0, 35_600.0, 0.92))
    said = "repeated it takes 4.51 µs, as the processor learns its branches, 35.6 µs where it knows none, 32.4 µs in the"
    told = msgspec.structs.replace(whole, hotspots=(hotspot,))
    assert said in terminal.render(told)
    assert said in html.render(told)
    assert "35.6 µs with branches that the processor does not know" in html.render(told)
    assert "branches" not in terminal.render(whole)
    assert contract.decode(contract.encode(told)) == told


def test_a_short_loop_is_doubted_only_where_a_layout_gains_at_another_place() -> None:
    """Without branches on data a slow place is the unchanged mock-up's own, and says nothing about a layout."""
    slow = {IDENTITY: 100.0, IDENTITY.elsewhere[1]: 130.0, ORIGINAL: 100.0, C1: 101.0, C1.elsewhere[0]: 102.0}
    one = Ratio(100 / 101, 0.98, 1.0, 5)

    def most(times: dict[Variant, float], branches: bool) -> float:
        around = Circumstances(None, "steady", True, branches)
        return max(d.hi for d in place_doubts(Measured(C1, "verified", one, one), timed(times, {}), around))

    assert most(slow, branches=True) == pytest.approx(1.3)
    assert most(slow, branches=False) < 1.0
    assert most({**slow, C1.elsewhere[0]: 80.0}, branches=False) == pytest.approx(1.25)
