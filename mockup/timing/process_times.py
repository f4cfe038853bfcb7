"""The times of one restored process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.mockup.timing.canary import Canary
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.process.stopped_program import Mode

Times = Mapping[Variant, Sequence[float]]
"""Of one restored process: by variant the ns of all valid calls."""
Canaries = Mapping[Variant, Sequence[Canary]]
"""The canaries of the same calls."""


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """What was timed in one restored process. ``conversions`` are ns of converting to a layout and back, by variant."""

    times: Mapping[Mode, Times]
    canaries: Mapping[Mode, Canaries]
    conversions: Mapping[Variant, tuple[float, float]]
    waited_ns: int
    rejected: int
    samples: int
    put_back: Mapping[Variant, float] = field(default_factory=dict)
    """ns of putting back what the program writes between the calls of a batch, which ``times`` are without."""
