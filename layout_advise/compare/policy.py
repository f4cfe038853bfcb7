"""The limits of comparing two runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ComparePolicy:
    """Reasons in ``docs/decisions/0076``."""

    differ: float = 1.05
    """Two times differ where the whole interval of their ratio is beyond this, either way."""


COMPARE = ComparePolicy()
