"""Whether a call was timed undisturbed: what the loops that run beside it, the canaries, tell of the processor.

A call counts as calm where the core was not slowed (``docs/decisions/0022``, ``0050``), nor quicker than it usually is while
its clock is boosted (``docs/decisions/0047``).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from layout_advise.mockup.timing.policy import TIMING


class Canary(NamedTuple):
    """Ticks of the canaries beside a call: of the core and of the memory (``docs/decisions/0022``, ``0033``); 0: unknown."""

    core: int = 0
    memory: int = 0

    def limit(self) -> Canary:
        """How slow others may be, where this is the fastest."""
        return Canary(int(TIMING.calm * self.core), int(TIMING.memory_calm * self.memory))

    def is_calm(self, best: Canary) -> bool:
        """Whether the core was not slowed, held against ``best``; also where nothing is known. The memory's is waited for,
        no more: data in a cache does not feel it, and which state that is in differs more from process to process."""
        return self.core <= best.limit().core and not self.is_boosted(best)

    def is_boosted(self, best: Canary) -> bool:
        """Whether the core was quicker than it usually is."""
        return 0 < TIMING.unusual * self.core < best.core


def fastest(canaries: Iterable[Canary]) -> Canary:
    """The fastest of each; 0 where none is known."""
    known = list(canaries)
    return Canary(usual_ticks([c.core for c in known]), fastest_ticks([c.memory for c in known], TIMING.memory_calm))


def fastest_ticks(ticks: Sequence[int], calm: float = TIMING.calm) -> int:
    """The fastest that is no exception: :data:`TIMING.often` of all are hardly slower. A processor that boosts its clock
    for a moment is no measure for the rest of the time.

    They are to lie closer together than ``calm``: else the last of them may be those of all other calls, of which some then
    lie within ``calm`` of an exception and some do not."""
    known = sorted(t for t in ticks if t)
    enough = math.ceil(TIMING.often * len(known))
    for width in (math.cbrt(calm), calm):
        for k, t in enumerate(known):
            if bisect_right(known, width * t) - k >= enough:
                return t
    return known[0] if known else 0


def usual_ticks(ticks: Sequence[int]) -> int:
    """The fastest canary of a core in the state in which it mostly is: a clock that is boosted in one process of ten would
    make of all other calls disturbed ones, and of the processes that are left a ratio of boosted to other times."""
    known, least = sorted(t for t in ticks if t), fastest_ticks(ticks)

    def often(first: int) -> int:
        return bisect_right(known, TIMING.calm * first) - bisect_left(known, first)

    slower = {t for t in known if least < t <= TIMING.boost * least}
    most = max(slower, key=lambda t: (often(t), -t), default=least)
    return most if often(most) >= TIMING.mostly * often(least) else least
