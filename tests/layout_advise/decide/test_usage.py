"""Which kind of change is advised, and the sentence that says so."""

from __future__ import annotations

import pytest

from layout_advise.decide.usage import Use, with_use
from layout_advise.decide.verdict import VerdictContext, confirm, decide
from layout_advise.measure.measured import Measured
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model.hotspot import Verdict
from tests.support.variants import variant

CHANGE = Verdict("change", "c1", 3.0, "measured-gain", "Change it: it runs 3.0 times as fast.")


def ratio(median: float, lo: float | None = None) -> Ratio:
    return Ratio(median, median if lo is None else lo, median, 7)


@pytest.mark.parametrize(("net", "lo", "kind"), [(1.9, 1.7, "temporary"), (1.2, 1.01, "permanent"), (0.3, 0.3, "permanent")])
def test_only_what_stays_above_the_bound_may_be_temporary(net: float, lo: float, kind: str) -> None:
    done = with_use(CHANGE, Use(ratio(net, lo), ratio(3.2), 100, 1.05))
    assert done.use == kind
    assert (done.action, done.candidate, done.gain) == (CHANGE.action, CHANGE.candidate, CHANGE.gain)
    assert ("every call makes it 3.3 times slower." in done.text) == (net < 1)
    assert ("not shown to pay" in done.text) == (kind == "permanent" and net > 1)
    assert (f"{net:.2f} times as fast ({lo:.2f} to" in done.text) == (net > 1)


def test_it_says_from_how_many_calls_on_a_conversion_pays() -> None:
    assert (
        "Change it permanently, or convert once: that pays off after 4 consecutive calls."
        in with_use(CHANGE, Use(ratio(0.5), ratio(3.2), 100, 1.05)).text
    )
    few = with_use(CHANGE, Use(ratio(0.5), ratio(3.2), 3, 1.05)).text
    assert "pays off after 4 consecutive calls, more than the 3 of this run." in few
    assert "Change it permanently." in with_use(CHANGE, Use(ratio(0.5), None, 3, 1.05)).text


def test_without_a_measurement_or_a_change_nothing_is_said() -> None:
    keep = Verdict("keep", None, None, "no-gain", "Keep it.")
    assert with_use(keep, Use(ratio(2.0), ratio(1.0), 9, 1.05)) == keep
    assert with_use(CHANGE, Use(None, None, 9, 1.05)) == CHANGE


def test_a_temporary_layout_that_loses_by_its_conversion_is_not_advised() -> None:
    context = VerdictContext("criu", "verified", True)
    streaming = Measured(variant("c1"), "verified", ratio(2.5), ratio(2.5), ratio(0.4), "store it")
    assert decide([streaming], context).action == "keep"
    paying = Measured(variant("c1"), "verified", ratio(2.5), ratio(2.5), ratio(1.8), "store it")
    verdict = confirm(decide([paying], context), paying, context)
    assert (verdict.action, verdict.gain) == ("change", 1.8)
    assert "1.80 times as fast" in verdict.text
    assert "conversion before and after each call included" in verdict.text


def test_the_rest_of_the_program_counts() -> None:
    def text(others: tuple[str, ...] | None) -> str:
        return with_use(CHANGE, Use(ratio(0.5), ratio(3.2), 100, 1.05, others)).text

    assert "No other accesses were observed between calls (partial end pages unmonitored)." in text(())
    assert "Between calls move, report also used the data: change that too" in text(("move", "report"))
    assert "else" not in text(None)
