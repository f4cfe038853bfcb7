"""The limits of the farm."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmPolicy:
    """How long things may take, where the list does not say."""

    run_seconds: float = limit(900.0, "s", "A run of `trace` is ended after that long.")
    step_seconds: float = limit(1800.0, "s", "Fetching, building or making an input is ended after that long.")
    grace_seconds: float = limit(20.0, "s", "A process that was told to end has so long to clean up.")
    poll_seconds: float = limit(0.2, "s", "A process is looked at so often.")
    most_log_bytes: int = limit(1 << 20, "bytes", "Of a program's messages the last so many are kept.")


FARM = FarmPolicy()
