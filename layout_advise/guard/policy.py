"""The limits of a guard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """Units and reasons in ``docs/decisions/0072``."""

    rounds: int = 7
    """Processes in which the regions' calls are timed."""
    slower: float = 1.10
    """An alarm where the whole interval of new time over old one is above this."""
    run_seconds: float = 600.0
    """So long one run of the program may take."""
    largest_file: int = 10_000_000
    """Bytes of a guard that is read."""


GUARD = GuardPolicy()
