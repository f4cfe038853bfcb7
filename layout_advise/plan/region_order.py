"""The order in which regions run, folded into a nest of loops: ``for 500 { density; drift×2 }``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegionEntry:
    """One entry of the region with that number."""

    region: int


@dataclass(frozen=True, slots=True)
class RegionLoop:
    """``body``, so often in a row. Raises ValueError for no turns or an empty body: neither is ever folded."""

    turns: int
    body: tuple[RegionStep, ...]

    def __post_init__(self) -> None:
        if self.turns < 1 or not self.body:
            raise ValueError("a loop of regions has at least one turn and one step")


RegionStep = RegionEntry | RegionLoop


def unrolled(steps: Sequence[RegionStep]) -> Iterator[int]:
    """Yields the regions one by one, as they run."""
    for step in steps:
        if isinstance(step, RegionEntry):
            yield step.region
        else:
            for _ in range(step.turns):
                yield from unrolled(step.body)


def leaves(steps: Sequence[RegionStep]) -> tuple[int, ...]:
    """The regions in the order in which the nest names them."""
    found: list[int] = []
    for step in steps:
        found.extend((step.region,) if isinstance(step, RegionEntry) else leaves(step.body))
    return tuple(found)


def entries(steps: Sequence[RegionStep]) -> Counter[int]:
    """Returns how often each region is entered in all, without going through the turns."""
    found: Counter[int] = Counter()
    for step in steps:
        if isinstance(step, RegionEntry):
            found[step.region] += 1
        else:
            for region, count in entries(step.body).items():
                found[region] += step.turns * count
    return found


def said(steps: Sequence[RegionStep], names: Sequence[str]) -> str:
    """The nest as text: ``init; for 500 { density; drift×2 }``."""
    return "; ".join(_said(step, names) for step in steps)


def _said(step: RegionStep, names: Sequence[str]) -> str:
    if isinstance(step, RegionEntry):
        return names[step.region]
    if len(step.body) == 1 and isinstance(step.body[0], RegionEntry):
        return f"{names[step.body[0].region]}×{step.turns}"
    return f"for {step.turns} {{ {said(step.body, names)} }}"
