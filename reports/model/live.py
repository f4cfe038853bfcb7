"""The report's part about the calls of a layout that was tried in the running program, in their order.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

import msgspec


class LiveCourse(msgspec.Struct, frozen=True):
    """The times of calls in their order, in two runs of the whole program: an ordinary one, and the one in which all calls
    ran as the mock-up that could. Each list has one value of each stretch of calls; null: no call of it was timed."""

    first: int
    """The number of the first of the calls, the one that was studied."""
    calls: int
    """The calls that both runs have a time of, at most the first 131,072."""
    stretch: int
    """Calls in a stretch; the last one may have fewer."""
    original_ns: tuple[float | None, ...]
    """Median ns of a call of the original in each stretch: CPU time of the thread, of calls under 20 µs wall time."""
    layout_ns: tuple[float | None, ...]
    """Median ns of a call of the mock-up in each stretch, copies of the data not included; measured in the same way."""
    copying_ns: tuple[float | None, ...]
    """Mean ns a call of the mock-up, by stretch, in which data were copied into the new layout before the call and back
    after it: wall time. They are copied where the program or the mock-up wrote to them. The copy that is made when the
    mock-up is loaded is not in it."""
    left_out: tuple[int, ...]
    """The calls in each stretch that were left to the original, and not timed."""
