"""The limits of all stages, as the report carries them."""

from __future__ import annotations

from dataclasses import asdict

from layout_advise.choose.policy import CHOOSE
from layout_advise.decide.policy import DECIDE
from layout_advise.describe.policy import CHECKS
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.policy import TIMING


def policies() -> dict[str, dict[str, float]]:
    """By stage and name the limits that a verdict was decided with."""
    return {
        "choose": asdict(CHOOSE),
        "timing": asdict(TIMING),
        "measure": asdict(MEASURE),
        "decide": asdict(DECIDE),
        "checks": asdict(CHECKS),
    }
