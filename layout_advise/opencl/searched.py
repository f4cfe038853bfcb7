"""The findings of a search on one device: the layouts that were tried, and their times."""

from __future__ import annotations

from dataclasses import dataclass, field

from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.opencl.host.variants import KernelVariant
from layout_advise.opencl.measure.clock import Clock
from layout_advise.opencl.measure.jobs import ConversionTime, DeviceName, VariantOutcome


@dataclass(slots=True)
class Tried:
    """One layout on one device. ``screened`` is its speedup in the one process that looked for the best; the ratios are of
    those processes that came after, None for what was not a finalist: ``speedup`` by the clock of the search, ``wall`` by
    the host's."""

    variant: KernelVariant
    outcome: VariantOutcome
    screened: float | None
    speedup: Ratio | None = None
    wall: Ratio | None = None
    conversion: ConversionTime | None = None

    @property
    def verified(self) -> bool:
        """True if it left the original's bytes."""
        return not self.outcome.problem and self.outcome.compared is not None and not self.outcome.compared.problem

    @property
    def reason(self) -> str:
        """Why it is not verified; empty where it is."""
        return self.outcome.problem or (self.outcome.compared.problem if self.outcome.compared is not None else "")


@dataclass(slots=True)
class Searched:
    """All that was tried on a device, by ``clock`` where nothing else is said. Times are ns of all launches; ``noise`` is
    original over original."""

    device: DeviceName
    clock: Clock
    tried: list[Tried] = field(default_factory=list)
    original_ns: float = 0.0
    original_wall_ns: float = 0.0
    noise: Ratio | None = None
    repeats: bool = True
    """False where the original left other bytes when it was run again."""

    def best(self) -> list[Tried]:
        """The verified layouts, the fastest in the screening first."""
        return sorted((t for t in self.tried if t.verified and t.screened), key=lambda t: -(t.screened or 0.0))
