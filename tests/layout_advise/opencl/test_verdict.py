"""Verdicts on given times."""

from __future__ import annotations

import pytest

from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.opencl.host.variants import original, variant
from layout_advise.opencl.measure.clock import Clock
from layout_advise.opencl.measure.jobs import ConversionTime, DeviceName, VariantOutcome
from layout_advise.opencl.measure.verify import Compared
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.searched import Searched, Tried
from layout_advise.opencl.source.read import read_program
from layout_advise.opencl.verdict import break_even, elapsed_gain, net, verdict, winner
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.kernels import GroupSize
from tests.support.opencl.kernels import FORCES, forces_launch

PROGRAM = read_program(FORCES)
ALONE = tuple((k,) for k in range(8))
HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))


def tried(
    name: str, device: tuple[float, float, float], wall: tuple[float, float, float], tile: int = 1, bad: str = ""
) -> Tried:
    groups = ALONE if tile == 1 else HALVES
    chosen = layout(PROGRAM.records[0], groups, (tile,) * len(groups))
    made = variant(name, PROGRAM, [forces_launch()], [chosen])
    outcome = VariantOutcome(1.0, 1.0, compared=Compared(100, 10, bad))
    return Tried(made, outcome, device[0], Ratio(*device, 5), Ratio(*wall, 5), ConversionTime(2.0, 2.0, 1.0, 3.0))


def searched(*rows: Tried, clock: Clock = "device") -> Searched:
    return Searched(DeviceName("p", "d"), clock, list(rows), 40e6, 40e6)


def test_both_clocks_must_say_so() -> None:
    assert original([forces_launch()]).layouts == ()
    good = searched(tried("c1", (2.0, 1.9, 2.1), (1.9, 1.8, 2.0)))
    found = verdict(good, "k")
    assert (found.action, found.candidate, found.interval) == ("change", "c1", Interval(2.0, 1.8, 2.1, 5))
    mixed = verdict(searched(tried("c1", (2.0, 1.9, 2.1), (1.1, 1.0, 1.2))), "k")
    assert (mixed.action, mixed.reason, mixed.doubt) == ("undecided", "wide-interval", "processes")


def test_on_a_processor_its_time_is_the_claim() -> None:
    """The foreign program whose change did not repeat: beside load the host's clock said 0.97 (0.79 to 1.48)."""
    found = verdict(searched(tried("c1", (1.15, 1.12, 1.18), (0.97, 0.79, 1.48)), clock="cpu"), "k")
    assert (found.action, found.interval) == ("change", Interval(1.15, 1.12, 1.18, 5))
    assert "1.15 times as fast (1.12 to 1.18) by processor time" in found.text
    loaded = verdict(searched(tried("c1", (1.15, 1.12, 1.18), (0.97, 0.79, 1.48))), "k")
    assert (loaded.action, loaded.reason) == ("undecided", "wide-interval")
    assert "by events and elapsed time" in loaded.text


@pytest.mark.parametrize(
    ("own", "wall"), [((2.0, 1.9, 2.1), (1.0, 0.98, 1.02)), ((1.0, 0.98, 1.02), (2.0, 1.9, 2.1))], ids=["gain", "none"]
)
def test_clocks_that_contradict_each_other_are_told(
    own: tuple[float, float, float], wall: tuple[float, float, float]
) -> None:
    found = verdict(searched(tried("c1", own, wall), clock="cpu"), "k")
    assert (found.action, found.reason, found.doubt) == ("undecided", "clocks", "clocks")
    assert f"{own[0]:.2f} times as fast" in found.text
    assert f"{wall[0]:.2f} ({wall[1]:.2f} to {wall[2]:.2f}) by elapsed time" in found.text


def test_on_a_processor_its_time_says_what_conversions_are_worth() -> None:
    found = searched(tried("c1", (2.0, 1.9, 2.1), (0.9, 0.5, 2.5)), clock="cpu")
    best = winner(found)
    assert best is not None
    assert (elapsed_gain(best, found), break_even(best, found)) == (2.0, 1)
    found.clock = "device"
    assert (elapsed_gain(best, found), break_even(best, found)) == (0.9, None)


def test_one_layout_is_no_best_of_one() -> None:
    low = tried("c1", (0.9, 0.88, 0.95), (0.9, 0.88, 0.95))
    assert "the only other layout (structure of arrays)" in verdict(searched(low), "k").text
    assert "the best of 2 layouts" in verdict(searched(low, low), "k").text


def test_keep_needs_all_upper_ends_below() -> None:
    low = tried("c1", (0.9, 0.88, 0.95), (0.9, 0.88, 0.95))
    assert verdict(searched(low), "k").action == "keep"
    wide = tried("c2", (0.8, 0.7, 1.3), (0.9, 0.88, 0.95))
    assert verdict(searched(low, wide), "k").action == "undecided"


def test_conversion_decides_the_use() -> None:
    found = searched(tried("c1", (2.0, 1.9, 2.1), (2.0, 1.9, 2.1)))
    best = winner(found)
    assert best is not None
    assert net(best, found) == pytest.approx(40 / (20 + 1 + 2))
    assert break_even(best, found) == 1
    assert verdict(found, "k").use == "temporary"
    unsure = tried("c1", (1.05, 0.99, 1.1), (1.05, 0.99, 1.1))
    assert break_even(unsure, searched(unsure)) is None
    short = Searched(found.device, "device", found.tried, 2e6, 2e6)
    assert (verdict(short, "k").use, break_even(best, short)) == ("permanent", 3)


def test_what_differs_is_never_advised() -> None:
    found = verdict(searched(tried("c1", (2.0, 1.9, 2.1), (2.0, 1.9, 2.1), bad="forces left 3 other bytes")), "k")
    assert (found.action, found.reason) == ("undecided", "nothing-verified")
    assert "forces left 3 other bytes" in found.text


def test_the_simpler_of_tied_layouts_is_advised() -> None:
    tiles = tried("c2", (2.0, 1.95, 2.1), (2.0, 1.9, 2.1), tile=8)
    plain = tried("c1", (1.98, 1.9, 2.1), (2.0, 1.9, 2.1))
    found = verdict(searched(tiles, plain), "k")
    assert found.candidate == "c1"
    assert found.text.endswith(" c2 gains 2.00 with more buffers or tiles, which is as good.")
    assert "as good" not in verdict(searched(plain), "k").text


def test_the_original_may_have_its_best_group_size() -> None:
    found = searched(tried("c1", (2.0, 1.9, 2.1), (2.0, 1.9, 2.1)))
    quick = GroupSize((16,), 20.5e6, Interval(0.9, 0.88, 0.95, 3))
    lost = verdict(found, "k", [quick])
    assert (lost.action, lost.reason) == ("undecided", "group-size")
    assert lost.interval is not None
    assert lost.interval.lo == pytest.approx(20.5 / 20)
    slow = GroupSize((256,), 60e6, Interval(2.5, 2.4, 2.6, 3))
    assert verdict(found, "k", [slow]).interval == Interval(2.0, 1.9, 2.1, 5)


def test_kernels_that_do_not_repeat_are_undecided() -> None:
    found = searched(tried("c1", (2.0, 1.9, 2.1), (2.0, 1.9, 2.1)))
    found.repeats = False
    assert verdict(found, "k").reason == "not-repeatable"
