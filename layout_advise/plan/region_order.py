"""The order in which regions run, folded into a nest of loops: ``for 500 { density; drift×2 }``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.sets.nests import Node, Point


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


MOST_WRITTEN_OUT = 64
"""A loop whose body changes from turn to turn is written out up to so many turns."""


def from_nodes(nodes: Sequence[Node], indices: tuple[int, ...] = ()) -> tuple[RegionStep, ...] | None:
    """The order that a folded stream of region numbers says; None where the turns of a loop change too often for it to be
    written out. Empty loops are left out."""
    found: list[RegionStep] = []
    for node in nodes:
        if isinstance(node, Point):
            found.append(RegionEntry(node.address.at(indices)))
            continue
        turns = node.trip.at(indices)
        constant = all(_is_constant(inner, len(indices)) for inner in node.body)
        if not constant and turns > MOST_WRITTEN_OUT:
            return None
        for number in range(min(turns, 1) if constant else turns):
            body = from_nodes(node.body, (*indices, number))
            if body is None:
                return None
            found.extend(body if not constant or turns == 1 or not body else (RegionLoop(turns, body),))
    return tuple(found)


def _is_constant(node: Node, depth: int) -> bool:
    """Tells whether nothing in the node changes with the loop of number ``depth`` around it."""
    own = node.address if isinstance(node, Point) else node.trip
    inner = () if isinstance(node, Point) else node.body
    return not any(own.coefs[depth : depth + 1]) and all(_is_constant(one, depth) for one in inner)


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


def turns(steps: Sequence[RegionStep]) -> tuple[int, ...]:
    """How often each place of the nest is entered, in the order of :func:`leaves`."""
    found: list[int] = []
    for step in steps:
        found.extend((1,) if isinstance(step, RegionEntry) else (step.turns * n for n in turns(step.body)))
    return tuple(found)


def renumbered(steps: Sequence[RegionStep], number: Mapping[int, int]) -> tuple[RegionStep, ...]:
    """The order of the regions in ``number`` only, with the numbers that they have there."""
    found: list[RegionStep] = []
    for step in steps:
        if isinstance(step, RegionLoop):
            if body := renumbered(step.body, number):
                found.append(RegionLoop(step.turns, body))
        elif step.region in number:
            found.append(RegionEntry(number[step.region]))
    return tuple(found)


def said(steps: Sequence[RegionStep], names: Sequence[str]) -> str:
    """The nest as text: ``init; for 500 { density; drift×2 }``."""
    return "; ".join(_said(step, names) for step in steps)


def _said(step: RegionStep, names: Sequence[str]) -> str:
    if isinstance(step, RegionEntry):
        return names[step.region]
    if len(step.body) == 1 and isinstance(step.body[0], RegionEntry):
        return f"{names[step.body[0].region]}×{step.turns}"
    return f"for {step.turns} {{ {said(step.body, names)} }}"
