"""The places of a nest of regions, turn by turn."""

from __future__ import annotations

from layout_advise.plan.region_order import RegionEntry, RegionStep, leaves


def unrolled_places(steps: tuple[RegionStep, ...], start: int = 0) -> list[int]:
    """The numbers of the places in the nest, as they are run."""
    found, at = list[int](), start
    for step in steps:
        if isinstance(step, RegionEntry):
            found.append(at)
            at += 1
        else:
            found += unrolled_places(step.body, at) * step.turns
            at += len(leaves(step.body))
    return found
