"""The order in which the regions of a run are entered, from one further run of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layout_advise.choose.profile import Profiled
from layout_advise.errors import ProgramError, SnapshotError
from layout_advise.plan.region_order import RegionStep, from_nodes, renumbered, said
from layout_advise.regions.one import RunContext
from layout_advise.tracer.sampling.entry_order import MOST_PLACES, entry_order, why_not_logged


@dataclass(frozen=True, slots=True)
class LoggedOrder:
    """``steps`` of the regions by their numbers, None where the order is not known or does not fold; ``counts`` of entries,
    empty where they are not known. ``reason``: why something is missing."""

    steps: tuple[RegionStep, ...] | None
    counts: tuple[int, ...] = ()
    reason: str = ""

    def of(self, kept: Sequence[int]) -> LoggedOrder:
        """The same of the regions ``kept`` only, which are numbered anew."""
        number = {old: new for new, old in enumerate(kept)}
        steps = renumbered(self.steps, number) if self.steps is not None else None
        return replace(self, steps=steps, counts=tuple(self.counts[k] for k in kept) if self.counts else ())

    def text(self, names: Sequence[str]) -> str:
        """The nest in a line."""
        return said(self.steps, names) if self.steps is not None else ""


def log_order(start: RunContext, regions: Sequence[Profiled]) -> LoggedOrder:
    """Runs the program once more, and logs in which order it enters the regions. Where one of them cannot be watched beside
    the others, nothing is known."""
    entries = [region.entry for region in regions]
    if entries[0].chunk:
        return LoggedOrder(
            None, (), f"entries of {regions[0].name} cannot be logged: {why_not_logged(entries[0], entries[0])}"
        )
    if len(entries) > MOST_PLACES:
        return LoggedOrder(None, (), f"more than {MOST_PLACES} regions")
    for region, entry in zip(regions[1:], entries[1:], strict=True):
        if why := why_not_logged(entry, entries[0]):
            return LoggedOrder(None, (), f"entries of {region.name} cannot be logged: {why}")
    if entries[0].outlined is not None and len(entries) > 1:
        return LoggedOrder(None, (), f"entries of {regions[0].name} cannot be logged: it is the body of a parallel region")
    start.progress.step("logging the order of the regions")
    settings = start.settings
    try:
        found = entry_order(settings.command, entries, stdin_path=start.stdin, timeout=settings.timeout)
    except (ProgramError, SnapshotError) as error:
        return LoggedOrder(None, (), error.line())
    steps = from_nodes(found.nodes) if found.nodes is not None else None
    if not found.complete:
        return LoggedOrder(None, (), f"there are more than the {sum(found.counts)} entries that were logged")
    if steps is None:
        return LoggedOrder(None, found.counts, "the order of the regions is irregular: only how often each runs is known")
    return LoggedOrder(steps, found.counts, "entries of one thread only" if found.threads else "")
