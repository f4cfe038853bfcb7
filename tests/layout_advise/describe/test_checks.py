"""The checks of the experiment."""

from __future__ import annotations

from dataclasses import replace

from layout_advise.describe.checks import Conditions, quality

PLAIN = Conditions(
    timings=None, in_situ_ns=None, spread=0.0, mode=None, truncated=False, wrong_map_caught=None, calls_verified=3,
    deterministic=True,
)  # fmt: skip


def test_that_a_program_waits_is_told() -> None:
    assert "waits" not in {check.id for check in quality(replace(PLAIN, waits=0.02)).checks}
    found = {check.id: check for check in quality(replace(PLAIN, waits=0.68)).checks}
    assert not found["waits"].ok
    assert found["waits"].text == "the program waits 68% of the time that it takes: its gain is one of its CPU time"
