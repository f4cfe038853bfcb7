"""The report's part about a parallel region by its number of threads.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from layout_advise.reports.model.candidate import Interval


class Time(msgspec.Struct, frozen=True):
    """The undisturbed time of one call in ns over ``restores`` restored processes, with its 95 % bootstrap interval."""

    ns: float
    """Nanoseconds."""
    lo: float
    """Lower end of the 95 % interval, in nanoseconds."""
    hi: float
    """Upper end of the 95 % interval, in nanoseconds."""
    restores: int


class ThreadCount(msgspec.Struct, frozen=True):
    """A parallel region run by ``threads`` threads, all wall times. ``reason``: why this number was refused, or None.

    ``same_result``: the original leaves the same bytes as with the program's own number of threads. ``scaling`` is the
    original's time with one thread over that with these, only where both leave the same bytes. ``speedup`` is the
    original's time over the candidate's with as many threads, only where both left the same bytes
    (``candidate_reason``: why not), ``over_identity`` the identity's over the candidate's, ``identity`` the identity's
    over the original's. The shares are CPU time of each thread in the region's body over the region's wall time.
    """

    threads: int
    reason: str | None
    same_result: bool | None = None
    original: Time | None = None
    """The original's wall time."""
    scaling: Interval | None = None
    identity: Interval | None = None
    candidate: Time | None = None
    """The candidate's wall time."""
    candidate_reason: str | None = None
    speedup: Interval | None = None
    over_identity: Interval | None = None
    shares: tuple[float, ...] = ()
    """The threads' shares in the original, 0 to 1."""
    candidate_shares: tuple[float, ...] = ()
    """The threads' shares in the candidate, 0 to 1."""


class ByThreads(msgspec.Struct, frozen=True):
    """A parallel region by number of threads, as run in restored processes by the program's own runtime; ``own`` is the
    number that the program itself gives it, ``candidate`` the layout that is advised, else the best one measured. Where the
    machine has more than 16 cores not every number is tried."""

    own: int
    candidate: str | None
    mode: Literal["steady", "cold"]
    """Whether caches were warm (``steady``) or flushed (``cold``)."""
    counts: tuple[ThreadCount, ...]
    """One entry a number of threads, ascending."""
