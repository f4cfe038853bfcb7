"""The limits of all stages, as the report carries them."""

from __future__ import annotations

from dataclasses import asdict

from layout_advise.build.policy import BUILD
from layout_advise.choose.policy import CHOOSE
from layout_advise.decide.policy import DECIDE
from layout_advise.describe.policy import CHECKS
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.observe.policy import OBSERVE
from layout_advise.propose.policy import PROPOSE
from layout_advise.verify.policy import VERIFY


def policies() -> dict[str, dict[str, float]]:
    """By stage and name the limits that a verdict was decided with."""
    return {
        "choose": asdict(CHOOSE),
        "observe": asdict(OBSERVE),
        "propose": asdict(PROPOSE),
        "build": asdict(BUILD),
        "verify": asdict(VERIFY),
        "timing": asdict(TIMING),
        "measure": asdict(MEASURE),
        "decide": asdict(DECIDE),
        "checks": asdict(CHECKS),
    }
