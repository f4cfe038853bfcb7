"""Functions that were seen to use the structures of measured regions between their calls, and are none of these."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.regions.over_regions import layout_of
from layout_advise.regions.planned import MeasuredRegions, Unmeasured
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.tracer.program.symbols import bare_name
from layout_advise.tracer.sampling.hotspots import Hotspot


def seen_users(seen: MeasuredRegions, ranking: Sequence[Hotspot], known: Sequence[Unmeasured]) -> tuple[Unmeasured, ...]:
    """The users that the regions' structures have beside the regions themselves and those that are ``known``, with the
    samples in their own code as far as no region has them, and the layouts of these structures.

    A function may not be studied at all, as it failed, was never asked for, or came too late: of what a layout does to it
    nothing is known, though all over its array is its time.
    """
    own = {hot.symbol: hot for hot in ranking}
    named = {one.name for one in known}
    rest = 1.0 - sum(seen.shares) - sum(one.share for one in known)
    found = []
    for function, layouts in _layouts_by_user(seen.hotspots).items():
        hot = own.get(function)
        if hot is None or named & {function, bare_name(hot.demangled)}:
            continue
        share = min(hot.share, rest)
        if share > 0.0:
            found.append(Unmeasured(bare_name(hot.demangled), share, frozenset(layouts)))
    return tuple(found)


def _layouts_by_user(hotspots: Sequence[HotspotReport]) -> dict[str, set[str]]:
    """The layouts of the structures that each function uses between the calls, without the regions that are functions."""
    regions = {h.symbol for h in hotspots if h.region == "function"}
    found: dict[str, set[str]] = {}
    for h in hotspots:
        for s in h.structures:
            layouts = {layout_of(c) for c in h.candidates if s.id in c.structures}
            for user in s.users:
                if user.when == "between" and user.function is not None and user.function not in regions:
                    found.setdefault(user.function, set()).update(layouts)
    return found
