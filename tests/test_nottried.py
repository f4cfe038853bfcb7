"""No `keep` of what was not tried."""

from __future__ import annotations

import pytest

from layout_advise.layoutalgebra.derive import Derived
from layout_advise.layoutalgebra.structure import Dim, Field, Structure
from layout_advise.reports.hotspotmodel import Verdict
from layout_advise.stages.nottried import doubt_unknown
from layout_advise.stages.trials import Trials


def derived(number: int, reads: int, inexact: str | None) -> Derived:
    fields = (Field("f0", 0, 8, reads=reads, writes=reads // 2),)
    shape = Structure(f"s{number}", f"a{number}", 4096 * number, 800, (Dim(100, 8),), fields, inexact=inexact)
    return Derived(shape, None, 8, 0, False, inexact)


@pytest.mark.parametrize(
    ("unknown", "action", "reason"), [(1000, "undecided", "structure-unclear"), (4, "keep", "no-rule-applies")]
)
def test_of_what_was_not_recognised_nothing_is_said(unknown: int, action: str, reason: str) -> None:
    """An equaliser's state, an array in a record, was no grid: "keep it", where a structure of arrays gains 1.1."""
    trials = Trials({}, {}, 3, True, True, None, Verdict("keep", None, None, "no-rule-applies", "Keep it."))
    verdict = doubt_unknown(trials, (derived(0, unknown, "the accesses fit no regular grid"), derived(1, 100, None))).verdict
    assert (verdict.action, verdict.reason) == (action, reason)
    if action == "undecided":
        assert "`a0`" in verdict.text
        assert "91% of the accesses" in verdict.text
    change = Trials({}, {}, 3, True, True, None, Verdict("change", "c1", 2.0, "measured-gain", "Change it."))
    assert doubt_unknown(change, (derived(0, 1000, "no"),)) == change
